"""Compare how many words of files the gateway reads with what other readers find in them, by kind of file.

The files are those of the tests and of the folders named. A reader that is absent is left out: `pip install
beautifulsoup4 openpyxl pypdf python-docx python-pptx`, and `pdftotext`. The words of a file are all that one of the
others finds; a reader's share of them is its recall. A word counts as found if it stands in the text without spaces,
so that divided words and lines of Chinese count.
"""

import argparse
import contextlib
import csv
import email
import email.policy
import importlib
import io
import json
import mailbox
import re
import shutil
import signal
import subprocess
import tempfile
import unicodedata
import zipfile
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from email.message import EmailMessage
from pathlib import Path
from statistics import mean
from typing import Any, Final
from xml.etree import ElementTree

from core.errors import GatewayError
from documents.reader import read_document
from documents.sniff import HEAD_BYTES, sniff

SMALL_FILES = Path(__file__).parent.parent / "tests/documents/small_files.zip"
TARGET = 0.98
"""The least that the gateway reads of what the best other reader of a kind does."""
OURS = "gateway"
SECONDS = 20
"""The time that another reader has for a file. The gateway has limits of time and memory."""

_WORD: Final = re.compile(r"(?<![\w\ufffd])\w{3,}(?![\w\ufffd])")  # none that the reader could not decode
_WHOLE_LINES: Final = frozenset({"log", "md", "tsv", "txt"})
_OPEN_DOCUMENTS: Final = frozenset({"odp", "ods", "odt", "ott"})


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks readings", description=__doc__)
    parser.add_argument("folders", nargs="*", type=Path, help="folders with more files, read with those below them")
    parser.add_argument("--kinds", nargs="+", metavar="KIND", help="only files with these endings")
    parser.add_argument("--misses", action="store_true", help="show words that the gateway does not find")
    options = parser.parse_args(arguments)
    signal.signal(signal.SIGALRM, _too_slow)
    with tempfile.TemporaryDirectory() as folder, zipfile.ZipFile(SMALL_FILES) as archive:
        archive.extractall(folder)
        shares = _shares([Path(folder), *options.folders], options.kinds, show_misses=options.misses)
    return _report(shares)


def _shares(
    folders: Iterable[Path], kinds: Sequence[str] | None, *, show_misses: bool
) -> Mapping[str, Mapping[str, list[float]]]:
    """Return the recall of each file, by kind (all of them for None) and reader."""
    shares: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for path in sorted(path for folder in folders for path in folder.rglob("*") if path.is_file()):
        kind = path.suffix[1:].lower()
        if kinds is not None and kind not in kinds:
            continue
        found = {name: text for name, read in _readers(kind) if (text := _text(read, path))}
        words = set().union(*map(_words, found.values()))
        ours = _text(_gateway, path) if words else ""
        if not ours:  # nothing to compare, or refused: the tests say which files are to be
            continue
        for name, text in [*found.items(), (OURS, ours)]:
            shares[kind][name].append(len(_found(words, text)) / len(words))
        if show_misses and (missed := sorted(words - _found(words, ours))):
            print(f"{path.name}: {' '.join(missed[:20])}{' …' * (len(missed) > 20)}")
    return shares


def _report(shares: Mapping[str, Mapping[str, list[float]]]) -> int:
    """Print the table, and return 1 if the gateway misses the target for a kind."""
    print("| kind | files | gateway | others |\n|---|---|---|---|")
    worst = 1.0
    for kind, by_reader in sorted(shares.items()):
        others = {name: mean(all_of_it) for name, all_of_it in by_reader.items() if name != OURS}
        ours = mean(by_reader[OURS])
        worst = min(worst, ours / max(others.values()))
        shown = ", ".join(f"{name} {share:.3f}" for name, share in sorted(others.items(), key=lambda it: -it[1]))
        print(f"| {kind} | {len(by_reader[OURS])} | {ours:.3f} | {shown} |")
    print(f"\nleast share of the best other reader: {worst:.3f} (target ≥ {TARGET})")
    return int(worst < TARGET)


def _words(text: str) -> set[str]:
    return set(_WORD.findall(unicodedata.normalize("NFKC", text).casefold()))


def _found(words: set[str], text: str) -> set[str]:
    joined = "".join(re.findall(r"\w+", unicodedata.normalize("NFKC", text).casefold()))
    return {word for word in words if word in joined}


def _text(read: Callable[[Path], str], path: Path) -> str:
    """Return what a reader finds, nothing if it cannot read the file in time."""
    signal.alarm(SECONDS if read is not _gateway else 0)
    try:
        return read(path)
    except GatewayError:
        return ""
    except Exception as error:  # noqa: BLE001 - each library has its own
        print(f"{path.name}: {read.__name__.strip('_')} fails ({type(error).__name__})", flush=True)
        return ""
    finally:
        signal.alarm(0)


def _too_slow(*_: Any) -> None:
    raise TimeoutError


