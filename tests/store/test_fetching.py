"""Files are fetched from the checked address only, within limits of size and time, and no error shows the address."""

from __future__ import annotations

import contextlib
import gzip
import os
import resource
import socket
import threading
import time
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest

from core.errors import EngineError, EngineUnavailable, Unreadable
from core.network.url_policy import Resolver
from core.persistence.files import INCOMING, root
from engines.embedded import fetching
from engines.embedded.engine import EmbeddedEngine
from engines.embedded.fetching import Fetcher
from resources import storage as files
from store.models import Memory
from store.types import ContentItem, Message
from tests.conftest import Person
from tests.object_store import wrong_answers
from tests.store.conftest import NOON_MS, search, text_message, texts
from tests.web import Answer, WebServer, dripping, page, raw, tls_contexts, web_server

TEXT = "付款期限为收到发票后 30 天内。".encode()
SECRET = "?X-Amz-Credential=s3cr3t&sv=%2Fa+b=="
PNG = bytes.fromhex("89504e470d0a1a0a0000000d4948445200000001000000010806000000") + bytes(60)
OPEN_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n"


@pytest.fixture(autouse=True)
def loopback_allowed(settings: Any, storage: Path) -> None:
    settings.MEMORY_GATEWAY_ALLOWED_PRIVATE_HOSTS = ["127.0.0.1", "files.example"]
    settings.MEMORY_GATEWAY_MAX_UPLOAD_BYTES = 100_000


@pytest.fixture
def web() -> Iterator[WebServer]:
    with web_server() as server:
        yield server


def resolves_to(*addresses: str) -> Resolver:
    return lambda _host, _port: addresses


def fetched(uri: str, fetch: Fetcher | None = None, **item: Any) -> bytes:
    """Return the bytes that the fetcher provides for an item of this address."""
    with (fetch or Fetcher())(ContentItem("doc", uri=uri, **{"name": "notes.txt"} | item)) as found:
        assert found.file is not None
        return found.file.read_bytes()


def refused(uri: str, fetch: Fetcher | None = None, **item: Any) -> EngineError:
    """Return the error of a failing fetch, and assert that neither it nor its traceback shows the address."""
    with pytest.raises(EngineError) as caught:
        fetched(uri, fetch, **item)
    shown = "".join(traceback.format_exception(caught.value)) + repr(caught.value) + caught.value.detail
    assert "s3cr3t" not in shown
    assert "X-Amz" not in shown
    assert list((root() / INCOMING).glob("*")) == []
    return caught.value


def test_the_fetched_file_is_removed_after_it_is_read(web: WebServer, storage: Path) -> None:
    web.pages["/a/notes.txt"] = page(TEXT)
    item = ContentItem("doc", uri="minio://b/notes.txt", name="notes.txt", ingest_uri=web.url("/a/notes.txt" + SECRET))
    with Fetcher()(item) as found:
        assert found.file is not None
        assert found.file.read_bytes() == TEXT
        assert found.file.stat().st_mode & 0o777 == 0o600
        assert (found.type, found.mime_type, found.name) == ("text", "text/plain", "notes.txt")
        assert (found.uri, found.ingest_uri) == (None, None)
    assert not found.file.exists()


def test_the_file_is_stored_where_the_worker_removes_old_temporaries(web: WebServer, storage: Path) -> None:
    web.pages["/a"] = page(TEXT)
    with Fetcher()(ContentItem("doc", uri=web.url("/a"), name="a.txt")) as found:
        assert found.file is not None
        assert found.file.parent == storage / INCOMING
        os.utime(found.file, (0, 0))
        assert files.remove_old_temporaries(1.0) == 1
        found.file.touch()  # the context manager removes it
    assert fetching.INCOMING == INCOMING


def test_a_signed_address_is_sent_unchanged(web: WebServer) -> None:
    web.pages["/b/%E5%90%88%20a"] = page(TEXT)
    fetched(web.url("/b/%E5%90%88%20a" + SECRET + "#part"))
    [head] = web.heads
    assert head.splitlines()[0] == f"GET /b/%E5%90%88%20a{SECRET} HTTP/1.1"
    assert f"\r\nHost: 127.0.0.1:{web.port}\r\n" in head
    assert "\r\nAccept-Encoding: identity\r\n" in head


