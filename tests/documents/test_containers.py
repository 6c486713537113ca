"""Mail, mailboxes and archives of documents are read as trees: each part with its own name, within limits."""

from __future__ import annotations

import binascii
import io
import time
import zipfile
from collections.abc import Callable
from email.message import EmailMessage
from pathlib import Path
from random import Random
from typing import IO, Any

import pytest

from core.errors import Unreadable
from documents import child, containers
from documents import mime_types as mt
from documents.document import Document, Limits, split
from documents.reader import read_document
from documents.reading import Note
from documents.sniff import sniff
from tests.documents import outlook_files, small_files

Read = Callable[[bytes, str], Document]


@pytest.fixture
def read(tmp_path: Path) -> Read:
    def read(data: bytes, mime: str) -> Document:
        path = tmp_path / "file"
        path.write_bytes(data)
        return read_document(path, mime)

    return read


def mail(subject: str, text: str = "") -> EmailMessage:
    message = EmailMessage()
    message["Subject"], message["From"], message["To"] = subject, "anna@example.org", "ben@example.org"
    message.set_content(text or f"Text of {subject}.")
    return message


def archive(**members: bytes | str) -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as written:
        for name, content in members.items():
            written.writestr(name.replace("__", "."), content)
    return data.getvalue()


def heading_of(document: Document, text: str) -> str | None:
    """Return the heading of the passage that has the text."""
    return next(passage.heading for passage in split(document) if text in passage.text)


def noted(document: Document) -> tuple[Note, ...]:
    assert document.reading is not None
    return document.reading.notes


@pytest.mark.parametrize("name", ["mail.eml", "mail-noext", "mail-noext2"])
def test_attachments_and_forwarded_messages_are_read_under_their_names(name: str) -> None:
    document = small_files.read(name)
    text = document.text
    assert "Der Kessel steht im Keller für alle" in text
    assert "Subject: Kessel für Zürich: größere Änderung am Heizungsraum des Hauses" in text
    assert "Cc: carl@example.org" in text
    assert "f=C3=BC" not in text
    assert "=?utf-8" not in text
    assert heading_of(document, "valve code is 4711") == "note.txt"
    assert heading_of(document, "mentions the harbour crane") == "Inner subject"
    assert noted(document) == ()


@pytest.mark.parametrize(
    ("name", "texts"),
    [
        ("mail-2022jp.eml", ["会議のお知らせ", "大阪の事務所で"]),
        ("mail-koi8.eml", ["в офисе в Новосибирске"]),
        ("mail-long-cn.eml", ["会议通知", "朱镕基出席"]),
        ("mail-nocharset.eml", ["会议在苏州办公室举行"]),
        ("mail-style.eml", ["the valve is in the cellar", "Best\nAnna"]),
    ],
)
def test_the_text_of_mail_is_decoded(name: str, texts: list[str]) -> None:
    found = small_files.read(name).text
    assert all(text in found for text in texts)
    assert "color:red" not in found
    assert "secretscript" not in found


def test_a_mailbox_has_one_part_for_each_message() -> None:
    document = small_files.read("chat.mbox")
    assert heading_of(document, "Der Kessel steht im Keller für alle") == "Kesselhaus pünktlich"
    assert heading_of(document, "The second mail is about the valve") == "two"


def test_a_mailbox_unquotes_lines_that_begin_like_a_message(read: Read) -> None:
    head = b"From a@b.c Thu Jan  1 00:00:00 2026\nSubject: one\n\n"
    document = read(
        head + b">From the start, the boiler was loud.\n\n" + head.replace(b"one", b"two") + b"x\n", mt.MBOX
    )
    assert "\nFrom the start, the boiler was loud." in document.text
    assert [block.text for block in document.blocks if block.kind == "heading"] == ["one", "two"]


def test_attached_documents_keep_their_headings_and_pages(read: Read) -> None:
    message = mail("Lease")
    page = "<h1>Pets</h1><p>Keeping a quokka needs consent.</p>"
    message.add_attachment(page.encode(), maintype="text", subtype="html", filename="lease.html")
    message.add_attachment(b"# Rent\n\nTwelve hundred.", maintype="text", subtype="markdown", filename="rent.md")
    document = read(message.as_bytes(), mt.EML)
    assert heading_of(document, "quokka needs consent") == "lease.html › Pets"
    assert heading_of(document, "Twelve hundred") == "rent.md › Rent"


def test_an_attached_pdf_is_read_and_one_with_a_password_is_noted(read: Read) -> None:
    message = mail("Two files")
    for name in ("pdf-headings.pdf", "pdf-pw.pdf"):
        data = (small_files.FOLDER / name).read_bytes()
        message.add_attachment(data, maintype="application", subtype="pdf", filename=name)
    document = read(message.as_bytes(), mt.EML)
    passage = next(one for one in split(document) if "quokka needs consent" in one.text)
    assert (passage.heading, passage.page) == ("pdf-headings.pdf › Pets", 1)
    assert noted(document) == (Note("parts_skipped", 1, ("pdf-pw.pdf",)),)


