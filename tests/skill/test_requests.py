"""The requests of each command."""

from __future__ import annotations

import base64
import json
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from django.core.files.uploadhandler import MemoryFileUploadHandler
from django.http.multipartparser import MultiPartParser

from tests.skill.conftest import CLIENT, Answer, Asked, Run, StubGateway

PLAIN = [
    ("health", "GET", "/health"),
    ("list-keys", "GET", "/users/me/keys"),
    ("issue-key", "POST", "/users/me/keys"),
    ("rotate-key", "POST", "/users/me/keys/rotate"),
    ("describe-user u_1 --name Ann", "PATCH", "/users"),
    ("erase-user u_1 --confirm erase:u_1", "DELETE", "/users"),
    ("revoke-key k1", "DELETE", "/users/me/keys/k1"),
    ("get-expiry", "GET", "/users/me/expiry"),
    ("set-expiry {}", "PUT", "/users/me/expiry"),
    ("list-resources", "GET", "/resources"),
    ("get-resource r_1", "GET", "/resources/r_1"),
    ("delete-resource r_1", "DELETE", "/resources/r_1"),
    ("restore-resource r_1", "POST", "/resources/r_1/restore"),
    ("list-memories", "GET", "/memories"),
    ("get-memory m_1", "GET", "/memories/m_1"),
    ("delete-memory m_1", "DELETE", "/memories/m_1"),
    ("restore-memory m_1", "POST", "/memories/m_1/restore"),
    ("remove-override m_1", "DELETE", "/memories/m_1/override"),
    ("list-trash", "GET", "/memories/trash"),
    ("get-profiles", "GET", "/api/v1/memories/"),
    ("get-user-profile", "GET", "/api/v1/memories/user"),
    ("replace-user-profile {}", "PUT", "/api/v1/memories/user"),
    ("change-user-profile {}", "PATCH", "/api/v1/memories/user"),
    ("get-work-profile", "GET", "/api/v1/memories/work"),
    ("replace-work-profile {}", "PUT", "/api/v1/memories/work"),
    ("change-work-profile {}", "PATCH", "/api/v1/memories/work"),
    ("get-profile-prompt router", "GET", "/api/v1/memories/prompt"),
    ("get-profile-schema work", "GET", "/api/v1/memories/schema/work"),
    ("list-profile-history user", "GET", "/api/v1/memories/user/history"),
    ("get-profile-version user 3", "GET", "/api/v1/memories/user/history/3"),
    ("restore-profile work 2", "POST", "/api/v1/memories/work/restore/2"),
    ("list-sessions", "GET", "/sessions"),
    ("delete-session chat:c/1", "DELETE", "/sessions/chat%3Ac%2F1"),
    ("restore-session chat:c", "POST", "/sessions/chat%3Ac/restore"),
]


@pytest.mark.parametrize(("line", "method", "path"), PLAIN)
def test_a_command_asks_its_endpoint(run: Run, stub: StubGateway, line: str, method: str, path: str) -> None:
    stub.answers = [Answer(body='{"名": "值"}'.encode())]
    assert run(*line.split()).json == {"名": "值"}
    assert (stub.only.method, stub.only.path) == (method, path)


def test_the_key_goes_into_the_header_and_never_into_an_address_or_body(run: Run, stub: StubGateway) -> None:
    for line in ("list-resources", "search-memory q", "delete-memory m"):
        assert run(*line.split()).code == 0
    for asked in stub.asked:
        assert asked.headers["Authorization"] == "Bearer uk_secret"
        assert "uk_secret" not in asked.target
        assert b"uk_secret" not in asked.body


def test_the_user_id_goes_along_so_that_a_key_of_another_user_is_refused(run: Run, stub: StubGateway) -> None:
    run("search-memory", "q")
    assert stub.only.query == {"user_id": ["u_123"]}


def test_health_sends_no_key(run: Run, stub: StubGateway) -> None:
    assert run("health", USER_KEY="").code == 0
    assert run("health", PROVISIONING_TOKEN="operator-token").code == 0
    assert not [asked for asked in stub.asked if "Authorization" in asked.headers]


