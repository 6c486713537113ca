"""Real documents and document bombs on a running server: each ends in the status of its kind."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
import requests

from tests.bombs import MAKERS
from tests.documents.corpus import Sample, needs_corpus, samples
from tests.resources.people import RemotePerson
from tests.server import RunningServer, running_server

pytestmark = pytest.mark.slow

# A few for each way of reading files. The reader itself meets all of them in tests/documents/test_bombs.py.
QUICK = {"deep_html", "deep_mail", "unclosed_html", "million_paragraphs_txt", "shared_string_xlsx", "zip_bomb_epub"}
QUICK |= {"lying_zip_bomb_docx", "billion_laughs_docx", "twice_packed_pdf", "many_pages_pdf", "truncated_docx"}
MAX_SERVER_BYTES = 600 * 2**20


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """A server that survives all documents without a traceback and stays below its memory limit."""
    with running_server(tmp_path_factory.mktemp("corpus")) as server:
        yield server
        assert server.process.is_alive()
        assert server.rss_bytes().peak < MAX_SERVER_BYTES
        assert "Traceback" not in server.log


@pytest.fixture(scope="module")
def reader(server: RunningServer) -> RemotePerson:
    return RemotePerson.create(server, "reader")


@needs_corpus
@pytest.mark.parametrize("sample", samples(), ids=lambda sample: sample.path.name)
def test_real_documents_end_in_the_status_of_their_kind(reader: RemotePerson, sample: Sample) -> None:
    answer = reader.upload(sample.path.name, sample.path.read_bytes())
    assert_server_responds_quickly(reader)
    CHECKS[sample.kind](reader, answer, sample)


def expect_text(reader: RemotePerson, answer: requests.Response, sample: Sample) -> None:
    assert outcome(reader, answer) == ("extracted", None)
    assert is_found(reader, answer, sample.expect)


def expect_media(reader: RemotePerson, answer: requests.Response, sample: Sample) -> None:
    assert outcome(reader, answer) == ("extracted", None)
    assert is_found(reader, answer, sample.path.name)


def expect_empty(reader: RemotePerson, answer: requests.Response, sample: Sample) -> None:
    status, reason = outcome(reader, answer)
    assert status == "empty"
    assert ("memory-gateway[ocr]" in (reason or "")) == (sample.mime == "application/pdf")


def expect_refusal(reader: RemotePerson, answer: requests.Response, sample: Sample) -> None:
    if answer.status_code == 415:
        assert len(answer.json()["detail"]) > 20
        return
    status, reason = outcome(reader, answer)
    assert status == "failed"
    assert reason
    assert "Traceback" not in reason


def expect_success(reader: RemotePerson, answer: requests.Response, sample: Sample) -> None:
    assert outcome(reader, answer)[0] in {"extracted", "empty"}


CHECKS = {
    "text": expect_text,
    "media": expect_media,
    "empty": expect_empty,
    "limit": expect_refusal,
    "any": expect_success,
}


@pytest.mark.parametrize(
    "name",
    [*sorted(QUICK), *(pytest.param(name, marks=pytest.mark.torture) for name in MAKERS if name not in QUICK)],
)
def test_document_bombs_do_not_harm_the_server(reader: RemotePerson, name: str) -> None:
    filename, mime_type, data = MAKERS[name]()
    answer = requests.post(
        f"{reader.server.url}/resources",
        files={"file": (filename, data, mime_type)},
        headers=reader.headers,
        timeout=150,
    )
    assert_server_responds_quickly(reader)
    assert answer.status_code in {200, 413, 415}, answer.text
    if answer.status_code == 200:
        status, reason = outcome(reader, answer)
        assert status in {"extracted", "empty", "failed"}
        assert (reason is not None) == (status == "failed" or (status == "empty" and mime_type == "application/pdf"))


def outcome(reader: RemotePerson, answer: requests.Response) -> tuple[str, str | None]:
    """Return the final status of a file and its error message."""
    assert answer.status_code == 200, answer.text
    (item,) = [item for item in reader.resources() if item["resource_id"] == answer.json()["resource_id"]]
    assert item["status"] == answer.json()["status"]
    return item["status"], item["error_message"]


def is_found(reader: RemotePerson, answer: requests.Response, words: str) -> bool:
    found = reader.search(words)
    assert found.status_code == 200, found.text
    return answer.json()["resource_id"] in {hit["resource_id"] for hit in found.json()["results"]}


def assert_server_responds_quickly(reader: RemotePerson) -> None:
    started_at = time.monotonic()
    reader.resources()
    assert time.monotonic() - started_at < 2