def test_calendars_in_mail_and_lines_that_were_broken_are_read_whole(read: Read) -> None:
    message = mail("Visit")
    message.set_content("This is con \ntinued. \n> quoted \n-- \nAnn", params={"format": "flowed", "delsp": "yes"})
    message.add_attachment("BEGIN:VCALENDAR\nSUMMARY:Boiler\\, ro\n om 4\nEND:VCALENDAR", subtype="calendar")
    text = read(message.as_bytes(), mt.EML).text
    assert "This is continued. \n> quoted \n-- \nAnn" in text
    assert "SUMMARY:Boiler, room 4" in text


def test_encrypted_mail_says_that_it_was_not_read(read: Read) -> None:
    head = b"From: a@b.c\nSubject: Secret\nMIME-Version: 1.0\nContent-Type: multipart/encrypted; boundary=A\n\n"
    parts = b"--A\nContent-Type: application/pgp-encrypted\n\nVersion: 1\n--A\n\n-----BEGIN PGP MESSAGE-----\n--A--\n"
    document = read(head + parts, mt.EML)
    assert "PGP" not in document.text
    assert noted(document) == (Note("parts_skipped", 1, ("multipart/encrypted",)),)


def test_parts_that_have_no_text_are_noted(read: Read) -> None:
    message = mail("Pictures")
    message.add_attachment(b"\x89PNG\r\n\x1a\n" + bytes(40), maintype="image", subtype="png", filename="a.png")
    message.add_attachment(bytes(range(256)), maintype="application", subtype="octet-stream", filename="tool.bin")
    message.add_attachment(archive(a__txt="in the archive"), maintype="application", subtype="zip", filename="a.zip")
    document = read(message.as_bytes(), mt.EML)
    assert noted(document) == (Note("parts_skipped", 2, ("tool.bin", "a.zip")), Note("images_skipped", 1))
    assert "in the archive" not in document.text


def outlook_mail(*attachments: outlook_files.Storage) -> bytes:
    return outlook_files.compound(outlook_files.message("Kessel", "Der Kessel steht im Keller.", *attachments))


def test_attachments_of_outlook_are_read_as_those_of_mail(read: Read) -> None:
    deep = outlook_files.attached("lease.html", b"<h1>Pets</h1><p>A quokka needs consent.</p>")
    inner = outlook_files.message("Inner subject", "The harbour crane is red.", deep, is_top=False)
    data = outlook_mail(
        outlook_files.attached("größe.txt", "Die Heizungsanlage ist größer.".encode()),
        outlook_files.attached("", inner),
        outlook_files.attached("Chart", {"CONTENTS": b"an object of another program"}),
        outlook_files.attached("pdf-headings.pdf", (small_files.FOLDER / "pdf-headings.pdf").read_bytes()),
        outlook_files.attached("forwarded.eml", mail("Forwarded").as_bytes()),
        outlook_files.attached("a.png", b"\x89PNG\r\n\x1a\n" + bytes(40)),
    )
    document = read(data, mt.MSG)
    assert document.text.startswith("Subject: Kessel\nFrom: Anna Weber <anna@example.org>\n\nDer Kessel steht")
    assert heading_of(document, "Die Heizungsanlage") == "größe.txt"
    assert heading_of(document, "harbour crane") == "Inner subject"
    assert heading_of(document, "quokka needs consent.") == "Inner subject › lease.html › Pets"
    assert heading_of(document, "second bullet numbat") == "pdf-headings.pdf › Pets"
    assert heading_of(document, "Text of Forwarded.") == "forwarded.eml"
    assert "Attachments:" not in document.text
    assert noted(document) == (Note("parts_skipped", 1, ("Chart",)), Note("images_skipped", 1))
    outer = mail("Outer")
    outer.add_attachment(data, maintype="application", subtype="vnd.ms-outlook", filename="kessel.msg")
    assert heading_of(read(outer.as_bytes(), mt.EML), "Heizungsanlage") == "kessel.msg › größe.txt"


def test_messages_of_outlook_are_read_to_the_third_level(read: Read) -> None:
    inner: outlook_files.Storage = {}
    for level in range(5):
        below = [outlook_files.attached("", inner)] if inner else []
        inner = outlook_files.message(f"level {level}", f"Text of level {level}.", *below, is_top=False)
    document = read(outlook_mail(outlook_files.attached("", inner)), mt.MSG)
    assert heading_of(document, "Text of level 2.") == "level 4 › level 3 › level 2"
    assert noted(document) == (Note("parts_skipped", 1, ("level 4 › level 3 › level 2 › level 1",)),)