def test_create_user_takes_the_configured_user_and_the_provisioning_token(run: Run, stub: StubGateway) -> None:
    run("create-user", USER_KEY="")
    run("create-user", "u_9", PROVISIONING_TOKEN="operator-token")
    assert [asked.json for asked in stub.asked] == [{"user_id": "u_123"}, {"user_id": "u_9"}]
    assert "Authorization" not in stub.asked[0].headers
    assert stub.asked[1].headers["Authorization"] == "Bearer operator-token"


def test_what_is_not_given_is_not_sent(run: Run, stub: StubGateway) -> None:
    run("flush-memory", "chat:c_1")
    assert stub.only.json == {"session_id": "chat:c_1"}


@pytest.mark.parametrize(
    ("line", "sent"),
    [
        (["q"], {"scope": ["all_user_memory"]}),
        (["q", "--conversation-id", "c"], {"scope": ["current_chat", "all_user_memory"], "conversation_id": "c"}),
        (["q", "--scope", "resources"], {"scope": ["resources"]}),
        (["q", "--brief"], {"scope": ["all_user_memory"], "raw": False}),
    ],
)
def test_a_search_without_scope_is_in_everything_of_the_user(
    run: Run, stub: StubGateway, line: list[str], sent: dict[str, Any]
) -> None:
    stub.answers = [Answer(body=b'{"results": [], "meta": {}}')]
    assert run("search-memory", *line).code == 0
    assert stub.only.json == {"query": "q", **sent}


def test_search_sends_every_parameter_as_its_field(run: Run, stub: StubGateway) -> None:
    line = (
        "search-memory q --scope current_chat --scope resources --conversation-id c --agent-id a --method keyword "
        "--top-k -1 --radius 0.5 --no-profile --no-llm-rerank --explain --app-id app --project-id p"
    )
    assert run(*line.split(), "--filters", '{"timestamp": {"gte": 1}}').code == 0
    assert stub.only.json == {
        "query": "q",
        "scope": ["current_chat", "resources"],
        "conversation_id": "c",
        "agent_id": "a",
        "method": "keyword",
        "top_k": -1,
        "radius": 0.5,
        "include_profile": False,
        "enable_llm_rerank": False,
        "filters": {"timestamp": {"gte": 1}},
        "explain": True,
        "app_id": "app",
        "project_id": "p",
    }


def test_an_id_is_one_part_of_the_path_whatever_it_holds(run: Run, stub: StubGateway) -> None:
    run("get-resource", "../users?x=1#/值")
    assert stub.only.path == "/resources/..%2Fusers%3Fx%3D1%23%2F%E5%80%BC"


def test_a_path_of_the_base_address_stands_before_every_path(run: Run, stub: StubGateway) -> None:
    run("health", BASE_URL=f"{stub.url}/memory/")
    assert stub.only.path == "/memory/health"


def test_register_sends_what_is_documented(run: Run, stub: StubGateway) -> None:
    line = (
        "register-resource chart.png minio://b/chart.png --ingest-uri https://h/p --mime-type image/png --size-bytes 9"
    )
    assert run(*line.split(), "--no-wait").code == 0
    assert stub.only.headers["Prefer"] == "respond-async"
    assert stub.only.json == {
        "filename": "chart.png",
        "source_uri": "minio://b/chart.png",
        "ingest_uri": "https://h/p",
        "mime_type": "image/png",
        "size_bytes": 9,
    }


def test_a_change_of_a_profile_sends_its_options_and_reads_stdin(run: Run, stub: StubGateway) -> None:
    line = "change-user-profile - --merge-lists --agent-id helper --if-match"
    assert run(*line.split(), '"user-3"', stdin='{"timezone": null}').code == 0
    assert stub.only.headers["If-Match"] == '"user-3"'
    assert stub.only.json == {"content": {"timezone": None}, "merge_lists": True, "agent_id": "helper"}
    assert run("change-user-profile", "{").code == 2


# --- uploads ---------------------------------------------------------------------------------------------------------


def parsed(asked: Asked) -> tuple[Any, Any]:
    """Fields and files of a form, read by Django's own parser."""
    meta = {"CONTENT_TYPE": asked.headers["Content-Type"], "CONTENT_LENGTH": asked.headers["Content-Length"]}
    handler = MemoryFileUploadHandler()
    body = BytesIO(asked.body)
    handler.handle_raw_input(body, meta, len(asked.body), "")
    return MultiPartParser(meta, body, [handler]).parse()


