"""The translation catalog is complete, and its compiled form is up to date."""

from __future__ import annotations

import gettext
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from django.utils import translation

from store.categories import CATEGORIES, label
from tests.forked import PROJECT

FOLDER = PROJECT / "locale" / "zh_Hans" / "LC_MESSAGES"
_LINE = re.compile(r'^(msgctxt|msgid|msgid_plural|msgstr(?:\[\d+\])?) "(.*)"$')
_ESCAPES = {"\\n": "\n", '\\"': '"', "\\\\": "\\", "\\t": "\t"}
PACKAGES = {path.parent.name for path in PROJECT.glob("*/__init__.py")} - {"tests"}
LABELS = {
    "user_memory_fact": "用户事实",
    "user_memory_preference": "用户偏好",
    "user_memory_decision": "用户决策",
    "self_improving_learnings": "最佳实践",
    "self_improving_errors": "错误经验",
    "self_improving_feature_requests": "行为诉求",
    "full_context_user": "全文 · 用户消息",
    "full_context_assistant": "全文 · AI助手消息",
    "full_context_system": "全文 · 系统消息",
    "full_context_tool": "全文 · 工具调用",
    "full_context_tool_result": "全文 · 工具结果",
    "full_context_others": "全文 · 其他消息",
}


def entries_of(path: Path) -> dict[str, str]:
    """Return the texts of a `.po` file by context and msgid, in the key format of compiled catalogs."""
    found: dict[str, str] = {}
    for block in path.read_text(encoding="utf-8").split("\n\n"):
        entry = _entry(block)
        key = f"{entry['msgctxt']}\x04{entry['msgid']}" if "msgctxt" in entry else entry.get("msgid", "")
        if key:
            found[key] = entry.get("msgstr") or entry.get("msgstr[0]", "")
    return found


def _entry(block: str) -> dict[str, str]:
    entry: dict[str, str] = {}
    name = ""
    for line in block.splitlines():
        if match := _LINE.match(line):
            name = match[1]
            entry[name] = _plain(match[2])
        elif line.startswith('"'):
            entry[name] += _plain(line[1:-1])
    return entry


def _plain(text: str) -> str:
    return re.sub(r'\\[n"\\t]', lambda match: _ESCAPES[match[0]], text)


def test_no_string_is_untranslated() -> None:
    assert "#, fuzzy" not in (FOLDER / "django.po").read_text(encoding="utf-8")
    entries = entries_of(FOLDER / "django.po")
    assert len(entries) > 250
    assert [key for key, text in entries.items() if not text] == []


def test_the_compiled_catalog_is_up_to_date() -> None:
    with (FOLDER / "django.mo").open("rb") as file:
        compiled = gettext.GNUTranslations(file)._catalog  # type: ignore[attr-defined]
    texts = {key[0] if isinstance(key, tuple) else key: text for key, text in compiled.items()}
    texts.pop("")
    assert texts == entries_of(FOLDER / "django.po")


@pytest.mark.skipif(shutil.which("xgettext") is None, reason="gettext is missing: apt-get install gettext")
def test_every_string_of_the_code_is_in_the_catalog(tmp_path: Path) -> None:
    for name in (*PACKAGES, "templates"):
        (tmp_path / name).symlink_to(PROJECT / name)
    (tmp_path / "locale").mkdir()
    env = {**os.environ, "PYTHONPATH": str(PROJECT)}
    command = [sys.executable, "-m", "tests.console.collect_messages"]
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    gathered = entries_of(tmp_path / "locale" / "zh_Hans" / "LC_MESSAGES" / "django.po")
    assert sorted(gathered.keys() - entries_of(FOLDER / "django.po").keys()) == []


def test_translations_have_the_same_placeholders() -> None:
    placeholder = re.compile(r"%\(\w+\)[sd]")
    entries = entries_of(FOLDER / "django.po")
    assert [
        key for key, text in entries.items() if set(placeholder.findall(key)) != set(placeholder.findall(text))
    ] == []


def test_categories_have_the_specified_labels() -> None:
    with translation.override("zh-hans"):
        assert {category: str(label(category)) for category in CATEGORIES} == LABELS
