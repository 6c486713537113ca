"""Files behind addresses: fetched from what was checked, bounded in every way, and never a trace of the address."""

from __future__ import annotations

import datetime
import gzip
import os
import resource
import socket
import ssl
import threading
import time
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from core.errors import EngineError, EngineUnavailable, Unreadable
from core.url_policy import Resolver
from engines.embedded import fetching
from engines.embedded.engine import EmbeddedEngine
from engines.embedded.fetching import Fetcher
from resources import storage as files
from store.models import Memory
from store.types import ContentItem, Message
from tests.conftest import Person
from tests.store.conftest import NOON_MS, ask, said, texts
from tests.web import Answer, WebServer, dripping, page, raw, web_server

TEXT = "付款期限为收到发票后 30 天内。".encode()
SECRET = "?X-Amz-Credential=s3cr3t&sv=%2Fa+b=="
PNG = bytes.fromhex("89504e470d0a1a0a0000000d4948445200000001000000010806000000") + bytes(60)
OPEN_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n"


@pytest.fixture(autouse=True)
def own_machine_allowed(settings: Any, storage: Path) -> None:
    settings.MEMORY_GATEWAY_ALLOWED_PRIVATE_HOSTS = ["127.0.0.1", "files.example"]
    settings.MEMORY_GATEWAY_MAX_UPLOAD_BYTES = 100_000


@pytest.fixture
def web() -> Iterator[WebServer]:
    with web_server() as server:
        yield server


def answering(*addresses: str) -> Resolver:
    return lambda _host, _port: addresses


def fetched(uri: str, fetch: Fetcher | None = None, **item: Any) -> bytes:
    """The bytes that are at hand for an item of this address."""
    with (fetch or Fetcher())(ContentItem("doc", uri=uri, **{"name": "notes.txt"} | item)) as found:
        assert found.file is not None
        return found.file.read_bytes()


def refused(uri: str, fetch: Fetcher | None = None, **item: Any) -> EngineError:
    """Why it is not fetched; wherever the error is shown, the address is not."""
    with pytest.raises(EngineError) as caught:
        fetched(uri, fetch, **item)
    shown = "".join(traceback.format_exception(caught.value)) + repr(caught.value) + caught.value.detail
    assert "s3cr3t" not in shown
    assert "X-Amz" not in shown
    assert list((files.root() / files.INCOMING).glob("*")) == []
    return caught.value


def test_the_file_is_at_hand_while_it_is_read_and_then_gone(web: WebServer, storage: Path) -> None:
    web.pages["/a/notes.txt"] = page(TEXT)
    item = ContentItem("doc", uri="minio://b/notes.txt", name="notes.txt", ingest_uri=web.url("/a/notes.txt" + SECRET))
    with Fetcher()(item) as found:
        assert found.file is not None
        assert found.file.read_bytes() == TEXT
        assert found.file.stat().st_mode & 0o777 == 0o600
        assert (found.type, found.mime_type, found.name) == ("text", "text/plain", "notes.txt")
        assert (found.uri, found.ingest_uri) == (None, None)
    assert not found.file.exists()


def test_it_arrives_where_the_sweeper_clears_away_what_a_crash_left(web: WebServer, storage: Path) -> None:
    web.pages["/a"] = page(TEXT)
    with Fetcher()(ContentItem("doc", uri=web.url("/a"), name="a.txt")) as found:
        assert found.file is not None
        assert found.file.parent == storage / files.INCOMING
        os.utime(found.file, (0, 0))
        assert files.remove_old_temporaries(1.0) == 1
        found.file.touch()  # closing it expects it there
    assert fetching.INCOMING == files.INCOMING


def test_what_was_signed_arrives_as_it_was_signed(web: WebServer) -> None:
    web.pages["/b/%E5%90%88%20a"] = page(TEXT)
    fetched(web.url("/b/%E5%90%88%20a" + SECRET + "#part"))
    [head] = web.heads
    assert head.splitlines()[0] == f"GET /b/%E5%90%88%20a{SECRET} HTTP/1.1"
    assert f"\r\nHost: 127.0.0.1:{web.port}\r\n" in head
    assert "\r\nAccept-Encoding: identity\r\n" in head


def test_what_no_request_line_can_hold_is_encoded(web: WebServer) -> None:
    web.pages["/%E5%90%88"] = page(TEXT)
    assert fetched(web.url("/合")) == TEXT