@pytest.mark.parametrize(
    "name", ["合同 2026 年.txt", 'a "quoted" name.txt', "semi;colon=1.txt", 'x"; name="title.txt', "a\rb\n.txt"]
)
def test_an_upload_is_a_form_that_others_can_read(run: Run, stub: StubGateway, tmp_path: Path, name: str) -> None:
    content = bytes(range(256)) * 1000 + b"\r\n--"
    (tmp_path / name).write_bytes(content)
    assert run("upload-resource", str(tmp_path / name), "--title", "合同\r\n文件").code == 0
    fields, files = parsed(stub.only)
    assert fields.dict() == {"title": "合同\r\n文件"}
    assert files["file"].name == name.replace("\r", " ").replace("\n", " ")
    assert files["file"].read() == content


def test_a_file_name_cannot_end_its_quotes() -> None:
    assert CLIENT.quoted('a\\"b') == r'"a\\\"b"'


def test_an_upload_sends_the_scope_and_may_decline_to_wait(run: Run, stub: StubGateway, tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    file.write_text("a")
    line = f"upload-resource {file} --app-id app --project-id p --filename b.md --mime-type text/markdown --no-wait"
    assert run(*line.split()).code == 0
    fields, files = parsed(stub.only)
    assert fields.dict() == {"app_id": "app", "project_id": "p"}
    assert (files["file"].name, files["file"].content_type) == ("b.md", "text/markdown")
    assert stub.only.headers["Prefer"] == "respond-async"


def test_an_empty_file_is_sent_too(run: Run, stub: StubGateway, tmp_path: Path) -> None:
    file = tmp_path / "empty.txt"
    file.touch()
    assert run("upload-resource", str(file)).code == 0
    assert parsed(stub.only)[1]["file"].size == 0


def test_a_file_that_shrinks_under_way_is_not_sent_as_whole(tmp_path: Path) -> None:
    file = tmp_path / "a.log"
    file.write_bytes(b"x" * 100)
    with file.open("r+b") as opened:
        body = CLIENT.Multipart({}, opened, "a.log", "text/plain")
        opened.truncate(10)
        with pytest.raises(CLIENT.UsageError, match="truncated"):
            b"".join(body)


def test_a_file_that_grows_under_way_is_sent_as_it_was(tmp_path: Path) -> None:
    file = tmp_path / "a.log"
    file.write_bytes(b"x" * 100)
    with file.open("r+b") as opened:
        body = CLIENT.Multipart({}, opened, "a.log", "text/plain")
        with file.open("ab") as more:
            more.write(b"y" * 100)
        assert len(b"".join(body)) == body.length


# --- downloads -------------------------------------------------------------------------------------------------------


def test_a_download_is_saved_whole(run: Run, stub: StubGateway, tmp_path: Path) -> None:
    content = bytes(range(256)) * 1000
    stub.answers = [Answer(body=content)]
    output = tmp_path / "out.bin"
    answer = run("download-resource", "r_1", "--output", str(output)).json
    assert answer == {"resource_id": "r_1", "path": str(output), "size_bytes": len(content)}
    assert output.read_bytes() == content
    assert stub.only.path == "/resources/r_1/content"


def test_a_download_that_breaks_off_leaves_no_file(run: Run, stub: StubGateway, tmp_path: Path) -> None:
    stub.answers = [Answer(body=b"half", declared_bytes=100)]
    outcome = run("download-resource", "r_1", "--output", str(tmp_path / "out.bin"))
    assert outcome.code == 4
    assert not list(tmp_path.iterdir())


def test_a_download_overwrites_nothing(run: Run, tmp_path: Path) -> None:
    output = tmp_path / "mine.txt"
    output.write_text("mine")
    outcome = run("download-resource", "r_1", "--output", str(output))
    assert outcome.code == 2
    assert "mine.txt cannot be written: File exists" in outcome.err
    assert output.read_text() == "mine"


# --- messages --------------------------------------------------------------------------------------------------------


def test_a_text_becomes_a_message_of_the_user(run: Run, stub: StubGateway) -> None:
    assert run("add-memory", "chat:c", "--text", "我偏好简洁", "--timestamp", "1781172177000").code == 0
    message = {"role": "user", "sender_id": "u_123", "timestamp": 1781172177000, "content": "我偏好简洁"}
    assert stub.only.json == {"session_id": "chat:c", "messages": [message]}


def test_an_answer_of_the_agent_carries_its_own_sender(run: Run, stub: StubGateway) -> None:
    line = "add-memory chat:c --text - --role assistant --sender-id helper --timestamp 5"
    assert run(*line.split(), stdin="第一行\n第二行").code == 0
    message = {"role": "assistant", "sender_id": "helper", "timestamp": 5, "content": "第一行\n第二行"}
    assert stub.only.json["messages"] == [message]


def test_the_user_is_never_taken_for_the_sender_of_what_others_said(run: Run, stub: StubGateway) -> None:
    run("add-memory", "chat:c", "--role", "assistant", "--text", "hello")
    assert "sender_id" not in stub.only.json["messages"][0]


def test_the_present_is_the_default_time(run: Run, stub: StubGateway) -> None:
    run("add-memory", "chat:c", "--text", "hello")
    assert stub.only.json["messages"][0]["timestamp"] > 1_700_000_000_000


def test_attached_files_go_inline(run: Run, stub: StubGateway, tmp_path: Path) -> None:
    sound, page = tmp_path / "钟.WAV", tmp_path / "page.html"
    sound.write_bytes(b"RIFF\x00\xff")
    page.write_bytes(b"<p>hi")
    assert run("add-memory", "chat:c", "--text", "听", "--attach", str(sound), "--attach", str(page)).code == 0
    assert stub.only.json["messages"][0]["content"] == [
        {"type": "text", "text": "听"},
        {"type": "audio", "base64": base64.b64encode(b"RIFF\x00\xff").decode(), "ext": "wav", "name": "钟.WAV"},
        {"type": "html", "base64": base64.b64encode(b"<p>hi").decode(), "ext": "html", "name": "page.html"},
    ]


@pytest.mark.parametrize(
    ("name", "kind"),
    [("a.png", "image"), ("a.mp3", "audio"), ("a.pdf", "pdf"), ("a.csv", "text"), ("a.docx", "doc"), ("a.xyz", "doc")],
)
def test_a_file_is_attached_as_what_its_name_says(name: str, kind: str) -> None:
    assert CLIENT.content_type(CLIENT.guessed_type(name)) == kind


@pytest.mark.parametrize("wrap", [lambda items: items, lambda items: {"messages": items}])
def test_messages_from_stdin_get_what_they_lack(run: Run, stub: StubGateway, wrap: Any) -> None:
    items = [
        {"role": "user", "content": "a"},
        {"role": "assistant", "sender_id": "helper", "content": "b"},
        {"role": "user", "sender_id": "u_123", "timestamp": 7, "content": "c"},
    ]
    line = "add-memory chat:c --messages - --timestamp 100"
    assert run(*line.split(), stdin=json.dumps(wrap(items))).code == 0
    assert stub.only.json["messages"] == [
        {"role": "user", "sender_id": "u_123", "timestamp": 100, "content": "a"},
        {"role": "assistant", "sender_id": "helper", "timestamp": 101, "content": "b"},
        {"role": "user", "sender_id": "u_123", "timestamp": 7, "content": "c"},
    ]


def test_messages_may_come_from_a_file(run: Run, stub: StubGateway, tmp_path: Path) -> None:
    file = tmp_path / "messages.json"
    file.write_text('[{"role": "user", "content": "值", "timestamp": 1}]', encoding="utf-8")
    assert run("add-memory", "chat:c", "--messages", str(file)).code == 0
    assert stub.only.json["messages"][0]["content"] == "值"


def test_a_page_of_a_list_is_asked_for_in_the_query(run: Run, stub: StubGateway) -> None:
    assert run("list-sessions", "--deleted", "--limit", "5", "--cursor", "a+b").code == 0
    assert stub.only.query == {"user_id": ["u_123"], "deleted": ["true"], "limit": ["5"], "cursor": ["a+b"]}


def test_a_correction_names_its_text_as_the_endpoint_does(run: Run, stub: StubGateway) -> None:
    assert run("update-memory", "m/1", "--text", "修正", "--session-id", "chat:c").code == 0
    assert (stub.only.method, stub.only.path) == ("PATCH", "/memories/m%2F1")
    assert stub.only.json == {"override_text": "修正", "session_id": "chat:c"}
