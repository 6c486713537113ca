"""A bulk deletion of ten thousand memories on a server that is killed meanwhile."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from tests.server import RunningServer, running_server

MEMORIES = 10_000
_IMPORTS = """
import json
from accounts.audit import Actor
from accounts.models import AuditEvent
from memories.models import Tombstone
from operations import bulk, jobs
from store import browse
from store.browse import Selection
olga = Actor.operator("olga")
"""
_SUBMIT = """
job = bulk.start("delete", bulk.freeze(Selection(tab="full")), {"reason": "noise"}, actor=olga)
print(json.dumps({"id": str(job.pk), "total": job.total}))
"""
_STATE = """
job = jobs.get("{id}")
print(json.dumps({{"status": job.status, "done": job.done, "live": browse.count(Selection(tab="full")),
    "tombstones": Tombstone.objects.filter(undone_at__isnull=True).count()}}))
"""
_UNDO = """
print(json.dumps({{"id": str(jobs.undo("{id}", actor=olga).pk)}}))
"""
_EVENTS = """
events = AuditEvent.objects.filter(actor="olga", subject_type="job").order_by("pk")
print(json.dumps(list(events.values("action", "detail"))))
"""


def run_in_shell(server: RunningServer, code: str) -> Any:
    """Run code in the server's environment, and return the JSON that it prints."""
    done = server.manage("shell", "--no-imports", "-c", _IMPORTS + code)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def wait_for(server: RunningServer, job: str, *, done: int | None = None) -> dict[str, Any]:
    deadline = time.monotonic() + 300
    while True:
        state = dict(run_in_shell(server, _STATE.format(id=job)))
        if state["status"] == "done" or (done is not None and state["done"] >= done):
            return state
        assert time.monotonic() < deadline, state
        time.sleep(0.2)


@pytest.mark.torture
def test_a_bulk_deletion_survives_a_kill_and_is_undone_once(tmp_path: Path) -> None:
    with running_server(tmp_path) as server:
        assert server.manage("seed_memories", str(MEMORIES), "--users", "20", "--no-index").returncode == 0
        job = run_in_shell(server, _SUBMIT)
        wait_for(server, job["id"], done=1)
        server.kill()
        server.start()
        state = wait_for(server, job["id"])
        assert (state["done"], state["live"], state["tombstones"]) == (job["total"], 0, job["total"])
        undoing = run_in_shell(server, _UNDO.format(id=job["id"]))
        state = wait_for(server, undoing["id"])
        assert (state["live"], state["tombstones"]) == (job["total"], 0)
        deleted, undone = run_in_shell(server, _EVENTS)
        assert deleted["action"] == "job.delete"
        assert (deleted["detail"]["count"], deleted["detail"]["filter"]) == (job["total"], {"tab": "full"})
        assert (undone["action"], undone["detail"]["undone"]) == ("job.undo", job["total"])
