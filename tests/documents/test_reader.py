"""Documents become text with pages and headings; failures stay in the sandboxed child process."""

from __future__ import annotations

import os
import resource
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

import pytest

from core.errors import EngineUnavailable, Unreadable
from documents import mime_types as mt
from documents.child import PROJECT, server, started
from documents.document import DEFAULT_LIMITS, Block, Document, Limits
from documents.reader import read_document
from tests import bombs

Read = Callable[..., Document]
_T = TypeVar("_T")
_linux_only = pytest.mark.skipif(sys.platform != "linux", reason="needs Linux's /proc and namespaces")


@pytest.fixture
def read(tmp_path: Path) -> Read:
    """Return a function that writes bytes to a file and reads it."""

    def read(content: bytes, mime: str, limits: Limits = DEFAULT_LIMITS) -> Document:
        path = tmp_path / "file"
        path.write_bytes(content)
        return read_document(path, mime, limits=limits)

    return read


def _children_of(parent: int) -> list[int]:
    """Return the readers of documents that a gateway started, itself or by its server."""
    servers = _started_by(parent, b"reader_server")
    return [
        *_started_by(parent, b"_child"),
        *(child for one in servers for child in _started_by(one, b"reader_server")),
    ]


def _started_by(parent: int, module: bytes) -> Iterator[int]:
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            command = stat.with_name("cmdline").read_bytes()
            parent_pid = int(stat.read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
        if parent_pid == parent and module in command:
            yield int(stat.parent.name)


# --- plain text ------------------------------------------------------------------------------------------------------


def test_plain_text_becomes_paragraphs(read: Read) -> None:
    document = read(b"first\nline\n\n \n\nsecond\r\n\r\nthird\n", mt.PLAIN)
    assert [block.text for block in document.blocks] == ["first\nline", "second", "third"]
    assert not document.truncated


def test_plain_text_starts_no_process(read: Read) -> None:
    server.stop()
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_minflt
    read("名前,東京".encode("cp932"), mt.PLAIN)
    assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_minflt == before
    read(b"<p>hello", mt.HTML)
    server.stop()
    assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_minflt > before


def test_markdown_keeps_its_headings(read: Read) -> None:
    document = read("intro\n\n# 合同 #\nunder it\n\n```\n# no heading\n```\n".encode(), "text/markdown")
    assert document.blocks == (
        Block("intro", None, None),
        Block("合同", None, "合同", "heading"),
        Block("under it", None, "合同"),
        Block("```\n# no heading\n```", None, "合同"),
    )


def test_values_in_rows_are_a_table(read: Read) -> None:
    (block,) = read(b"name,price\n\nball,3\n", "text/csv").blocks
    assert block == Block("name | price\nball | 3", None, None, "table")


@pytest.mark.parametrize("mime", ["application/toml", "text/x-unheard-of"])
def test_other_text_types_are_read_unchanged(read: Read, mime: str) -> None:
    assert read(b"<a>1</a>", mime).text == "<a>1</a>"


def test_text_beyond_the_limit_is_truncated(read: Read) -> None:
    document = read("合同".encode() * 100, mt.PLAIN, Limits(text_bytes=10))
    assert document == Document((Block("合同合", None, None),), truncated=True)


def test_paragraphs_beyond_the_limit_are_truncated(read: Read) -> None:
    document = read(b"a\n\nb\n\nc\n\nd", mt.PLAIN, Limits(blocks=3))
    assert (document.text, document.truncated) == ("a\n\nb\n\nc", True)


# --- documents -------------------------------------------------------------------------------------------------------


def test_a_pdf_keeps_its_pages(read: Read) -> None:
    document = read(bombs.pages_pdf(["alpha on one", "beta on two", "gamma on three"]), mt.PDF)
    assert [(block.text, block.page) for block in document.blocks] == [
        ("alpha on one", 1),
        ("beta on two", 2),
        ("gamma on three", 3),
    ]


def test_html_keeps_headings_lists_and_tables(read: Read) -> None:
    html = (
        "<title>合同</title><h1>付款</h1><p>三十天<script>bad()</script></p><ul><li>a<li>b</ul>"
        "<table><tr><th>n<th>p<tr><td>1<td>2</table><img src='data:image/png;base64,AAAA' alt='a seal'>"
    )
    assert read(html.encode(), mt.HTML).blocks == (
        Block("合同", None, "合同", "heading"),
        Block("付款", None, "付款", "heading"),
        Block("三十天", None, "付款"),
        Block("a\nb", None, "付款"),
        Block("n | p\n1 | 2", None, "付款", "table"),
        Block("a seal", None, "付款"),
    )


@pytest.mark.parametrize(
    ("meta", "encoding"), [("", "utf-8"), ("", "utf-16"), ("<meta charset=gbk>", "gbk"), ("", "big5")]
)
def test_html_is_read_in_its_encoding(read: Read, meta: str, encoding: str) -> None:
    text = "這是一個測試文件"
    assert read(f"<html>{meta}<p>{text}</p>".encode(encoding), mt.HTML).text == text


def test_a_word_document_has_text_without_page_numbers(read: Read) -> None:
    content = bombs.docx(
        bombs.paragraph("合同一") + '<w:p><w:r><w:br w:type="page"/></w:r></w:p>' + bombs.paragraph("b")
    )
    assert read(content, mt.DOCX).blocks == (Block("合同一", None, None), Block("b", None, None))


def test_a_sheet_is_a_table_under_its_name(read: Read) -> None:
    cell = '<c t="inlineStr"><is><t>{}</t></is></c>'.format
    rows = f"<row>{cell('name')}{cell('price')}</row><row>{cell('ball')}{cell('3 | 4')}</row>"
    document = read(bombs.archive(bombs.xlsx_members(rows)), mt.XLSX)
    assert document.blocks[0] == Block("Sheet", None, "Sheet", "heading")
    assert document.blocks[1].text.split("\n")[0] == "name | price"
    assert document.blocks[1].heading == "Sheet"


def test_a_mail_is_read_with_its_attachments(read: Read) -> None:
    mail = (
        b"From: a@example.org\r\nSubject: =?utf-8?b?5ZCI5ZCM?=\r\nMIME-Version: 1.0\r\n"
        b"Content-Type: multipart/mixed; boundary=X\r\n\r\n--X\r\nContent-Type: text/plain\r\n\r\nthe body\r\n"
        b"--X\r\nContent-Type: text/plain\r\nContent-Disposition: attachment; filename=a.txt\r\n\r\nadded\r\n--X--\r\n"
    )
    text = read(mail, mt.EML).text
    assert "合同" in text
    assert "the body" in text
    assert "added" in text


def test_long_text_of_a_document_is_truncated(read: Read) -> None:
    document = read(bombs.docx(bombs.paragraph("合" * 50) * 3), mt.DOCX, Limits(text_bytes=200))
    assert (len(document.text.replace("\n", "")), document.truncated) == (66, True)
    document = read(bombs.docx(bombs.paragraph("one") * 5), mt.DOCX, Limits(blocks=2))
    assert (document.text, document.truncated) == ("one\n\none", True)


@pytest.mark.parametrize("mime", ["image/png", "audio/mpeg", "video/mp4"])
def test_images_audio_and_video_are_not_parsed(read: Read, mime: str) -> None:
    assert read(b"whatever", mime) == Document(())


@pytest.mark.parametrize("mime", [mt.PDF, mt.DOCX, mt.PLAIN])
def test_an_empty_file_has_no_text(read: Read, mime: str) -> None:
    assert read(b"", mime) == Document(())


# --- what cannot be read ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mime", [mt.OCTET_STREAM, "application/x-unheard-of", ""])
def test_unknown_types_are_refused(read: Read, mime: str) -> None:
    with pytest.raises(Unreadable, match="contain no text"):
        read(b"hello", mime)


@pytest.mark.parametrize("mime", [mt.PDF, mt.DOCX, mt.XLSX, mt.EPUB, mt.XLS, mt.DOC, mt.PPT, mt.MSG, mt.ZIP])
def test_random_bytes_are_reported_as_damaged(read: Read, mime: str) -> None:
    with pytest.raises(Unreadable, match="is damaged"):
        read(b"garbage" * 100, mime)


def test_a_missing_file_is_unreadable(tmp_path: Path) -> None:
    with pytest.raises(Unreadable, match="is missing"):
        read_document(tmp_path / "absent", mt.PDF)


def test_a_file_that_cannot_be_opened_is_a_temporary_error(tmp_path: Path) -> None:
    with pytest.raises(EngineUnavailable):
        read_document(tmp_path, mt.PLAIN)


def test_a_process_that_cannot_start_is_a_temporary_error(read: Read, monkeypatch: pytest.MonkeyPatch) -> None:
    server.stop()
    monkeypatch.setattr(sys, "executable", "/absent/python")
    with pytest.raises(EngineUnavailable, match="could not be started"):
        read(b"<p>hello", mt.HTML)
    server.stop()
    monkeypatch.setattr(sys, "executable", "/bin/true")
    with pytest.raises(EngineUnavailable, match="could not be started"):
        read(b"<p>hello", mt.HTML)
    monkeypatch.undo()
    assert read(b"<p>hello", mt.HTML).text == "hello", "a document is read without the server"
    assert list(_started_by(os.getpid(), b"reader_server")) == []
    server.stop()


def test_a_slow_document_ends_at_the_time_limit(read: Read) -> None:
    start = time.monotonic()
    with pytest.raises(Unreadable, match=r"took longer than 0\.7 seconds"):
        read(bombs.recursive_pages_pdf()[2], mt.PDF, Limits(seconds=0.7))
    assert time.monotonic() - start < 20
    _wait_for(lambda: not _children_of(os.getpid()))


@pytest.mark.slow
def test_a_document_without_progress_ends_at_the_page_time_limit(read: Read) -> None:
    start = time.monotonic()
    with pytest.raises(Unreadable, match="longer than 5 seconds a page"):
        read(bombs.recursive_pages_pdf()[2], mt.PDF)
    assert time.monotonic() - start < 30
    with pytest.raises(Unreadable, match=r"longer than 0\.5 seconds a page"):
        read(bombs.multiplying_forms_pdf()[2], mt.PDF, Limits(page_seconds=0.5))
    with pytest.raises(Unreadable, match=r"longer than 0\.1 seconds a page"):
        read(bombs.deep_inline_html()[2], mt.HTML, Limits(page_seconds=0.1, page_bytes=2**30))


def test_the_page_time_limit_applies_to_each_page(read: Read) -> None:
    texts = [f"page {number}" for number in range(300)]
    assert len(read(bombs.pages_pdf(texts), mt.PDF, Limits(page_seconds=0.1)).blocks) == 300


def test_a_document_that_needs_too_much_memory_is_rejected(read: Read) -> None:
    with pytest.raises(Unreadable, match="needed more than 120 MB"):
        read(bombs.shared_string_xlsx()[2], mt.XLSX, Limits(memory_bytes=120 * 2**20, page_seconds=30))
    _wait_for(lambda: not _children_of(os.getpid()))


@pytest.mark.slow
def test_concurrent_readers_all_finish(read: Read, tmp_path: Path) -> None:
    path = tmp_path / "paper.pdf"
    path.write_bytes(bombs.pages_pdf(["hello"]))
    with ThreadPoolExecutor(6) as pool:
        assert {document.text for document in pool.map(lambda _: read_document(path, mt.PDF), range(6))} == {"hello"}


_READ = """
import sys
from pathlib import Path
from typing import TypeVar
from documents.reader import read_document
read_document(Path(sys.argv[1]), "application/pdf")
"""


@_linux_only
def test_a_reader_does_not_outlive_the_gateway(tmp_path: Path) -> None:
    path = tmp_path / "endless.pdf"
    path.write_bytes(bombs.multiplying_forms_pdf()[2])
    with subprocess.Popen([sys.executable, "-c", _READ, str(path)], cwd=PROJECT) as gateway:
        children = _wait_for(lambda: _children_of(gateway.pid))
        _wait_for(lambda: "Threads:\t1\n" not in Path(f"/proc/{children[0]}/status").read_text())  # it parses now
        gateway.send_signal(signal.SIGKILL)
    _wait_for(lambda: not any(_is_running(child) for child in children))


@_linux_only
def test_the_server_forks_a_child_for_each_document_and_starts_again(read: Read) -> None:
    server.stop()
    assert [block.text for block in read(b"<p>one", mt.HTML).blocks] == ["one"]
    (first,) = _started_by(os.getpid(), b"reader_server")
    assert [block.text for block in read(b"<p>two", mt.HTML).blocks] == ["two"]
    assert list(_started_by(os.getpid(), b"reader_server")) == [first]
    _wait_for(lambda: not _children_of(os.getpid()))
    os.kill(first, signal.SIGKILL)
    assert [block.text for block in read(b"<p>three", mt.HTML).blocks] == ["three"]
    (second,) = _started_by(os.getpid(), b"reader_server")
    assert second != first


@_linux_only
def test_forked_children_are_in_the_sandbox(tmp_path: Path) -> None:
    path = tmp_path / "endless.pdf"
    path.write_bytes(bombs.multiplying_forms_pdf()[2])
    limits = Limits(seconds=20)
    job = {"mime": mt.PDF, "charset": None}
    with path.open("rb") as file, started("documents.reader_child", file, job, limits) as process:
        folder = Path(f"/proc/{process.pid}")
        _wait_for(lambda: "Threads:\t1\n" not in (folder / "status").read_text())  # it parses now
        found = {line.partition("  ")[0]: line.split()[-2] for line in (folder / "limits").read_text().splitlines()}
        assert (found["Max file size"], found["Max open files"], found["Max core file size"]) == ("0", "64", "0")
        assert found["Max cpu time"] == "41"
        assert (folder / "oom_score_adj").read_text() == "1000\n"
        assert "NoNewPrivs:\t1\n" in (folder / "status").read_text()
        assert len(list((folder / "fd").iterdir())) < 20
        network = (folder / "ns/net").readlink()
    _wait_for(lambda: not _is_running(process.pid))
    if subprocess.run(["unshare", "--user", "--net", "true"], check=False).returncode == 0:
        assert network != Path("/proc/self/ns/net").readlink()


def _wait_for(condition: Callable[[], _T], seconds: float = 10) -> _T:
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return found


def _is_running(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


_SANDBOXED = """
import errno, os, socket, sys
from documents.document import Limits
from documents.sandbox import enter_sandbox
enter_sandbox(os.getppid(), Limits())
try:
    with open(sys.argv[1], "w") as file:
        file.write("x")
except OSError as error:
    print(errno.errorcode[error.errno])
try:
    socket.create_connection(("127.0.0.1", int(sys.argv[2])), 2)
except OSError as error:
    print(errno.errorcode[error.errno])
"""


@_linux_only
def test_the_sandbox_has_no_writable_files_and_no_network(tmp_path: Path) -> None:
    unshare = subprocess.run(
        [sys.executable, "-c", "import ctypes; raise SystemExit(ctypes.CDLL(None).unshare(0x50000000) != 0)"],
        check=False,
    )
    with socket.create_server(("127.0.0.1", 0)) as listener:
        sandboxed = subprocess.run(
            [sys.executable, "-c", _SANDBOXED, str(tmp_path / "out"), str(listener.getsockname()[1])],
            cwd=PROJECT,
            capture_output=True,
            text=True,
            check=True,
        )
    assert sandboxed.stdout.split()[0] == "EFBIG"
    if unshare.returncode:
        pytest.skip("this kernel does not let a process leave the network")
    assert sandboxed.stdout.split()[1:] == ["ENETUNREACH"]


def test_folded_lines_and_escapes_of_calendars_are_joined(tmp_path: Path) -> None:
    path = tmp_path / "visit.ics"
    path.write_bytes(
        b"BEGIN:VCALENDAR\r\nSUMMARY:Visit of the boi\r\n ler\\, then tea\\nin the cellar\r\nEND:VCALENDAR\r\n"
    )
    assert "Visit of the boiler, then tea\nin the cellar" in read_document(path, "text/calendar").text


def test_address_cards_have_letters_instead_of_bytes_and_no_pictures(tmp_path: Path) -> None:
    path = tmp_path / "ann.vcf"
    path.write_bytes(
        b"BEGIN:VCARD\nVERSION:2.1\nN;CHARSET=UTF-8;ENCODING=QUOTED-PRINTABLE:=E5=BC=A0;=E4=B8=\n=89;;;\n"
        b"PHOTO;ENCODING=BASE64:iVBORw0KGgo\n AAAA\nTEL;CELL:123\nEND:VCARD\n"
    )
    text = read_document(path, "text/vcard").text
    assert text == "BEGIN:VCARD\nVERSION:2.1\nN:张;三;;;\nTEL;CELL:123\nEND:VCARD"


def test_characters_that_no_text_may_have_cost_a_file_only_themselves(tmp_path: Path) -> None:
    path = tmp_path / "chat.json"
    path.write_bytes(b'{"text": "cut in an emoji \\ud83d and \\u0000 end"}')
    assert read_document(path, mt.JSON).text == "text: cut in an emoji  and  end"


def test_the_delimiter_that_excel_writes_is_no_text(tmp_path: Path) -> None:
    path = tmp_path / "prices.csv"
    path.write_bytes(b"sep=;\na;b\n1;2\n")
    document = read_document(path, mt.CSV)
    assert document.text == "a | b\n1 | 2"
    assert document.reading is not None
    assert document.reading.notes == ()
