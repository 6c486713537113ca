"""SIGKILL while models read pictures and recordings, and while these models fail: nothing is lost or stored twice."""

from __future__ import annotations

import random
import threading
import time
from pathlib import Path

import pytest
import requests

from tests.resources.people import RemotePerson, eventually
from tests.server import running_server
from tests.stub_media import StubMedia, photo, recording, running_media

pytestmark = pytest.mark.slow

FAILURES = (500, 429, "reset within", "half JSON", "drip", "slow")
_PER_FILE = """
SELECT session.session_id, count(*), count(DISTINCT memory.text)
FROM store_memory memory JOIN store_session session ON session.id = memory.session_id
WHERE memory.origin = 'extracted' GROUP BY session.session_id
"""


def _break_sometimes(models: StubMedia, stop: threading.Event, rng: random.Random) -> None:
    while not stop.wait(0.3):
        models.failure = rng.choice([*FAILURES, None, None, None])
    models.failure = None


@pytest.mark.parametrize("kills", [2, pytest.param(60, marks=pytest.mark.torture)])
def test_killed_servers_read_each_file_once(tmp_path: Path, kills: int) -> None:
    rng, stop, uploaded = random.Random(kills), threading.Event(), 0
    with running_media() as models:
        endpoints = {"MEMORY_GATEWAY_MODELS": f"vision={models.url}#stub,transcription={models.url}#stub"}
        with running_server(tmp_path, **endpoints) as server:
            person = RemotePerson.create(server, "alice")
            breaking = threading.Thread(target=_break_sometimes, args=(models, stop, random.Random(1)))
            breaking.start()
            try:
                for round_number in range(kills):
                    for value in range(2):
                        color = f"#{round_number:02x}{value:02x}00"
                        uploaded += _upload(person, f"{round_number}-{value}.png", photo(color))
                        uploaded += _upload(person, f"{round_number}-{value}.wav", recording(1 + round_number, value))
                    time.sleep(rng.uniform(0.2, 2.0))
                    server.kill()
                    server.start()
            finally:
                stop.set()
                breaking.join()
            server.write("UPDATE store_pendingmedia SET retry_at = NULL")
            assert eventually(lambda: not server.rows("SELECT 1 FROM store_pendingmedia LIMIT 1"), 120), server.log
            rows = server.rows(_PER_FILE)
            assert len(rows) == uploaded
            assert {(count, texts) for _session, count, texts in rows} == {(2, 2)}
            assert len(person.search("bicycle").json()["results"]) == min(uploaded // 2, 20)


def _upload(person: RemotePerson, name: str, data: bytes) -> int:
    try:
        answer = person.upload(name, data)
    except requests.RequestException:
        return 0
    assert answer.status_code == 200, answer.text
    return 1
