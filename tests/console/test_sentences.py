"""Sentences of services are told in the language of the page, whichever of them comes, and stay English elsewhere."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.test import Client
from django.utils import translation

from core import errors, http_client
from core.sentences import SENTENCES, told
from engines.everos.client import failures
from tests.conftest import Person
from tests.console.people import remember
from tests.server import PROJECT

# Whose sentences may come to a page. Filters and the bodies of the API are written by programs, not by operators.
SPOKEN = (
    "accounts/services.py", "accounts/tokens.py", "accounts/forms.py", "console", "store", "engines", "documents",
    "core/http_client.py", "memories/services",
    "profiles/services.py", "resources/services", "resources/storage.py", "operations/bulk.py",
    "operations/operator_jobs.py",
    "operations/jobs.py", "operations/erase.py", "operations/purge.py", "operations/compaction.py",
)  # fmt: skip
UNSPOKEN = ("store/filters.py", "engines/embedded/llm", "memories/services/files.py")
NAMED = {
    "Forbidden", "EngineRefused", "EngineUnavailable", "OutcomeUnknown", "Unreadable", "Refused", "UpstreamFailed",
    "NotReached", "NoAnswer", "InvalidResponse", "EndpointError", "TypeMismatch",
    *(name for module in (errors, http_client) for name, kind in vars(module).items() if isinstance(kind, type)),
} - {"FieldError", "Unauthenticated"}  # fmt: skip


def modules() -> Iterator[Path]:
    for name in SPOKEN:
        path = PROJECT / name
        for found in sorted(path.rglob("*.py")) if path.is_dir() else [path]:
            if not str(found.relative_to(PROJECT)).startswith(UNSPOKEN):
                yield found


def sentences(path: Path) -> Iterator[str]:
    """What is raised with words of its own; names and numbers in them stand as 7."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and NAMED & set(ast.unparse(node.func).split(".")):
            for argument in node.args:
                text = said(argument)
                if text is not None and " " in text and any(char.isalpha() for char in text):
                    yield text


def said(node: ast.AST) -> str | None:
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else None
    if isinstance(node, ast.JoinedStr):
        return "".join(str(part.value) if isinstance(part, ast.Constant) else "7" for part in node.values)
    return None


def test_every_sentence_that_a_service_raises_is_known() -> None:
    found = [(str(path.relative_to(PROJECT)), text) for path in modules() for text in sentences(path)]
    assert len(found) > 90
    with translation.override("zh-hans"):
        assert [(path, text) for path, text in found if told(text) == text] == []


@pytest.mark.parametrize("sentence", SENTENCES)
def test_each_is_translated_and_english_stays_english(sentence: str) -> None:
    plain = sentence % dict.fromkeys(_places(sentence), "7") if "%(" in sentence else sentence
    assert told(plain) == plain
    with translation.override("zh-hans"):
        assert any("\u4e00" <= char <= "\u9fff" for char in told(plain))


def _places(sentence: str) -> list[str]:
    return [part.partition(")")[0] for part in sentence.split("%(")[1:]]


@pytest.mark.parametrize(
    ("sentence", "chinese"),
    [
        ("There is no such memory.", "没有这条记忆。"),
        ("Reading the document took longer than 30 seconds.", "读取文档超过 30 秒。"),
        ("category: must be one of a, b", "category: 必须是以下之一：a, b"),
        ("The memory service refused: the content is too large for it.", "记忆服务拒绝了请求：内容过大。"),
        (
            "The embedding endpoint took too long. Searched by keyword alone.",
            "嵌入端点响应超时。仅按关键词检索。",
        ),
        (
            "The embedding endpoint gives vectors of 3 dimensions instead of 4.",
            "嵌入端点返回的向量是 3 维，而不是 4 维。",
        ),
        (
            "The document has more pages than we read: send it in smaller parts.",
            "文档页数超出读取上限：请拆成几部分发送。",
        ),
        ("The memory service says of itself: degraded", "记忆服务报告的自身状态：degraded"),
        ("The connection failed", "连接失败"),
        ("This cannot be stopped.", "此任务无法停止。"),
        ("Something that nobody knows.", "Something that nobody knows."),
        ("100% of %(this)s", "100% of %(this)s"),
        ("", ""),
    ],
)
def test_places_and_causes_are_told_inside_their_sentence(sentence: str, chinese: str) -> None:
    with translation.override("zh-hans"):
        assert told(sentence) == chinese


@pytest.mark.parametrize("status", [400, 404, 413, 415, 422, 429, 500, 502, 503, 504])
def test_every_refusal_of_the_memory_service_is_translated_whole(status: int) -> None:
    with translation.override("zh-hans"):
        shown = told(failures.of_status(status, "CODE", None).detail)
    assert not re.search("[a-z]{3}", shown), shown


@pytest.mark.django_db
def test_pages_speak_chinese_and_the_api_english(admin_client: Client, alice: Person) -> None:
    row = remember(alice.owner).row
    headers = {"Accept-Language": "zh-CN"}
    page = admin_client.post(f"/admin/memory/m/{row}/restore/", headers=headers)
    assert page.status_code == 404
    assert "这条记忆不在回收站里。" in page.content.decode()
    answer = alice.client.get("/memories/none", headers=headers)
    assert answer.json()["detail"] == "There is no such memory."
