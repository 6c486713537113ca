"""Footprint: the modules of a started gateway, its idle memory, and the files that an installation keeps."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from django.urls import URLPattern, URLResolver, get_resolver
from django.utils.module_loading import import_string

from benchmarks.footprint import MOST_MIB, start
from core.patterns import lazy_pattern
from deploy import slim
from tests.server import server_environment

LATE = {
    "boto3", "cryptography.x509", "fastapi", "jwt", "lancedb", "mcp", "mcp_types", "onnxruntime",
    "opentelemetry.sdk", "psycopg", "pypdfium2", "redis", "snowballstemmer", "tokenizers", "xberg",
}  # fmt: skip
"""Packages that are loaded when they are first used."""
LOADED = "import json, sys, memory_gateway.server.asgi, memory_gateway.urls; print(json.dumps(list(sys.modules)))"


def test_a_started_gateway_has_not_loaded_what_it_may_never_need(tmp_path: Path) -> None:
    env = server_environment(tmp_path, "") | {"DJANGO_SETTINGS_MODULE": "memory_gateway.settings"}
    done = subprocess.run([sys.executable, "-c", LOADED], env=env, capture_output=True, text=True, check=True)
    modules = set(json.loads(done.stdout))
    assert "agents.mcp.urls" in modules
    assert not LATE & modules


def test_an_idle_gateway_is_small(tmp_path: Path) -> None:
    """After the start that migrates a new database too: its memory is given back."""
    _seconds, _cpu, memory = start(tmp_path, 5.0)
    assert memory <= MOST_MIB


def test_each_late_view_exists_and_is_as_exempt_from_csrf_as_its_address() -> None:
    views = [view for view in callbacks(get_resolver()) if hasattr(view, "dotted_path")]
    assert len(views) == 15
    for view in views:
        loaded = import_string(view.dotted_path)
        assert getattr(loaded, "csrf_exempt", False) == view.csrf_exempt, view.dotted_path


def callbacks(resolver: URLResolver | URLPattern) -> list:
    if isinstance(resolver, URLPattern):
        return [resolver.callback]
    return [found for one in resolver.url_patterns for found in callbacks(one)]


def test_a_late_pattern_matches_as_a_compiled_one() -> None:
    pattern = lazy_pattern(r"(?P<word>[a-z]+)", 2)
    assert [pattern.pattern, pattern.sub("_", "Ab c"), pattern.groupindex["word"]] == [r"(?P<word>[a-z]+)", "_ _", 1]
    with pytest.raises(AttributeError):
        pattern.nothing  # noqa: B018


def test_no_function_of_re_gets_a_late_pattern() -> None:
    """They refuse it, and no type checker sees that."""
    late = re.compile(r"^(\w+)(?:: Final)? = lazy_pattern\(", re.MULTILINE)
    wrong = []
    for path in Path("store/text").glob("*.py"):
        text = path.read_text(encoding="utf-8")
        names = "|".join(late.findall(text)) or "(?!)"
        wrong += [f"{path}: {found[0]}" for found in re.finditer(rf"\bre\.\w+\(\s*(?:{names})\b(?!\.)", text)]
    assert wrong == []


def test_slim_deletes_what_is_not_read_and_nothing_else(tmp_path: Path) -> None:
    kept = [
        "django/conf/locale/de/formats.py",
        "django/conf/locale/zh_Hans/LC_MESSAGES/django.mo",
        "numpy/core.py",
        "numpy/core.pyi",
        "other/tests/code.py",
        "xberg/libonnxruntime.so",
    ]
    deleted = [
        "django/conf/locale/de/LC_MESSAGES/django.mo",
        "django/conf/locale/zh_Hans/LC_MESSAGES/django.po",
        "numpy/lib/tests/test_core.py",
        "xberg.libs/libonnxruntime.so",
    ]
    for name in kept + deleted:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("1234")
    assert slim.slim(tmp_path) == 4 * len(deleted)
    assert sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()) == kept


def test_slim_refuses_the_python_of_the_system() -> None:
    python = Path(sys.base_prefix) / "bin/python3"
    done = subprocess.run([python, "-S", "deploy/slim.py"], check=False, capture_output=True, text=True)
    assert (done.returncode, "no virtual environment" in done.stderr) == (2, True)
