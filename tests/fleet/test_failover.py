"""Another worker takes the leases and the tasks of a killed one, which it cannot see end: it is on another machine."""

from __future__ import annotations

import time

import pytest
import requests

from tests.fleet.fleet import Fleet
from tests.fleet.test_smoke import fleet, pytestmark
from tests.resources.people import RemotePerson
from tests.server import wait_until
from tests.web import dripping, page, web_server

__all__ = ["fleet"]
pytestmark = [*pytestmark, pytest.mark.torture]
REPLACED_SECONDS = 60.0


def holder(fleet: Fleet, statement: str) -> int | None:
    """Return the number of the worker that holds the lease of a row; None if none does."""
    rows = fleet.rows(statement)
    name = str(rows[0][0]) if rows else ""
    return int(name.split("-")[1]) if name.startswith("worker-") else None


def test_the_lease_of_a_killed_worker_is_taken_within_a_minute(fleet: Fleet) -> None:
    lease = "SELECT lease_holder FROM operations_lease WHERE name = 'maintenance'"
    wait_until(lambda: holder(fleet, lease) is not None)
    killed = holder(fleet, lease)
    assert killed is not None
    fleet.workers[killed].kill()
    began = time.monotonic()
    wait_until(lambda: holder(fleet, lease) not in {None, killed}, REPLACED_SECONDS)
    print(f"taken after {time.monotonic() - began:.0f} s")  # noqa: T201
    fleet.restart_worker(killed)
    fleet.workers[killed].wait_until_running()


def test_a_task_of_a_killed_worker_runs_again_within_a_minute(fleet: Fleet) -> None:
    erin = RemotePerson.create(fleet, "erin")
    with web_server() as web:
        web.pages["/a.txt"] = dripping(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n")
        body = {"filename": "a.txt", "source_uri": web.url("/a.txt")}
        headers = {**erin.headers, "Prefer": "respond-async"}
        assert requests.post(f"{fleet.url}/resources/external", json=body, headers=headers, timeout=30).ok
        claim = "SELECT lease_holder FROM resources_resource WHERE filename = 'a.txt'"
        wait_until(lambda: holder(fleet, claim) is not None)
        killed = holder(fleet, claim)
        assert killed is not None
        web.pages["/a.txt"] = page(b"The okapi sleeps.")
        fleet.workers[killed].kill()
        began = time.monotonic()
        wait_until(lambda: erin.resources()[0]["status"] == "extracted", REPLACED_SECONDS)
        print(f"ingested after {time.monotonic() - began:.0f} s")  # noqa: T201
    fleet.restart_worker(killed)
    fleet.workers[killed].wait_until_running()
