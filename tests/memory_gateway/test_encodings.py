"""Compressed requests are refused, large answers compressed, and the OpenAPI document is sent once."""

from __future__ import annotations

import codecs
import gzip
from collections.abc import Iterator

import pytest
import requests

from tests.server import RunningServer, running_server


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    with running_server(tmp_path_factory.mktemp("encodings")) as running:
        yield running


@pytest.fixture(scope="module")
def auth(server: RunningServer) -> dict[str, str]:
    answer = requests.post(f"{server.url}/users", json={"user_id": "alice"}, timeout=30)
    return {"Authorization": f"Bearer {answer.json()['user_key']}"}


@pytest.mark.parametrize("path", ["/users", "/resources", "/memories/add", "/tools/invoke", "/mcp"])
@pytest.mark.parametrize("encoding", ["gzip", "deflate", "br", "gzip, identity"])
def test_a_compressed_body_is_415(server: RunningServer, auth: dict[str, str], path: str, encoding: str) -> None:
    headers = {**auth, "Content-Encoding": encoding, "Content-Type": "application/json"}
    answer = requests.post(f"{server.url}{path}", data=gzip.compress(b"{}"), headers=headers, timeout=30)
    assert answer.status_code == 415
    assert "Content-Encoding" in answer.text


def test_a_compressed_body_is_refused_in_the_language_of_the_request(server: RunningServer) -> None:
    headers = {"Content-Encoding": "gzip", "Accept-Language": "zh-CN"}
    answer = requests.post(f"{server.url}/users", data=gzip.compress(b"{}"), headers=headers, timeout=30)
    assert (answer.json()["title"], answer.headers["Content-Language"]) == ("不支持的类型", "zh-hans")
    assert answer.json()["detail"] == "请求体不能压缩。请去掉 Content-Encoding 后发送。"
    other_host = {"Host": "evil.example", "Accept-Language": "zh-CN"}
    answer = requests.get(f"{server.url}/health", headers=other_host, timeout=30)
    assert answer.json()["detail"] == "请求所用主机名不由本网关提供服务。"


def test_identity_is_no_encoding(server: RunningServer, auth: dict[str, str]) -> None:
    headers = {**auth, "Content-Encoding": "identity"}
    body = {"query": "tea"}
    assert requests.post(f"{server.url}/memories/search", json=body, headers=headers, timeout=30).status_code == 200


def test_a_byte_order_mark_is_ignored(server: RunningServer, auth: dict[str, str]) -> None:
    headers = {**auth, "Content-Type": "application/json"}
    data = codecs.BOM_UTF8 + b'{"query": "tea"}'
    for path, body in (
        ("/memories/search", data),
        ("/mcp", codecs.BOM_UTF8 + b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}'),
    ):
        answer = requests.post(f"{server.url}{path}", data=body, headers=headers, timeout=30)
        assert answer.status_code == 200, answer.text


@pytest.mark.parametrize("path", ["/openapi.json", "/api/schema/"])
def test_the_openapi_document_is_compressed_and_sent_once(server: RunningServer, path: str) -> None:
    answer = requests.get(f"{server.url}{path}", timeout=30)
    assert answer.headers["Content-Encoding"] == "gzip"
    assert int(answer.headers["Content-Length"]) < len(answer.content) / 4
    again = requests.get(f"{server.url}{path}", headers={"If-None-Match": answer.headers["ETag"]}, timeout=30)
    assert (again.status_code, again.content) == (304, b"")
    plain = requests.get(f"{server.url}{path}", headers={"Accept-Encoding": "identity"}, timeout=30)
    assert "Content-Encoding" not in plain.headers
    assert plain.content == answer.content


def test_large_answers_are_compressed_and_those_with_an_etag_never(server: RunningServer, auth: dict[str, str]) -> None:
    text = "Alice drinks tea. " * 400
    message = {"sender_id": "alice", "role": "user", "content": text}
    messages = [{**message, "timestamp": 1780300800000 + number} for number in range(10)]
    body = {"session_id": "chat:c1", "messages": messages}
    assert requests.post(f"{server.url}/memories/add", json=body, headers=auth, timeout=30).status_code == 200
    large = requests.get(f"{server.url}/memories", headers=auth, timeout=30)
    assert (large.headers["Content-Encoding"], len(large.json()["memories"])) == ("gzip", 10)
    small = requests.get(f"{server.url}/users/me/keys", headers=auth, timeout=30)
    assert "Content-Encoding" not in small.headers
    tagged = requests.get(f"{server.url}/api/v1/memories/user", headers=auth, timeout=30)
    assert not tagged.headers["ETag"].startswith("W/")
