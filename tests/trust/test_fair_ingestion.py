"""Endless documents delay other users only briefly: text does not wait for them, and users take turns."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests import bombs
from tests.resources.people import RemotePerson
from tests.server import running_server

pytestmark = pytest.mark.slow


def test_texts_and_other_users_do_not_wait_for_endless_documents(tmp_path: Path) -> None:
    endless = bombs.recursive_pages_pdf()[2]
    with running_server(tmp_path) as server, ThreadPoolExecutor(6) as clients:
        people = [RemotePerson.create(server, name) for name in ("alice", "bob", "charlie")]
        dora = RemotePerson.create(server, "dora")
        uploads = [
            clients.submit(person.upload, "endless.pdf", endless + b"%% %d" % number)
            for number in range(2)
            for person in people
        ]
        time.sleep(1)
        began = time.monotonic()
        text = dora.upload("notes.txt", b"The lighthouse keeper drinks tea.").json()
        assert (text["status"], time.monotonic() - began < 4) == ("extracted", True)
        began = time.monotonic()
        pdf = dora.upload("paper.pdf", bombs.pages_pdf(["The lighthouse keeper."])).json()
        assert (pdf["status"], time.monotonic() - began < 30) == ("extracted", True)
        assert {upload.result().json()["status"] for upload in uploads} == {"failed"}
