"""The document's JSON line for every API request, without its secrets."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import orjson
import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from hypothesis import given, settings
from hypothesis import strategies as st

from core.logs import redact
from memory_gateway import request_log
from tests.conftest import Person

KEY = "uk_" + "Zx9" * 14
pytestmark = pytest.mark.urls("tests.memory_gateway.site_urls")


class Lines(logging.Handler):
    """Keeps what is logged."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.texts.append(self.format(record))

    @property
    def last(self) -> dict[str, Any]:
        return dict(json.loads(self.texts[-1]))


@pytest.fixture
def lines() -> Iterator[Lines]:
    handler = Lines()
    request_log.logger.addHandler(handler)
    yield handler
    request_log.logger.removeHandler(handler)


@pytest.fixture
def errors() -> Iterator[Lines]:
    """Records that reach the console, through the console's filters."""
    handler = Lines()
    console = logging.getLogger().handlers[0]
    handler.setFormatter(console.formatter)
    handler.filters = list(console.filters)
    logging.getLogger().addHandler(handler)
    yield handler
    logging.getLogger().removeHandler(handler)


def test_each_api_request_is_one_line_with_the_documented_fields(alice: Person, lines: Lines) -> None:
    alice.client.get("/users/me/keys?user_id=alice", headers={"X-Request-Id": "trace-1"})
    [text] = lines.texts
    line = json.loads(text)
    assert datetime.fromisoformat(line["request_time"]).tzinfo == UTC
    assert 0 < line["duration_ms"] < 10_000
    assert (line["method"], line["path"], line["client"]) == ("GET", "/users/me/keys", "127.0.0.1")
    assert line["url"] == "http://testserver/users/me/keys?user_id=alice"
    assert (line["request_id"], line["user_id"]) == ("trace-1", "alice")
    assert line["input"] == {"query": {"user_id": "alice"}, "body": None}
    assert line["output"]["status"] == 200
    assert line["output"]["body"]["keys"]


def test_json_bodies_are_shown_without_their_secrets(client: Client, lines: Lines) -> None:
    answer = client.post(
        "/test/echo", {"user_key": KEY, "note": f"my key is {KEY}", "n": 1}, content_type="application/json"
    )
    assert answer.json()["you_sent"]["user_key"] == KEY
    assert lines.last["input"]["body"] == {"user_key": "[REDACTED]", "note": "my key is [REDACTED]", "n": 1}
    assert KEY not in lines.texts[0]


def test_a_parameter_that_is_given_twice_is_a_list() -> None:
    assert request_log.redacted_query("a=1&b=&a=2&a=3") == {"a": ["1", "2", "3"], "b": ""}


@pytest.mark.parametrize("place", ["query", "path", "host"])
def test_no_secret_of_an_address_is_logged(client: Client, lines: Lines, place: str) -> None:
    path = {"query": f"/nothing?user_key={KEY}&password=hunter2hunter2", "path": f"/nothing/{KEY}", "host": "/nothing"}
    client.get(path[place], headers={"Host": KEY} if place == "host" else {})
    assert KEY not in lines.texts[0]
    assert "hunter2" not in lines.texts[0]


NAMES = ["user_key", "userKey", "api_key", "apikey", "API-Key", "access_key", "secret", "client_secret", "token"]
NAMES += ["accessToken", "refresh_token", "password", "passwd", "pwd", "passphrase", "authorization", "Authorization"]
NAMES += ["auth", "credential", "credentials", "cookie", "Set-Cookie", "signature", "session_key", "private_key"]
NAMES += ["csrftoken", "bearer", "db.password", "x-api-token", "keys", "secrets"]
assert len(NAMES) >= 30
PLAIN = st.text(max_size=20) | st.integers(-(2**63), 2**64 - 1) | st.booleans() | st.none()