def _readers(kind: str) -> Iterator[tuple[str, Callable[[Path], str]]]:
    """Yield name and function of each other reader of a kind that is installed."""
    libraries: dict[str, list[tuple[str, Callable[[Path], str]]]] = {
        "pdf": [("pypdf", _pypdf)],
        "docx": [("docx", _docx)],
        "xlsx": [("openpyxl", _openpyxl)],
        "pptx": [("pptx", _pptx)],
        "html": [("bs4", _bs4)],
    }
    yield from ((name, read) for name, read in libraries.get(kind, ()) if importlib.util.find_spec(name))
    if kind == "pdf" and shutil.which("pdftotext"):
        yield "pdftotext", _pdftotext
    standard: dict[str, Callable[[Path], str]] = {
        "csv": _csv,
        "eml": _eml,
        "ipynb": _notebook,
        "json": _json,
        "mbox": _mbox,
        "xml": _xml,
        "svg": _xml,
        **dict.fromkeys(_OPEN_DOCUMENTS, _open_document),
    }
    if kind in standard:
        yield "stdlib", standard[kind]
    elif kind in _WHOLE_LINES:
        yield "stdlib", _utf8


def _gateway(path: Path) -> str:
    with path.open("rb") as file:
        mime = sniff(file.read(HEAD_BYTES), path.name, None)
    return read_document(path, mime).text


def _pypdf(path: Path) -> str:
    pages = importlib.import_module("pypdf").PdfReader(path).pages
    return "\n".join(page.extract_text() for page in pages)


def _pdftotext(path: Path) -> str:
    return subprocess.run(["pdftotext", "-q", str(path), "-"], capture_output=True, text=True, check=False).stdout


def _docx(path: Path) -> str:
    document = importlib.import_module("docx").Document(str(path))
    cells = (cell.text for table in document.tables for row in table.rows for cell in row.cells)
    return "\n".join([*(paragraph.text for paragraph in document.paragraphs), *cells])


def _openpyxl(path: Path) -> str:
    book = importlib.import_module("openpyxl").load_workbook(path, data_only=True)
    rows = (row for sheet in book.worksheets for row in sheet.iter_rows(values_only=True))
    return "\n".join(str(value) for row in rows for value in row if isinstance(value, str))


def _pptx(path: Path) -> str:
    slides = importlib.import_module("pptx").Presentation(str(path)).slides
    return "\n".join(shape.text_frame.text for slide in slides for shape in slide.shapes if shape.has_text_frame)


def _bs4(path: Path) -> str:
    soup = importlib.import_module("bs4").BeautifulSoup(path.read_bytes(), "html.parser")
    for hidden in soup(["script", "style", "template", "noscript", "nav", "footer", "aside"]) + soup(hidden=True):
        hidden.decompose()
    return str(soup.get_text(" "))


def _utf8(path: Path) -> str:
    text = path.read_text(encoding="utf-8")
    if "\x1b" in text:
        raise UnicodeError("in another encoding, which switches by escapes")
    return text


def _csv(path: Path) -> str:
    return "\n".join(" ".join(row) for row in csv.reader(io.StringIO(_utf8(path))))


def _json(path: Path) -> str:
    return "\n".join(_strings(json.loads(_utf8(path))))


def _strings(value: Any) -> Iterator[str]:
    """Yield the texts of a JSON document."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for one in value:
            yield from _strings(one)
    elif isinstance(value, dict):
        for one in value.values():
            yield from _strings(one)


def _notebook(path: Path) -> str:
    cells = json.loads(_utf8(path))["cells"]
    outputs = (output for cell in cells for output in cell.get("outputs", ()))
    texts = (output.get("text") or output.get("data", {}).get("text/plain", "") for output in outputs)
    return "\n".join("".join(text) for text in [*(cell["source"] for cell in cells), *texts])


def _xml(path: Path) -> str:
    return "\n".join(ElementTree.parse(path).getroot().itertext())  # noqa: S314 - files of tests, or the caller's


def _open_document(path: Path) -> str:
    with zipfile.ZipFile(path) as archive:
        root = ElementTree.fromstring(archive.read("content.xml"))  # noqa: S314 - files of tests, or the caller's
    for cell in root.iter():
        if any(name.endswith("}date-value") for name in cell.attrib):  # the gateway shows its ISO form
            cell.clear()
    return "\n".join(root.itertext())


def _eml(path: Path) -> str:
    return _mail(email.message_from_bytes(path.read_bytes(), policy=email.policy.default))


def _mbox(path: Path) -> str:
    with contextlib.closing(mailbox.mbox(path)) as box:
        messages = [email.message_from_bytes(box.get_bytes(key), policy=email.policy.default) for key in box.iterkeys()]
    return "\n".join(map(_mail, messages))


def _mail(message: Any) -> str:
    """Return subject and text of a mail, without its HTML, which would count tags as words."""
    parts = [part for part in message.walk() if isinstance(part, EmailMessage)]
    texts = [part.get_content() for part in parts if part.get_content_type() == "text/plain"]
    return "\n".join([str(part["subject"] or "") for part in parts] + texts)