def test_characters_that_a_request_line_cannot_carry_are_encoded(web: WebServer) -> None:
    web.pages["/%E5%90%88"] = page(TEXT)
    assert fetched(web.url("/合")) == TEXT


def test_proxies_of_the_environment_are_ignored(web: WebServer, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "https_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    web.pages["/a"] = page(TEXT)
    assert fetched(web.url("/a")) == TEXT


def test_the_name_is_resolved_once_and_its_address_connected_to(web: WebServer) -> None:
    looked_up: list[str] = []

    def resolver(host: str, port: int) -> list[str]:
        looked_up.append(host)
        return ["127.0.0.1"]

    web.pages["/a"] = page(TEXT)
    assert fetched(web.url("/a", host="files.example"), Fetcher(resolver=resolver)) == TEXT
    assert looked_up == ["files.example"]
    assert f"\r\nHost: files.example:{web.port}\r\n" in web.heads[0]


def test_the_next_address_is_tried_if_the_first_does_not_answer(web: WebServer) -> None:
    web.pages["/a"] = page(TEXT)
    fetch = Fetcher(resolver=resolves_to("127.0.0.2", "127.0.0.1"))
    assert fetched(web.url("/a", host="files.example"), fetch) == TEXT


@pytest.mark.parametrize(
    "answers", [["127.0.0.1"], ["93.184.215.14", "127.0.0.1"], ["::ffff:127.0.0.1"]], ids=["private", "mixed", "mapped"]
)
def test_a_name_that_resolves_to_a_private_address_is_not_connected_to(web: WebServer, answers: list[str]) -> None:
    web.pages["/a"] = page(TEXT)
    error = refused(web.url("/a" + SECRET, host="rebind.example"), Fetcher(resolver=resolves_to(*answers)))
    assert isinstance(error, Unreadable)
    assert "private network" in error.detail
    assert web.heads == []


def test_loopback_is_private_unless_allowed(web: WebServer, settings: Any) -> None:
    settings.MEMORY_GATEWAY_ALLOWED_PRIVATE_HOSTS = []
    assert "private network" in refused(web.url("/a" + SECRET)).detail
    assert web.heads == []


def test_a_redirect_is_not_followed(web: WebServer) -> None:
    web.pages["/a"] = page(b"", "302 Found", Location=web.url("/b"))
    web.pages["/b"] = page(TEXT)
    error = refused(web.url("/a" + SECRET))
    assert isinstance(error, Unreadable)
    assert "redirects to another one" in error.detail
    assert len(web.heads) == 1


@pytest.mark.parametrize(
    ("status", "kind", "words"),
    [
        ("204 No Content", Unreadable, "returned status 204 No Content"),
        ("206 Partial Content", Unreadable, "returned status 206 Partial Content"),
        ("401 Unauthorized", Unreadable, "returned status 401 Unauthorized"),
        ("403 s3cr3t", Unreadable, "returned status 403 Forbidden"),
        ("404 Not Found", Unreadable, "returned status 404 Not Found"),
        ("499 s3cr3t", Unreadable, "returned status 499."),
        ("408 Request Timeout", EngineUnavailable, "returned status 408"),
        ("429 Too Many Requests", EngineUnavailable, "returned status 429"),
        ("500 Internal Server Error", EngineUnavailable, "returned status 500"),
        ("503 Service Unavailable", EngineUnavailable, "returned status 503"),
    ],
)
def test_an_error_status_determines_whether_a_retry_can_help(
    web: WebServer, status: str, kind: type[EngineError], words: str
) -> None:
    web.pages["/a"] = page(b"", status)
    error = refused(web.url("/a" + SECRET))
    assert type(error) is kind
    assert words in error.detail


BROKEN: dict[str, tuple[Answer, type[EngineError], str]] = {
    "nothing": (raw(b""), EngineUnavailable, "cannot be reached"),
    "another protocol": (raw(b"SSH-2.0-OpenSSH_9.2\r\n"), Unreadable, "not valid HTTP"),
    "endless headers": (raw(b"HTTP/1.1 200 OK\r\n" + b"A: b\r\n" * 200), Unreadable, "not valid HTTP"),
    "less than it said": (page(TEXT, length=len(TEXT) + 1), EngineUnavailable, "ended"),
    "half a chunk": (
        raw(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nabc"),
        EngineUnavailable,
        "ended",
    ),
    "no chunk": (
        raw(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"),
        EngineUnavailable,
        "ended",
    ),
    "half a gzip": (page(gzip.compress(TEXT)[:-9], Content_Encoding="gzip"), EngineUnavailable, "ended"),
    "no gzip": (page(TEXT, Content_Encoding="gzip"), Unreadable, "unsupported compression"),
    "brotli": (page(TEXT, Content_Encoding="br"), Unreadable, "unsupported compression"),
}


@pytest.mark.parametrize(("answer", "kind", "words"), BROKEN.values(), ids=BROKEN.keys())
def test_an_invalid_response_determines_whether_a_retry_can_help(
    web: WebServer, answer: Answer, kind: type[EngineError], words: str
) -> None:
    web.pages["/a"] = answer
    error = refused(web.url("/a" + SECRET))
    assert type(error) is kind
    assert words in error.detail


def test_invalid_headers_bring_no_address_into_the_log(web: WebServer, caplog: pytest.LogCaptureFixture) -> None:
    web.pages["/a"] = raw(b"HTTP/1.1 200 OK\r\nno header\r\nContent-Length: 4\r\n\r\nrent")
    assert fetched(web.url("/a" + SECRET)) == b"rent"
    assert "127.0.0.1" not in caplog.text


def test_a_host_without_an_address_cannot_be_reached(web: WebServer) -> None:
    web.pages["/a"] = page(TEXT)
    assert "cannot be reached" in refused(web.url("/a" + SECRET), Fetcher(resolver=resolves_to())).detail
    assert web.heads == []


def test_an_unreachable_server_is_a_temporary_error() -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    for uri in (f"http://127.0.0.1:{port}/a{SECRET}", f"http://nowhere.invalid/a{SECRET}"):
        error = refused(uri)
        assert type(error) is EngineUnavailable
        assert "cannot be reached" in error.detail


def test_a_file_whose_declared_length_is_too_large_is_not_read(web: WebServer) -> None:
    web.pages["/a"] = dripping(b"HTTP/1.1 200 OK\r\nContent-Length: 100001\r\n\r\n")
    began = time.monotonic()
    assert "larger than the limit of 100000 bytes" in refused(web.url("/a" + SECRET)).detail
    assert time.monotonic() - began < 2


def test_a_file_of_undeclared_length_is_cut_off_at_the_limit(web: WebServer, settings: Any) -> None:
    web.pages["/fits"] = raw(OPEN_HEAD + b"x" * 100_000)
    web.pages["/endless"] = dripping(OPEN_HEAD, b"x" * 65_536, every_seconds=0)
    assert len(fetched(web.url("/fits"))) == 100_000
    error = refused(web.url("/endless" + SECRET))
    assert isinstance(error, Unreadable)
    assert "larger than the limit of 100000 bytes" in error.detail


@pytest.mark.parametrize("head", [b"HTTP/1.1 200 OK\r\nA", OPEN_HEAD], ids=["in the headers", "in the file"])
def test_a_slow_response_ends_at_the_deadline(web: WebServer, head: bytes) -> None:
    web.pages["/a"] = dripping(head)
    began = time.monotonic()
    error = refused(web.url("/a" + SECRET), Fetcher(seconds=0.4))
    assert type(error) is EngineUnavailable
    assert "in time" in error.detail
    assert 0.3 < time.monotonic() - began < 5


def test_a_silent_server_ends_at_the_deadline() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        for scheme in ("http", "https"):
            uri = f"{scheme}://127.0.0.1:{silent.getsockname()[1]}/a{SECRET}"
            assert "in time" in refused(uri, Fetcher(seconds=0.2)).detail


def test_a_gzip_response_is_decompressed(web: WebServer) -> None:
    web.pages["/a"] = page(gzip.compress(TEXT), Content_Encoding="gzip")
    assert fetched(web.url("/a")) == TEXT


def test_a_gzip_bomb_ends_at_the_limit(web: WebServer) -> None:
    bomb = gzip.compress(bytes(80 * 2**20), compresslevel=9)
    assert len(bomb) < 90_000
    web.pages["/a"] = page(bomb, Content_Encoding="gzip")
    assert "larger than the limit of 100000 bytes" in refused(web.url("/a" + SECRET)).detail


@pytest.mark.parametrize("tail", [b"junk", b"\x00\x00\x00\xff\xff"], ids=["behind its end", "of empty blocks"])
def test_endless_gzip_data_without_content_ends(web: WebServer, tail: bytes) -> None:
    packed = gzip.compress(b"")
    start = packed if tail == b"junk" else packed[:10]
    head = OPEN_HEAD.replace(b"\r\n\r\n", b"\r\nContent-Encoding: gzip\r\n\r\n")
    web.pages["/a"] = dripping(head + start, tail * 10_000, every_seconds=0)
    reason = refused(web.url("/a" + SECRET)).detail
    assert ("unsupported compression" if tail == b"junk" else "larger than the limit of 100000 bytes") in reason


def test_tls_verifies_the_name_of_the_connected_address(tmp_path: Path) -> None:
    server_tls, client_tls = tls_contexts(tmp_path, "files.example")
    with web_server(server_tls) as web:
        web.pages["/a"] = page(TEXT)
        uri = web.url("/a", host="files.example", scheme="https")
        assert fetched(uri, Fetcher(resolver=resolves_to("127.0.0.1"), tls=client_tls)) == TEXT
        assert web.names == ["files.example"]


@pytest.mark.parametrize("is_trusted", [True, False], ids=["another's name", "an unknown authority"])
def test_an_invalid_certificate_is_rejected(tmp_path: Path, is_trusted: bool) -> None:
    server_tls, client_tls = tls_contexts(tmp_path, "other.example" if is_trusted else "files.example")
    with web_server(server_tls) as web:
        web.pages["/a"] = page(TEXT)
        uri = web.url("/a" + SECRET, host="files.example", scheme="https")
        error = refused(uri, Fetcher(resolver=resolves_to("127.0.0.1"), tls=client_tls if is_trusted else None))
        assert isinstance(error, Unreadable)
        assert "TLS certificate" in error.detail
        assert web.heads == []


def test_the_bytes_determine_the_type(web: WebServer) -> None:
    web.pages["/a"] = page(PNG, Content_Type="application/pdf")
    with Fetcher()(ContentItem("doc", uri=web.url("/a"), name="chart")) as found:
        assert (found.type, found.mime_type) == ("image", "image/png")


@pytest.mark.parametrize(("sent", "kept"), [("KOI8-R", "; charset=koi8-r"), ("utf-8", ""), ("rot13", "")])
def test_the_encoding_that_a_server_declares_is_kept(web: WebServer, sent: str, kept: str) -> None:
    web.pages["/a"] = page("Привет".encode("koi8-r"), Content_Type=f'text/plain; charset="{sent}"')
    with Fetcher()(ContentItem("doc", uri=web.url("/a"), name="a.txt")) as found:
        assert found.mime_type == f"text/plain{kept}"


@pytest.mark.parametrize(
    ("name", "mime_type", "words"),
    [("a.pdf", None, "name or the type"), ("a", "image/png", "name or the type"), ("a.zip", None, "not accepted")],
)
def test_a_file_of_an_unexpected_type_is_rejected(web: WebServer, name: str, mime_type: str | None, words: str) -> None:
    web.pages["/a"] = page(b"PK\x03\x04" + bytes(60) if name == "a.zip" else TEXT)
    error = refused(web.url("/a" + SECRET), name=name, mime_type=mime_type)
    assert isinstance(error, Unreadable)
    assert words in error.detail


SHARED = "shared-documents"


@pytest.fixture
def shared(s3_server: str, settings: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The client of a store with a bucket that the operator allows."""
    values = {"ENDPOINT_URL_S3": s3_server, "ACCESS_KEY_ID": "test", "SECRET_ACCESS_KEY": "test"}
    for name, value in values.items():
        monkeypatch.setenv(f"AWS_{name}", value)
    settings.MEMORY_GATEWAY_EXTERNAL_BUCKETS = [SHARED]
    with contextlib.closing(boto3.client("s3", region_name="us-east-1")) as client:
        client.create_bucket(Bucket=SHARED)
        client.create_bucket(Bucket="private")
        client.put_object(Bucket="private", Key="a.txt", Body=TEXT)
        yield client


@pytest.mark.parametrize("scheme", ["s3", "minio", "S3"])
def test_an_object_in_an_allowed_bucket_is_read(shared: Any, scheme: str) -> None:
    shared.put_object(Bucket=SHARED, Key="合同/a b?.txt", Body=TEXT)
    assert fetched(f"{scheme}://{SHARED}/%E5%90%88%E5%90%8C/a%20b%3F.txt") == TEXT


@pytest.mark.parametrize(
    "uri", ["minio://private/a.txt", "s3://private/a.txt", f"s3://{SHARED}.example/a.txt", "s3://b/k"]
)
def test_an_object_in_another_bucket_is_refused_with_the_setting_that_allows_it(shared: Any, uri: str) -> None:
    error = refused(uri + SECRET)
    assert isinstance(error, Unreadable)
    assert "must be in a bucket that MEMORY_GATEWAY_EXTERNAL_BUCKETS names" in error.detail


@pytest.mark.parametrize("path", ["", "/", "/a.txt?versionId=1", "/a.txt#1", "/../private/a.txt"])
def test_an_address_in_an_allowed_bucket_names_one_object(shared: Any, path: str) -> None:
    assert "must name an object" in refused(f"s3://{SHARED}{path}").detail


def test_a_missing_object_and_a_missing_bucket_are_permanent_errors(shared: Any, settings: Any) -> None:
    settings.MEMORY_GATEWAY_EXTERNAL_BUCKETS = [SHARED, "nothing"]
    for uri in (f"s3://{SHARED}/none.txt", "s3://nothing/a.txt"):
        error = refused(uri)
        assert isinstance(error, Unreadable)
        assert "does not exist, or the gateway may not read it" in error.detail


def test_an_object_larger_than_an_upload_may_be_is_refused(shared: Any) -> None:
    shared.put_object(Bucket=SHARED, Key="a.txt", Body=b"x" * 100_001)
    assert "larger than the limit of 100000 bytes" in refused(f"s3://{SHARED}/a.txt").detail


def test_an_object_must_arrive_in_time(shared: Any) -> None:
    shared.put_object(Bucket=SHARED, Key="a.txt", Body=TEXT)
    error = refused(f"s3://{SHARED}/a.txt", Fetcher(seconds=0))
    assert isinstance(error, EngineUnavailable)
    assert "did not respond in time" in error.detail


@pytest.mark.parametrize("kind", ["slow_down", "drop", "short"])
def test_a_failing_object_store_is_a_temporary_error(shared: Any, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with wrong_answers(kind) as endpoint:
        monkeypatch.setenv("AWS_ENDPOINT_URL_S3", endpoint)
        error = refused(f"s3://{SHARED}/a.txt")
    assert isinstance(error, EngineUnavailable)
    assert "object store is unavailable" in error.detail


@pytest.mark.parametrize("uri", ["gopher://x/a", "ftp://x/a", "data:text/plain,a", "http://a@x/", "http://", ""])
def test_unsupported_addresses_are_rejected(uri: str) -> None:
    assert isinstance(refused(uri), Unreadable)


@pytest.fixture
def folder(tmp_path: Path, settings: Any) -> Path:
    allowed = tmp_path / "open"
    allowed.mkdir()
    settings.MEMORY_GATEWAY_FILE_URI_ROOTS = [allowed]
    return allowed


def test_a_file_in_an_allowed_folder_is_read_and_not_removed(folder: Path) -> None:
    path = folder / "合同 1.txt"
    path.write_bytes(TEXT)
    assert fetched(path.as_uri()) == TEXT
    assert fetched(f"FILE://localhost{path.as_uri().removeprefix('file://')}") == TEXT
    assert path.read_bytes() == TEXT


def test_errors_outside_the_allowed_folders_do_not_reveal_what_exists(folder: Path) -> None:
    outside = folder.parent / "secret.txt"
    outside.write_bytes(TEXT)
    (folder / "link.txt").symlink_to(outside)
    (folder / "up").symlink_to(folder.parent)
    paths = [outside, folder.parent / "nothing.txt", folder / "link.txt", folder / "up" / "secret.txt"]
    uris = [path.as_uri() for path in paths]
    uris += [f"{folder.as_uri()}/../secret.txt", f"{folder.as_uri()}/%2e%2e/secret.txt", f"{folder.as_uri()}-too/a.txt"]
    details = {refused(uri).detail for uri in uris}
    assert len(details) == 1
    assert "a folder that the operator allows" in details.pop()


def test_without_allowed_folders_no_file_is_read(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(TEXT)
    assert "a folder that the operator allows" in refused((tmp_path / "a.txt").as_uri()).detail


def test_paths_that_are_no_readable_file_are_rejected(folder: Path) -> None:
    os.mkfifo(folder / "pipe")
    (folder / "large.txt").write_bytes(b"x" * 100_001)
    (folder / "loop").symlink_to(folder / "loop")
    words = {
        "pipe": "does not point to a file",
        "": "does not point to a file",
        "nothing.txt": "does not exist",
        "large.txt": "larger than",
        "a%00b": "file:/// with a plain path",
        "loop": "file:/// with a plain path",
    }
    for name, expected in words.items():
        assert expected in refused(f"{folder.as_uri()}/{name}").detail


def test_a_full_disk_is_a_temporary_error(web: WebServer) -> None:
    web.pages["/a"] = page(b"x" * 90_000)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, hard))
    try:
        error = refused(web.url("/a" + SECRET))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert type(error) is EngineUnavailable
    assert "disk" in error.detail


def test_concurrent_fetches_are_limited(web: WebServer) -> None:
    may_answer = threading.Event()
    web.pages["/a"] = page(TEXT)

    def slow(connection: socket.socket) -> None:
        may_answer.wait(10)
        page(TEXT)(connection)

    web.pages["/slow"] = slow
    fetch = Fetcher(queue_seconds=0.1)
    threads = [threading.Thread(target=fetched, args=(web.url("/slow"), fetch)) for _ in range(fetching.MAX_FETCHES)]
    for thread in threads:
        thread.start()
    while len(web.heads) < fetching.MAX_FETCHES:
        time.sleep(0.01)
    with pytest.raises(EngineUnavailable) as caught:
        fetched(web.url("/a"), fetch)
    assert caught.value.retry_after_seconds
    may_answer.set()
    for thread in threads:
        thread.join()
    assert fetched(web.url("/a"), fetch) == TEXT


def linked(web: WebServer, path: str = "/notes.txt", *, at: int = NOON_MS) -> Message:
    return Message("alice", "user", at, (ContentItem("doc", uri=web.url(path), name="notes.txt"),))


@pytest.mark.django_db(transaction=True)
def test_a_message_with_an_address_stores_the_text_of_the_file(alice: Person, web: WebServer) -> None:
    web.pages["/notes.txt"] = page(TEXT)
    engine = EmbeddedEngine()
    engine.add(alice.owner, "chat:c1", [text_message("see the file"), linked(web)])
    engine.flush(alice.owner, "chat:c1")
    [hit] = search(engine, alice.owner, "付款期限")
    assert (hit.text, hit.raw["filename"], hit.raw["mime_type"]) == (TEXT.decode(), "notes.txt", "text/plain")


@pytest.mark.django_db(transaction=True)
def test_a_stored_file_is_not_fetched_again(alice: Person, web: WebServer) -> None:
    web.pages["/notes.txt"] = page(TEXT)
    engine = EmbeddedEngine()
    for _ in range(2):
        engine.add(alice.owner, "chat:c1", [linked(web)])
    assert len(web.heads) == Memory.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_two_addresses_with_the_same_file_name_are_two_files(alice: Person, web: WebServer) -> None:
    web.pages |= {"/a/notes.txt": page(b"rent"), "/b/notes.txt": page(b"deposit")}
    items = tuple(ContentItem("doc", uri=web.url(path), name="notes.txt") for path in web.pages)
    engine = EmbeddedEngine()
    engine.add(alice.owner, "chat:c1", [Message("alice", "user", NOON_MS, items)])
    assert sorted(texts(search(engine, alice.owner, "rent deposit"))) == ["deposit", "rent"]


@pytest.mark.django_db(transaction=True)
def test_an_unreachable_address_is_kept_as_text(alice: Person, web: WebServer) -> None:
    said = [text_message("see the file"), linked(web)]
    [kept] = EmbeddedEngine().add(alice.owner, "chat:c1", said).kept_as_text
    assert (kept.message, kept.item) == (1, 0)
    assert "404" in kept.cause
    assert Memory.objects.filter(text="see the file").exists()
    assert Memory.objects.filter(text__endswith=str(said[1].content[0].uri)).exists()