@given(
    body=st.recursive(
        PLAIN, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    name=st.sampled_from(NAMES),
    depth=st.integers(0, 20),
    wrap=st.sampled_from(["{}", "see {} there", "https://h/x?X-Amz-Signature={}", "Bearer {}", "http://u:{}@h/"]),
)
def test_planted_secrets_are_found_at_any_depth_and_inside_strings(body: Any, name: str, depth: int, wrap: str) -> None:
    text = wrap.format(KEY)
    planted: Any = {"before": body, name: "hunter2hunter2", "text": text, "list": [text, {name: ["hunter2hunter2"]}]}
    for _ in range(depth):
        planted = {"inner": [planted]}
    for shown in (json.dumps(redact(planted)), logged(planted)):
        assert KEY not in shown
        assert "hunter2" not in shown


def logged(body: Any) -> str:
    return orjson.dumps(redact(body, request_log.MAX_BODY_CHARS)).decode()


SHREDS = ["key", "user_key", "Uk_", "rpc_", "Bearer", "basic", "sig", "TOKEN", "secret", "password", "x-amz-", "author"]
SHREDS += [
    "monkey",
    "ingest_uri",
    "csrf",
    "pwd",
    "\u212aey",
    "\u017fecret",
    "a" * 25,
    "=",
    ":",
    "%3D",
    "://",
    "@",
    "/",
    "&",
]
SHREDS += [" ", "\n", "\xa0", '"', "\\", "'", ",", "x9", "Zahlung", "密码", "\x01", "\x1c", "\u0130", "\u0131"]
SHREDDED = st.lists(st.sampled_from(SHREDS), max_size=7).map("".join)


@settings(max_examples=250)
@given(
    body=st.recursive(
        SHREDDED | st.none() | st.integers(0, 9),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(SHREDDED, inner, max_size=3),
    )
)
def test_a_short_body_is_redacted_whole(body: Any) -> None:
    assert json.loads(logged(body)) == json.loads(json.dumps(redact(body)))


@pytest.mark.parametrize(
    "body", [{"text": "on the 3rd: pay the author, basically"}, {"说": ["the monkey", {"n": 1.5}]}, ["x://y"]]
)
def test_everyday_words_are_no_secrets(body: Any) -> None:
    assert json.loads(logged(body)) == body


@pytest.mark.parametrize("said", ["Bearer\xa0p4ss", "password\u2003= p4ss", "pas\u017fword=p4ss", "to\u212aen: p4ss"])
def test_spaces_and_letters_beyond_ascii_hide_nothing(said: str) -> None:
    assert "p4ss" not in logged({"text": said})


def test_a_secret_that_is_cut_is_still_a_secret() -> None:
    for start in range(request_log.MAX_BODY_CHARS - 80, request_log.MAX_BODY_CHARS + 3):
        assert "p4ss" not in logged({"text": "x" * start + f" http://user:{'p4ss' * 8}@host/"})
        assert "271828" not in logged({"x" * start + "_user_key": 271828})


def test_nothing_is_shown_beyond_the_cut() -> None:
    shown = json.loads(logged({"text": "x" * 2 * request_log.MAX_BODY_CHARS, "user_key": KEY}))
    assert shown == {"text": "x" * (request_log.MAX_BODY_CHARS - 6) + "…", "…": "2 in all"}


def test_a_long_body_without_secrets_is_cut_where_its_room_ends() -> None:
    items = [{"text": "x" * 100, "n": number} for number in range(200)]
    shown = json.loads(logged({"items": items, "after": 1}))
    whole = shown["items"][:-2]  # the last item before the count is cut
    assert whole == items[: len(whole)]
    assert 12 < len(whole) < 20
    assert shown["items"][-1] == "… 200 in all"


def test_a_long_body_is_cut(client: Client, lines: Lines) -> None:
    client.post("/test/echo", {"items": ["x" * 100] * 10_000}, content_type="application/json")
    assert len(lines.texts[0]) < 3 * request_log.MAX_BODY_CHARS
    assert lines.last["input"]["body"]["items"][-1] == "… 10000 in all"


@given(st.text(max_size=50))
def test_whatever_a_path_holds_it_is_one_line(path: str) -> None:
    handler = Lines()
    request_log.logger.addHandler(handler)
    try:
        request_log.write(
            request_id="r",
            started_at=datetime.now(UTC),
            duration_ms=1.0,
            method="GET",
            origin="http://h",
            path="/" + path.encode("utf-8", "replace").decode(),
            query_string="",
            client="c",
            status=200,
        )
    finally:
        request_log.logger.removeHandler(handler)
    assert len(handler.texts[0].splitlines()) == 1 or not set(handler.texts[0]) & set("\n\r")


def test_an_upload_shows_its_type_and_size_only(client: Client, lines: Lines) -> None:
    client.post("/test/body", {"title": "my title", "file": SimpleUploadedFile("a.txt", b"the contents")})
    shown = lines.last["input"]["body"]
    assert shown["content_type"].startswith("multipart/form-data")
    assert shown["size_bytes"] > 12
    assert "the contents" not in lines.texts[0]
    assert "my title" not in lines.texts[0]


def test_a_stream_shows_its_type_only_and_streams_on(client: Client, lines: Lines) -> None:
    answer = client.get("/test/stream")
    assert lines.last["output"]["body"] == {"content_type": "text/plain", "size_bytes": None}
    assert b"".join(answer.streaming_content) == b"one two three"  # type: ignore[attr-defined]


def test_bodies_stay_out_where_the_operator_says_so(client: Client, lines: Lines, settings: Any) -> None:
    settings.MEMORY_GATEWAY_LOG_BODIES = False
    client.post("/test/echo", {"text": "private"}, content_type="application/json")
    assert "private" not in lines.texts[0]
    assert lines.last["input"]["body"] is None
    assert lines.last["output"] == {"status": 200, "body": None}


def test_static_files_and_operators_pages_are_no_api_requests(db: Any, client: Client, lines: Lines) -> None:
    client.get("/admin/login/")
    client.get("/static/docs/page.css").close()  # which closes the connection to the database too
    assert lines.texts == []


@pytest.mark.parametrize(
    ("given", "kept"),
    [("a.B_9-z", True), ("x" * 65, False), ("a b", False), ("a\tb", False), ("", False), ("uk_" + "k" * 43, False)],
)
def test_a_sane_request_id_is_kept_and_another_replaced(client: Client, lines: Lines, given: str, kept: bool) -> None:
    answer = client.get("/health", headers={"X-Request-Id": given})
    answered = answer.headers["X-Request-Id"]
    assert (answered == given) == kept
    assert answered
    assert lines.last["request_id"] == answered


def test_a_defect_is_a_500_with_the_request_id_and_one_traceback_without_secrets(
    client: Client, lines: Lines, errors: Lines
) -> None:
    client.raise_request_exception = False
    answer = client.get("/test/fail", headers={"X-Request-Id": "trace-2"})
    assert (answer.status_code, answer.headers["Content-Type"]) == (500, "application/problem+json")
    assert "trace-2" in answer.json()["detail"]
    assert "RuntimeError" not in answer.content.decode()
    [error] = errors.texts
    assert error.count("Traceback") == 1
    assert "[trace-2]" in error
    assert "uk_secret" not in error


def test_a_body_that_breaks_off_is_408_without_a_traceback(client: Client, errors: Lines, lines: Lines) -> None:
    class Broken:
        def read(self, size: int = -1) -> bytes:
            raise OSError("the client left")

        readline = read

    for path in ("/test/body", "/test/echo"):
        answer = client.generic(
            "POST", path, **{"wsgi.input": Broken(), "CONTENT_LENGTH": "10", "CONTENT_TYPE": "application/json"}
        )
        assert (answer.status_code, answer.json()["code"]) == (408, "request_timeout")
    assert errors.texts == []


def test_a_key_outside_the_header_is_answered_as_deprecated(alice: Person, client: Client) -> None:
    for answer in (
        client.get("/users/me/keys", {"user_id": "alice", "user_key": alice.user_key}),
        client.post("/users/me/keys", alice.credentials, content_type="application/json"),
    ):
        assert answer.status_code == 200
        assert answer.headers["Deprecation"] == "@1767225600"
    assert "Deprecation" not in alice.client.get("/users/me/keys").headers
