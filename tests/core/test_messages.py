"""Services raise English messages; pages and REST errors render them in the reader's language."""

from __future__ import annotations

import ast
import pickle
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.test import Client
from django.utils import translation

from core import errors
from core.errors import FieldError, GatewayError, InvalidInput
from core.localization import localized
from core.messages import MessageError, Translatable, joined
from core.network import http_client
from documents.guards import DAMAGED
from operations.models import Job
from remote.client import failures
from tests.conftest import Person
from tests.console.people import remember
from tests.forked import PROJECT

CHINESE = {"Accept-Language": "zh-CN"}
PAGES = Translatable("Reading the document took longer than %(number)s seconds.", number=30)


# Packages whose errors reach pages and REST. Errors that only commands raise stay English.
RAISING_PACKAGES = ("accounts", "core", "documents", "engines", "memories", "profiles", "resources", "store", "console")


def in_chinese(text: str) -> str:
    with translation.override("zh-hans"):
        return localized(text)


@pytest.mark.parametrize(
    ("message", "chinese"),
    [
        (Translatable("There is no such memory."), "没有这条记忆。"),
        (PAGES, "读取文档用时超过 30 秒。"),
        (DAMAGED, "文档已损坏：请用原来的程序打开、另存后重新上传。"),
        (
            Translatable(
                "%(said)s Searched by keyword only.", said=Translatable("%(endpoint)s timed out.", endpoint="E")
            ),
            "E响应超时。仅按关键词检索。",
        ),
        (joined("; ", [PAGES, Translatable("is required")]), "读取文档用时超过 30 秒。; 必填"),
        (Translatable("100%"), "100%"),
        (Translatable("Nobody translated %(this)s.", this="this"), "Nobody translated this."),
        ("There is no such memory.", "没有这条记忆。"),
        ("", ""),
    ],
)
def test_a_message_is_english_and_translates_with_its_parameters(message: str, chinese: str) -> None:
    assert in_chinese(message) == chinese
    assert localized(message) == message


def test_a_pickled_message_keeps_its_template() -> None:
    copy = pickle.loads(pickle.dumps(joined(" ", [PAGES, DAMAGED])))  # noqa: S301 - our own
    assert copy == f"{PAGES} {DAMAGED}"
    assert in_chinese(copy) == f"{in_chinese(PAGES)} {in_chinese(DAMAGED)}"


def test_the_detail_of_invalid_input_names_every_field() -> None:
    error = InvalidInput.of_fields([FieldError("a", Translatable("is required")), FieldError("b", PAGES)])
    assert error.detail == "a: is required; b: Reading the document took longer than 30 seconds."
    assert in_chinese(error.detail) == "a: 必填; b: 读取文档用时超过 30 秒。"


def untranslatable(path: Path) -> Iterator[str]:
    """Yield the calls that create an error with a plain text instead of a `Message`."""
    kinds = [*vars(errors).values(), *vars(http_client).values()]
    names = {
        kind.__name__ for kind in kinds if isinstance(kind, type) and issubclass(kind, MessageError | GatewayError)
    }
    names |= {"FieldError", "of_field"}
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and names & set(ast.unparse(node.func).split(".")):
            texts = (ast.unparse(part) for part in node.args if isinstance(part, ast.Constant | ast.JoinedStr))
            yield from (f"{path}:{node.lineno} {text}" for text in texts if " " in text)


def test_errors_of_services_are_raised_with_translatable_messages() -> None:
    paths = [path for name in RAISING_PACKAGES for path in (PROJECT / name).rglob("*.py")]
    assert len(paths) > 200
    assert [found for path in paths for found in untranslatable(path)] == []


@pytest.mark.parametrize("status", [400, 404, 413, 415, 422, 429, 500, 502, 503, 504])
def test_every_engine_error_is_translated_completely(status: int) -> None:
    shown = in_chinese(failures.of_status(status, "CODE", None).detail)
    assert not re.search("[a-z]{3}", shown), shown


