"""Real documents, and documents made to hurt, through a real server: each does what its kind demands."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
import requests

from tests.bombs import MAKERS
from tests.documents.corpus import Sample, needs_corpus, samples
from tests.resources.people import RemotePerson
from tests.server import RunningServer, running_server

# These run into the reader's time limit, or keep reader and tokenizer busy for many seconds.
SLOW = {"one_line_csv", "deep_inline_html", "multiplying_forms_pdf", "recursive_pages_pdf"}
SLOW |= {"deep_json", "flate_bomb_pdf", "huge_text_pdf", "many_members_docx"}
MAX_SERVER_BYTES = 600 * 2**20


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """The server lives through all of them and stays small."""
    with running_server(tmp_path_factory.mktemp("corpus")) as server:
        yield server
        assert server.process.poll() is None
        assert server.rss_bytes().peak < MAX_SERVER_BYTES
        assert "Traceback" not in server.log


@pytest.fixture(scope="module")
def reader(server: RunningServer) -> RemotePerson:
    return RemotePerson.create(server, "reader")


@needs_corpus
@pytest.mark.parametrize("sample", samples(), ids=lambda sample: sample.path.name)
def test_a_real_document_does_what_its_kind_demands(reader: RemotePerson, sample: Sample) -> None:
    answer = reader.upload(sample.path.name, sample.path.read_bytes())
    assert_server_is_quick(reader)
    CHECKS[sample.kind](reader, answer, sample)


def is_text(reader: RemotePerson, answer: requests.Response, sample: Sample) -> None:
    assert outcome(reader, answer) == ("extracted", None)
    assert is_found(reader, answer, sample.expect)


def is_media(reader: RemotePerson, answer: requests.Response, sample: Sample) -> None:
    assert outcome(reader, answer) == ("extracted", None)
    assert is_found(reader, answer, sample.path.name)


def is_empty(reader: RemotePerson, answer: requests.Response, sample: Sample) -> None:
    assert outcome(reader, answer) == ("empty", None)


def is_refused(reader: RemotePerson, answer: requests.Response, sample: Sample) -> None:
    if answer.status_code == 415:
        assert len(answer.json()["detail"]) > 20
        return
    status, reason = outcome(reader, answer)
    assert status == "failed"
    assert reason
    assert "Traceback" not in reason


def is_anything(reader: RemotePerson, answer: requests.Response, sample: Sample) -> None:
    assert outcome(reader, answer)[0] in {"extracted", "empty"}


CHECKS = {"text": is_text, "media": is_media, "empty": is_empty, "limit": is_refused, "any": is_anything}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.torture) if name in SLOW else name for name in MAKERS]
)
def test_a_bomb_hurts_nobody(reader: RemotePerson, name: str) -> None:
    filename, mime_type, data = MAKERS[name]()
    answer = requests.post(
        f"{reader.server.url}/resources",
        files={"file": (filename, data, mime_type)},
        headers=reader.headers,
        timeout=150,
    )
    assert_server_is_quick(reader)
    assert answer.status_code in {200, 413, 415}, answer.text
    if answer.status_code == 200:
        status, reason = outcome(reader, answer)
        assert status in {"extracted", "empty", "failed"}
        assert (reason is not None) == (status == "failed")


def outcome(reader: RemotePerson, answer: requests.Response) -> tuple[str, str | None]:
    """The status that a file ended in, and why it failed."""
    assert answer.status_code == 200, answer.text
    (item,) = [item for item in reader.resources() if item["resource_id"] == answer.json()["resource_id"]]
    assert item["status"] == answer.json()["status"]
    return item["status"], item["error_message"]


def is_found(reader: RemotePerson, answer: requests.Response, words: str) -> bool:
    found = reader.search(words)
    assert found.status_code == 200, found.text
    return answer.json()["resource_id"] in {hit["resource_id"] for hit in found.json()["results"]}


def assert_server_is_quick(reader: RemotePerson) -> None:
    began = time.monotonic()
    reader.resources()
    assert time.monotonic() - began < 2
