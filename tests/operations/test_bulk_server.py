"""Ten thousand memories deleted at once by a real server that is killed meanwhile."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from tests.server import RunningServer, running_server

NUMBER = 10_000
_IMPORTS = """
import json
from accounts.audit import Actor
from accounts.models import AuditEvent
from engine import browse
from store.browse import Selection
from lifecycle import bulk, jobs
from operations.models import Job
from memories.models import Tombstone
olga = Actor.operator("olga")
"""
SUBMIT = """
job = bulk.start("delete", bulk.freeze(Selection(tab="full")), {"reason": "noise"}, actor=olga)
print(json.dumps({"id": str(job.pk), "total": job.total}))
"""
STATE = """
job = jobs.get("{id}")
print(json.dumps({{"status": job.status, "done": job.done, "live": browse.count(Selection(tab="full")),
    "tombstones": Tombstone.objects.filter(undone_at__isnull=True).count()}}))
"""
UNDO = """
print(json.dumps({{"id": str(jobs.undo("{id}", actor=olga).pk)}}))
"""
TRAIL = """
trail = AuditEvent.objects.filter(actor="olga", subject_type="job").order_by("pk")
print(json.dumps(list(trail.values("action", "detail"))))
"""


def ask(server: RunningServer, code: str) -> Any:
    done = server.manage("shell", "--no-imports", "-c", _IMPORTS + code)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def wait_for(server: RunningServer, job: str, *, done: int | None = None) -> dict[str, Any]:
    until = time.monotonic() + 300
    while True:
        state = dict(ask(server, STATE.format(id=job)))
        if state["status"] == "done" or (done is not None and state["done"] >= done):
            return state
        assert time.monotonic() < until, state
        time.sleep(0.2)


@pytest.mark.torture
def test_ten_thousand_are_deleted_over_a_kill_and_undone_once(tmp_path: Path) -> None:
    with running_server(tmp_path) as server:
        assert server.manage("seed_memories", str(NUMBER), "--users", "20", "--no-index").returncode == 0
        job = ask(server, SUBMIT)
        wait_for(server, job["id"], done=1)
        server.kill()
        server.start()
        state = wait_for(server, job["id"])
        assert (state["done"], state["live"], state["tombstones"]) == (job["total"], 0, job["total"])
        undoing = ask(server, UNDO.format(id=job["id"]))
        state = wait_for(server, undoing["id"])
        assert (state["live"], state["tombstones"]) == (job["total"], 0)
        deleted, undone = ask(server, TRAIL)
        assert deleted["action"] == "memories.delete"
        assert (deleted["detail"]["count"], deleted["detail"]["filter"]) == (job["total"], {"tab": "full"})
        assert (undone["action"], undone["detail"]["undone"]) == ("job.undo", job["total"])