def test_no_proxy_of_the_environment_is_asked(web: WebServer, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "https_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    web.pages["/a"] = page(TEXT)
    assert fetched(web.url("/a")) == TEXT


def test_the_name_is_looked_up_once_and_that_answer_is_connected_to(web: WebServer) -> None:
    asked: list[str] = []

    def resolver(host: str, port: int) -> list[str]:
        asked.append(host)
        return ["127.0.0.1"]

    web.pages["/a"] = page(TEXT)
    assert fetched(web.url("/a", host="files.example"), Fetcher(resolver=resolver)) == TEXT
    assert asked == ["files.example"]
    assert f"\r\nHost: files.example:{web.port}\r\n" in web.heads[0]


def test_the_next_address_is_tried_where_the_first_does_not_answer(web: WebServer) -> None:
    web.pages["/a"] = page(TEXT)
    fetch = Fetcher(resolver=answering("127.0.0.2", "127.0.0.1"))
    assert fetched(web.url("/a", host="files.example"), fetch) == TEXT


@pytest.mark.parametrize(
    "answers", [["127.0.0.1"], ["93.184.215.14", "127.0.0.1"], ["::ffff:127.0.0.1"]], ids=["private", "mixed", "mapped"]
)
def test_a_name_that_leads_inside_by_now_is_not_connected_to(web: WebServer, answers: list[str]) -> None:
    web.pages["/a"] = page(TEXT)
    error = refused(web.url("/a" + SECRET, host="rebind.example"), Fetcher(resolver=answering(*answers)))
    assert isinstance(error, Unreadable)
    assert "private network" in error.detail
    assert web.heads == []


def test_this_machine_is_private_unless_allowed_by_name(web: WebServer, settings: Any) -> None:
    settings.MEMORY_GATEWAY_ALLOWED_PRIVATE_HOSTS = []
    assert "private network" in refused(web.url("/a" + SECRET)).detail
    assert web.heads == []


def test_a_redirect_is_not_followed(web: WebServer) -> None:
    web.pages["/a"] = page(b"", "302 Found", Location=web.url("/b"))
    web.pages["/b"] = page(TEXT)
    error = refused(web.url("/a" + SECRET))
    assert isinstance(error, Unreadable)
    assert "leads on to another one" in error.detail
    assert len(web.heads) == 1


@pytest.mark.parametrize(
    ("status", "kind", "words"),
    [
        ("204 No Content", Unreadable, "answered 204 No Content"),
        ("206 Partial Content", Unreadable, "answered 206 Partial Content"),
        ("401 Unauthorized", Unreadable, "answered 401 Unauthorized"),
        ("403 s3cr3t", Unreadable, "answered 403 Forbidden"),
        ("404 Not Found", Unreadable, "answered 404 Not Found"),
        ("499 s3cr3t", Unreadable, "answered 499."),
        ("408 Request Timeout", EngineUnavailable, "answered 408"),
        ("429 Too Many Requests", EngineUnavailable, "answered 429"),
        ("500 Internal Server Error", EngineUnavailable, "answered 500"),
        ("503 Service Unavailable", EngineUnavailable, "answered 503"),
    ],
)
def test_a_refusal_says_whether_another_try_can_help(
    web: WebServer, status: str, kind: type[EngineError], words: str
) -> None:
    web.pages["/a"] = page(b"", status)
    error = refused(web.url("/a" + SECRET))
    assert type(error) is kind
    assert words in error.detail


BROKEN: dict[str, tuple[Answer, type[EngineError], str]] = {
    "nothing": (raw(b""), EngineUnavailable, "cannot be reached"),
    "another protocol": (raw(b"SSH-2.0-OpenSSH_9.2\r\n"), Unreadable, "no file over HTTP"),
    "endless headers": (raw(b"HTTP/1.1 200 OK\r\n" + b"A: b\r\n" * 200), Unreadable, "no file over HTTP"),
    "less than it said": (page(TEXT, length=len(TEXT) + 1), EngineUnavailable, "broke off"),
    "half a chunk": (
        raw(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nabc"),
        EngineUnavailable,
        "broke off",
    ),
    "no chunk": (raw(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"), EngineUnavailable, "broke off"),
    "half a gzip": (page(gzip.compress(TEXT)[:-9], Content_Encoding="gzip"), EngineUnavailable, "broke off"),
    "no gzip": (page(TEXT, Content_Encoding="gzip"), Unreadable, "compressed in a way"),
    "brotli": (page(TEXT, Content_Encoding="br"), Unreadable, "compressed in a way"),
}


@pytest.mark.parametrize(("answer", "kind", "words"), BROKEN.values(), ids=BROKEN.keys())
def test_a_broken_answer_says_whether_another_try_can_help(
    web: WebServer, answer: Answer, kind: type[EngineError], words: str
) -> None:
    web.pages["/a"] = answer
    error = refused(web.url("/a" + SECRET))
    assert type(error) is kind
    assert words in error.detail


def test_odd_headers_bring_no_address_into_the_log(web: WebServer, caplog: pytest.LogCaptureFixture) -> None:
    web.pages["/a"] = raw(b"HTTP/1.1 200 OK\r\nno header\r\nContent-Length: 4\r\n\r\nrent")
    assert fetched(web.url("/a" + SECRET)) == b"rent"
    assert "127.0.0.1" not in caplog.text


def test_a_host_without_an_address_is_not_connected_to_by_its_name(web: WebServer) -> None:
    web.pages["/a"] = page(TEXT)
    assert "cannot be reached" in refused(web.url("/a" + SECRET), Fetcher(resolver=answering())).detail
    assert web.heads == []


def test_nobody_there_may_be_there_later() -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    for uri in (f"http://127.0.0.1:{port}/a{SECRET}", f"http://nowhere.invalid/a{SECRET}"):
        error = refused(uri)
        assert type(error) is EngineUnavailable
        assert "cannot be reached" in error.detail


def test_a_file_that_says_it_is_too_large_is_not_read(web: WebServer) -> None:
    web.pages["/a"] = dripping(b"HTTP/1.1 200 OK\r\nContent-Length: 100001\r\n\r\n")
    began = time.monotonic()
    assert "larger than 100000 bytes" in refused(web.url("/a" + SECRET)).detail
    assert time.monotonic() - began < 2


def test_a_file_that_hides_its_size_is_ended_at_the_limit(web: WebServer, settings: Any) -> None:
    web.pages["/fits"] = raw(OPEN_HEAD + b"x" * 100_000)
    web.pages["/endless"] = dripping(OPEN_HEAD, b"x" * 65_536, every_seconds=0)
    assert len(fetched(web.url("/fits"))) == 100_000
    error = refused(web.url("/endless" + SECRET))
    assert isinstance(error, Unreadable)
    assert "larger than 100000 bytes" in error.detail


@pytest.mark.parametrize("head", [b"HTTP/1.1 200 OK\r\nA", OPEN_HEAD], ids=["in the headers", "in the file"])
def test_a_drip_is_ended_when_the_time_for_all_of_it_is_over(web: WebServer, head: bytes) -> None:
    web.pages["/a"] = dripping(head)
    began = time.monotonic()
    error = refused(web.url("/a" + SECRET), Fetcher(seconds=0.4))
    assert type(error) is EngineUnavailable
    assert "in time" in error.detail
    assert 0.3 < time.monotonic() - began < 5


def test_a_silent_server_is_left_when_the_time_is_over() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        for scheme in ("http", "https"):
            uri = f"{scheme}://127.0.0.1:{silent.getsockname()[1]}/a{SECRET}"
            assert "in time" in refused(uri, Fetcher(seconds=0.2)).detail


def test_what_a_store_keeps_packed_is_unpacked(web: WebServer) -> None:
    web.pages["/a"] = page(gzip.compress(TEXT), Content_Encoding="gzip")
    assert fetched(web.url("/a")) == TEXT


def test_a_gzip_bomb_ends_at_the_limit(web: WebServer) -> None:
    bomb = gzip.compress(bytes(80 * 2**20), compresslevel=9)
    assert len(bomb) < 90_000
    web.pages["/a"] = page(bomb, Content_Encoding="gzip")
    assert "larger than 100000 bytes" in refused(web.url("/a" + SECRET)).detail


@pytest.mark.parametrize("tail", [b"junk", b"\x00\x00\x00\xff\xff"], ids=["behind its end", "of empty blocks"])
def test_packed_bytes_that_unpack_to_nothing_do_not_go_on(web: WebServer, tail: bytes) -> None:
    packed = gzip.compress(b"")
    start = packed if tail == b"junk" else packed[:10]
    head = OPEN_HEAD.replace(b"\r\n\r\n", b"\r\nContent-Encoding: gzip\r\n\r\n")
    web.pages["/a"] = dripping(head + start, tail * 10_000, every_seconds=0)
    reason = refused(web.url("/a" + SECRET)).detail
    assert ("compressed in a way" if tail == b"junk" else "larger than 100000 bytes") in reason


def certified(folder: Path, *names: str) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """A server's context for these names, and a client's that trusts its certificate alone."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "test")])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(one) for one in names]), critical=False)
        .sign(key, hashes.SHA256())
    )
    pem = made.public_bytes(serialization.Encoding.PEM)
    plain = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    chain = folder / "chain.pem"
    chain.write_bytes(key.private_bytes(*plain) + pem)
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(chain)
    return server, ssl.create_default_context(cadata=pem.decode())


def test_tls_proves_the_name_though_the_address_is_connected_to(tmp_path: Path) -> None:
    server_tls, client_tls = certified(tmp_path, "files.example")
    with web_server(server_tls) as web:
        web.pages["/a"] = page(TEXT)
        uri = web.url("/a", host="files.example", scheme="https")
        assert fetched(uri, Fetcher(resolver=answering("127.0.0.1"), tls=client_tls)) == TEXT
        assert web.names == ["files.example"]


@pytest.mark.parametrize("is_trusted", [True, False], ids=["another's name", "an unknown authority"])
def test_a_certificate_that_proves_nothing_is_refused(tmp_path: Path, is_trusted: bool) -> None:
    server_tls, client_tls = certified(tmp_path, "other.example" if is_trusted else "files.example")
    with web_server(server_tls) as web:
        web.pages["/a"] = page(TEXT)
        uri = web.url("/a" + SECRET, host="files.example", scheme="https")
        error = refused(uri, Fetcher(resolver=answering("127.0.0.1"), tls=client_tls if is_trusted else None))
        assert isinstance(error, Unreadable)
        assert "TLS certificate" in error.detail
        assert web.heads == []


def test_the_bytes_decide_what_it_is(web: WebServer) -> None:
    web.pages["/a"] = page(PNG, Content_Type="application/pdf")
    with Fetcher()(ContentItem("doc", uri=web.url("/a"), name="chart")) as found:
        assert (found.type, found.mime_type) == ("image", "image/png")


@pytest.mark.parametrize(
    ("name", "mime_type", "words"),
    [("a.pdf", None, "name or the type"), ("a", "image/png", "name or the type"), ("a.zip", None, "not taken here")],
)
def test_a_file_of_another_kind_is_refused(web: WebServer, name: str, mime_type: str | None, words: str) -> None:
    web.pages["/a"] = page(b"PK\x03\x04" + bytes(60) if name == "a.zip" else TEXT)
    error = refused(web.url("/a" + SECRET), name=name, mime_type=mime_type)
    assert isinstance(error, Unreadable)
    assert words in error.detail


@pytest.mark.parametrize("uri", ["minio://b/k", "s3://b/k", "S3://b/k"])
def test_an_object_of_a_store_needs_an_address_to_read(uri: str) -> None:
    error = refused(uri + SECRET)
    assert isinstance(error, Unreadable)
    assert "https:// address of the file is needed" in error.detail


@pytest.mark.parametrize("uri", ["gopher://x/a", "ftp://x/a", "data:text/plain,a", "http://a@x/", "http://", ""])
def test_what_is_no_address_for_us_is_refused(uri: str) -> None:
    assert isinstance(refused(uri), Unreadable)


@pytest.fixture
def folder(tmp_path: Path, settings: Any) -> Path:
    opened = tmp_path / "open"
    opened.mkdir()
    settings.MEMORY_GATEWAY_FILE_URI_ROOTS = [opened]
    return opened


def test_a_file_of_an_opened_folder_is_read_and_stays(folder: Path) -> None:
    path = folder / "合同 1.txt"
    path.write_bytes(TEXT)
    assert fetched(path.as_uri()) == TEXT
    assert fetched(f"FILE://localhost{path.as_uri().removeprefix('file://')}") == TEXT
    assert path.read_bytes() == TEXT


def test_outside_the_opened_folders_nobody_learns_what_is_there(folder: Path) -> None:
    outside = folder.parent / "secret.txt"
    outside.write_bytes(TEXT)
    (folder / "link.txt").symlink_to(outside)
    (folder / "up").symlink_to(folder.parent)
    paths = [outside, folder.parent / "nothing.txt", folder / "link.txt", folder / "up" / "secret.txt"]
    uris = [path.as_uri() for path in paths]
    uris += [f"{folder.as_uri()}/../secret.txt", f"{folder.as_uri()}/%2e%2e/secret.txt", f"{folder.as_uri()}-too/a.txt"]
    details = {refused(uri).detail for uri in uris}
    assert len(details) == 1
    assert "folders of MEMORY_GATEWAY_FILE_URI_ROOTS" in details.pop()


def test_without_opened_folders_no_file_is_read(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(TEXT)
    assert "FILE_URI_ROOTS" in refused((tmp_path / "a.txt").as_uri()).detail


def test_what_is_not_a_file_to_read_is_refused(folder: Path) -> None:
    os.mkfifo(folder / "pipe")
    (folder / "large.txt").write_bytes(b"x" * 100_001)
    (folder / "loop").symlink_to(folder / "loop")
    words = {
        "pipe": "not a file",
        "": "not a file",
        "nothing.txt": "no such file",
        "large.txt": "larger than",
        "a%00b": "plain path",
        "loop": "plain path",
    }
    for name, expected in words.items():
        assert expected in refused(f"{folder.as_uri()}/{name}").detail


def test_a_full_disk_is_a_trouble_that_passes(web: WebServer) -> None:
    web.pages["/a"] = page(b"x" * 90_000)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, hard))
    try:
        error = refused(web.url("/a" + SECRET))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert type(error) is EngineUnavailable
    assert "disk" in error.detail


def test_a_few_files_come_at_a_time_and_the_rest_is_told_to_wait(web: WebServer) -> None:
    go_on = threading.Event()
    web.pages["/a"] = page(TEXT)

    def slow(connection: socket.socket) -> None:
        go_on.wait(10)
        page(TEXT)(connection)

    web.pages["/slow"] = slow
    fetch = Fetcher(queue_seconds=0.1)
    threads = [threading.Thread(target=fetched, args=(web.url("/slow"), fetch)) for _ in range(fetching.AT_ONCE)]
    for thread in threads:
        thread.start()
    while len(web.heads) < fetching.AT_ONCE:
        time.sleep(0.01)
    with pytest.raises(EngineUnavailable) as caught:
        fetched(web.url("/a"), fetch)
    assert caught.value.retry_after_seconds
    go_on.set()
    for thread in threads:
        thread.join()
    assert fetched(web.url("/a"), fetch) == TEXT


def linked(web: WebServer, path: str = "/notes.txt", *, at: int = NOON_MS) -> Message:
    return Message("alice", "user", at, (ContentItem("doc", uri=web.url(path), name="notes.txt"),))


@pytest.mark.django_db(transaction=True)
def test_a_message_with_an_address_is_remembered_with_what_lies_there(alice: Person, web: WebServer) -> None:
    web.pages["/notes.txt"] = page(TEXT)
    engine = EmbeddedEngine()
    engine.add(alice.owner, "chat:c1", [said("see the file"), linked(web)])
    engine.flush(alice.owner, "chat:c1")
    [hit] = ask(engine, alice.owner, "付款期限")
    assert (hit.text, hit.raw["filename"], hit.raw["mime_type"]) == (TEXT.decode(), "notes.txt", "text/plain")


@pytest.mark.django_db(transaction=True)
def test_what_is_remembered_is_not_fetched_again(alice: Person, web: WebServer) -> None:
    web.pages["/notes.txt"] = page(TEXT)
    engine = EmbeddedEngine()
    for _ in range(2):
        engine.add(alice.owner, "chat:c1", [linked(web)])
    assert len(web.heads) == Memory.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_two_addresses_with_one_file_name_are_two(alice: Person, web: WebServer) -> None:
    web.pages |= {"/a/notes.txt": page(b"rent"), "/b/notes.txt": page(b"deposit")}
    items = tuple(ContentItem("doc", uri=web.url(path), name="notes.txt") for path in web.pages)
    engine = EmbeddedEngine()
    engine.add(alice.owner, "chat:c1", [Message("alice", "user", NOON_MS, items)])
    assert sorted(texts(ask(engine, alice.owner, "rent deposit"))) == ["deposit", "rent"]


@pytest.mark.django_db(transaction=True)
def test_of_a_call_with_a_dead_address_nothing_is_kept(alice: Person, web: WebServer) -> None:
    with pytest.raises(Unreadable, match="404"):
        EmbeddedEngine().add(alice.owner, "chat:c1", [said("see the file"), linked(web)])
    assert not Memory.objects.exists()