@pytest.mark.django_db
@pytest.mark.parametrize(
    "message", [PAGES, joined(" ", [PAGES, DAMAGED]), Translatable("Words of EverOS: 100%"), "plain", ""]
)
def test_a_message_from_the_database_can_be_translated(message: str) -> None:
    job = Job.objects.create(kind="purge", error=message)
    job.refresh_from_db()
    assert job.error == message
    assert in_chinese(job.error) == in_chinese(message)
    assert list(Job.objects.filter(error=message).values_list("error", flat=True)) == [message]


@pytest.mark.django_db
def test_pages_and_rest_errors_are_in_the_language_of_the_request(admin_client: Client, alice: Person) -> None:
    row = remember(alice.owner).row
    page = admin_client.post(f"/admin/memory/m/{row}/restore/", headers=CHINESE)
    assert page.status_code == 404
    assert "这条记忆不在回收站中。" in page.content.decode()

    answer = alice.client.get("/memories/none", headers=CHINESE)
    assert answer.json() | {"type": ""} == {
        "type": "", "title": "未找到", "status": 404, "detail": "没有这条记忆。", "code": "not_found", "errors": []
    }  # fmt: skip
    assert answer.headers["Content-Language"] == "zh-hans"
    assert "Accept-Language" in answer.headers["Vary"]


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("accepted", "language"),
    [
        ("", "en"),
        ("*", "en"),
        ("fr", "en"),
        ("en, zh;q=0.5", "en"),
        ("zh", "zh-hans"),
        ("zh-Hans", "zh-hans"),
        ("fr, zh-Hans-CN;q=0.9, en;q=0.8", "zh-hans"),
        ("zh-\0, ;;q=x", "en"),
    ],
)
def test_a_rest_error_is_in_the_first_accepted_language_or_english(accepted: str, language: str, alice: Person) -> None:
    alice.client.cookies["django_language"] = "zh-hans"  # of the panel: `Vary` does not name it
    answer = alice.client.get("/memories/none", headers={"Accept-Language": accepted})
    assert answer.headers["Content-Language"] == language
    assert (answer.json()["detail"] == "There is no such memory.") == (language == "en")


@pytest.mark.django_db(transaction=True)
def test_a_warning_is_in_the_accepted_language_too(alice: Person) -> None:
    body = {"filename": "a.txt", "source_uri": "minio://bucket/a.txt", "sha256": "x"}
    answer = alice.client.post("/resources/external", body, "application/json", headers=CHINESE)
    assert answer.json()["warnings"][0]["message"].startswith("已忽略")
    assert answer.headers["Content-Language"] == "zh-hans"
    assert "Accept-Language" in answer.headers["Vary"]


@pytest.mark.django_db
def test_the_errors_of_openclaw_stay_english(alice: Person) -> None:
    """Its clients look for these words."""
    answers = [
        Client().post("/tools/invoke", {}, "application/json", headers=CHINESE),
        alice.client.post("/tools/invoke", {"tool": "none"}, "application/json", headers=CHINESE),
        alice.client.post("/tools/invoke", {}, "application/json", headers=CHINESE),
    ]
    assert [answer.status_code for answer in answers] == [401, 404, 400]
    assert not [found for answer in answers for found in re.findall("[\u4e00-\u9fff]", answer.content.decode())]


@pytest.mark.django_db
def test_field_errors_are_in_the_language_of_the_request(alice: Person) -> None:
    body = {"query": 5, "top_k": 4711, "nonsense": 1}
    answer = alice.client.post("/memories/search", body, "application/json", headers=CHINESE)
    assert answer.status_code == 422
    messages = {item["field"]: item["message"] for item in answer.json()["errors"]}
    assert messages["query"] == "必须是文本"
    assert all(re.search("[\u4e00-\u9fff]", message) for message in messages.values()), messages
    assert answer.json()["title"] == "输入无效"