def test_a_damaged_message_of_outlook_does_no_harm(read: Read) -> None:
    """Numbers of sectors that are overwritten may make circles or lead nowhere."""
    data = outlook_mail(*(outlook_files.attached(f"{number}.txt", b"valve " * 1_000) for number in range(4)))
    random = Random(36)
    for _ in range(40):
        damaged = bytearray(data)
        for _ in range(8):
            place = random.randrange(48, len(data) // 4) * 4
            damaged[place : place + 4] = random.choice((b"\0\0\0\0", b"\1\0\0\0", b"\xff\xff\0\0", b"\xff" * 4))
        tree = containers.Tree(lambda _data, _mime, _charset: [], Limits(zip_bytes=100_000))
        rows = list(tree.rows(bytes(damaged), mt.MSG))
        assert len(rows) <= 8
    assert rows


def test_a_digest_is_read_message_by_message(read: Read) -> None:
    head = b"Subject: Digest\nMIME-Version: 1.0\nContent-Type: multipart/digest; boundary=cut\n\n"
    parts = [b"--cut\n\n" + mail(subject).as_bytes() for subject in ("first", "second")]
    document = read(head + b"\n".join(parts) + b"\n--cut--\n", mt.EML)
    assert heading_of(document, "Text of second.") == "second"


@pytest.mark.parametrize(
    ("plain", "times", "expected"),
    [("Your program cannot show this mail.", 3, "valve"), ("The valve is in the old cellar.", 1, "old cellar")],
)
def test_the_alternative_with_the_text_is_read(read: Read, plain: str, times: int, expected: str) -> None:
    message = mail("Alternatives", plain)
    message.add_alternative("<p>" + "The valve is below the stairs of the house. " * times + "</p>", subtype="html")
    text = read(message.as_bytes(), mt.EML).text
    assert expected in text
    assert len([one for one in (plain, "below the stairs") if one in text]) == 1


def nested(depth: int) -> EmailMessage:
    message = mail(f"level {depth}")
    if depth:
        message.add_attachment(nested(depth - 1))
    return message


def test_messages_are_read_to_the_third_level(read: Read) -> None:
    document = read(nested(5).as_bytes(), mt.EML)
    assert heading_of(document, "Text of level 2.") == "level 4 › level 3 › level 2"
    assert "Text of level 1." not in document.text
    assert noted(document) == (Note("parts_skipped", 1, ("level 4 › level 3 › level 2 › level 1",)),)


def test_two_hundred_parts_are_read(read: Read) -> None:
    message = mail("Many")
    for number in range(205):
        message.add_attachment(f"Text {number}.", filename=f"{number}.txt")
    document = read(message.as_bytes(), mt.EML)
    assert "Text 199." in document.text
    assert "Text 200." not in document.text
    assert noted(document) == (Note("parts_skipped", 5, tuple(f"{number}.txt" for number in range(200, 205))),)


def test_the_bytes_of_all_parts_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    tree = containers.Tree(lambda _data, _mime, _charset: [], Limits(zip_bytes=20))
    data = archive(a__txt="0123456789", b__txt="0123456789", c__txt="0")
    assert [text for _kind, _page, text in tree.rows(data, mt.ZIP)] == ["a.txt", "0123456789", "b.txt", "0123456789"]
    assert tree.skipped == ["c.txt"]


def test_an_archive_of_documents_is_read(read: Read) -> None:
    inner = archive(deep__txt="too deep")
    document = read(archive(a__txt="The valve code.", b__html="<h2>Pets</h2><p>A quokka.</p>", c__zip=inner), mt.ZIP)
    assert heading_of(document, "The valve code") == "a.txt"
    assert heading_of(document, "A quokka") == "b.html › Pets"
    assert noted(document) == (Note("parts_skipped", 1, ("c.zip",)),)


def test_an_archive_that_expands_enormously_is_refused(read: Read) -> None:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as written:
        written.writestr("a.txt", b"0" * 50_000_000)
    with pytest.raises(Unreadable, match="too large after decompression"):
        read(data.getvalue(), mt.ZIP)


@pytest.mark.parametrize("mime", [mt.EML, mt.MSG])
def test_a_part_that_ends_the_parser_does_not_cost_the_mail(
    mime: str, read: Read, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without its attachments the mail is read, and the note names them."""
    jobs: list[dict[str, Any]] = []

    def failing(module: str, file: IO[bytes], job: dict[str, Any], limits: Limits) -> Any:
        jobs.append(job)
        if "is_shallow" not in job:
            raise Unreadable("the parser crashed")
        return child.started(module, file, job, limits)

    monkeypatch.setattr("documents.reader.started", failing)
    message, pdf = mail("Damaged", "Der Kessel steht im Keller."), b"%PDF-1.7\n1 0 obj"
    message.add_attachment(pdf, maintype="application", subtype="pdf", filename="a.pdf")
    data = message.as_bytes() if mime == mt.EML else outlook_mail(outlook_files.attached("a.pdf", pdf))
    document = read(data, mime)
    assert "Der Kessel steht im Keller." in document.text
    assert noted(document) == (Note("parts_skipped", 1, ("a.pdf",)),)
    assert len(jobs) == 2


@pytest.mark.parametrize(
    "data",
    [
        b"Subject: x\nFrom: a@b.c\nContent-Type: multipart/mixed; boundary=a\n\n" + b"--a\n" * 200_000,
        b"".join(b"Content-Type: multipart/mixed; boundary=b%d\n\n--b%d\n" % (n, n) for n in range(3_000)),
        b"Subject: " + b"=?utf-8?q?a?= " * 200_000 + b"\n\nbody",
        b"From: " + b"(" * 200_000 + b"\n\nbody",
        b'Content-Disposition: attachment; filename*0="' + b'a"; filename*1="' * 50_000 + b'"\n\nbody',
    ],
    ids=["boundaries", "depth", "subject", "comments", "name"],
)
def test_hostile_mail_ends_in_time(read: Read, data: bytes) -> None:
    began = time.monotonic()
    try:
        read(data, mt.EML)
    except Unreadable as error:
        assert str(error.detail)  # noqa: PT017  a mail may also be read
    assert time.monotonic() - began < 75


@pytest.mark.parametrize(
    ("text", "name", "expected"),
    [
        ("From: a@b.c\nDate: Tue, 3 Nov 2026\n\nhello", "mail", mt.EML),
        ("Received: from x\n by y\nFrom: a@b.c\nMIME-Version: 1.0\n\nhello", "mail", mt.EML),
        ("From: a@b.c\nDate: Tue, 3 Nov 2026\n\nhello", "notes.txt", mt.PLAIN),
        ("A letter.\n\nFrom: a@b.c\nDate: Tue, 3 Nov 2026\n\nhello", "mail", mt.PLAIN),
        ("From a@b.c Thu Jan  1 00:00:00 2026\nFrom: a@b.c\nSubject: x\n\nhello", "x.mbox", mt.MBOX),
        ("From a@b.c Thu Jan  1 00:00:00 2026\nFrom: a@b.c\nSubject: x\n\nhello", "inbox", mt.MBOX),
        ("no mail", "x.mbox", mt.PLAIN),
    ],
)
def test_mail_is_recognized_by_its_header(text: str, name: str, expected: str) -> None:
    assert sniff(text.encode(), name, None) == expected


def test_files_in_the_text_of_old_mail_are_parts(read: Read) -> None:
    def encoded(name: str, data: bytes) -> str:
        return f"begin 644 {name}\n{binascii.b2a_uu(data).decode()}`\nend\n"

    files = [encoded("note.txt", b"The valve code is 4711.\n"), encoded("prog.exe", b"\0\1\2\3" * 8)]
    document = read(
        mail("Old", f"Before.\n{files[0]}After.\n{files[1]}begin 644 words\nno data\nend").as_bytes(), mt.EML
    )
    assert heading_of(document, "The valve code is 4711.") == "note.txt"
    assert "Before.\n\nAfter.\n\nbegin 644 words\nno data\nend" in document.text
    assert noted(document) == (Note("parts_skipped", 1, ("prog.exe",)),)


def test_a_saved_page_is_read_without_its_styles(read: Read) -> None:
    page = mail("Page")
    page.set_content("<p>The valve is open.", subtype="html")
    page.add_related(b"p { color: red }", "text", "css", cid="<style>")
    assert read(page.as_bytes(), mt.EML).text.endswith("\n\nThe valve is open.")


def test_parts_whose_encoding_is_a_guess_say_so(read: Read) -> None:
    data = b"Subject: a\nFrom: b\nContent-Transfer-Encoding: 8bit\n\n" + "Gr\xfc\xdfe".encode("cp1252")
    document = read(data, mt.EML)
    assert document.text.endswith("Grüße")
    assert noted(document) == (Note("encoding_doubtful", 1, ("cp1252",)),)
    assert noted(read(archive(a__csv="a;b\nGr\xfc\xdfe;1".encode("cp1252")), mt.ZIP))[0].code == "encoding_doubtful"


def test_names_in_an_archive_are_decoded(read: Read) -> None:
    members: dict[str, bytes | str] = {"x" * 20 + ".txt": "text one", "__DS_Store": b"\0", "Thumbs__db": b"\0"}
    data = archive(**members)
    document = read(data.replace(b"x" * 20, "会议纪要和房屋租赁".encode("gbk") + b"xx"), mt.ZIP)
    assert heading_of(document, "text one") == "会议纪要和房屋租赁xx.txt"
    assert noted(document) == ()
