"""Mixed load on a fleet with a read replica, whose processes are killed and whose services go away, loses nothing."""

from __future__ import annotations

import random
import time
from pathlib import Path

import pytest

from tests.fleet.fleet import GATEWAYS, WORKERS, Fleet, missing_programs, running_fleet
from tests.fleet.load import Load
from tests.resources.people import RemotePerson
from tests.server import wait_until

MISSING = missing_programs("initdb", "postgres", "pg_basebackup")
pytestmark = [pytest.mark.slow, pytest.mark.skipif(bool(MISSING), reason=f"missing programs: {MISSING}")]
SEED = 7
BACK_SECONDS = 10.0
SETTLED_SECONDS = 180.0


def test_a_few_kills_and_outages_lose_nothing(tmp_path: Path) -> None:
    outages = {1: ("files", 1.0), 2: ("redis-server", 1.0), 3: ("postgres", 1.0)}
    run(tmp_path, kills=4, users=2, outages=outages)


@pytest.mark.torture
def test_ten_minutes_of_kills_and_outages_lose_nothing(tmp_path: Path) -> None:
    """A process is killed every 30 seconds."""
    outages = {4: ("postgres", 5.0), 8: ("files", 30.0), 12: ("redis-server", 30.0), 16: ("postgres", 5.0)}
    run(tmp_path, kills=20, users=4, outages=outages, every_seconds=30)


@pytest.mark.torture
def test_two_hundred_kills_lose_nothing(tmp_path: Path) -> None:
    run(tmp_path, kills=200, users=4, outages={})


def run(
    folder: Path, *, kills: int, users: int, outages: dict[int, tuple[str, float]], every_seconds: float = 0
) -> None:
    """Put load on a fleet during the kills. `outages` are services and seconds by the number of the kill before."""
    rng, back = random.Random(SEED), {}
    with running_fleet(folder, has_own_cluster=True, has_replica=True) as fleet:
        probe, load = RemotePerson.create(fleet, "probe"), Load(fleet, users, SEED)
        load.start()
        for number in range(kills):
            next_at = time.monotonic() + every_seconds
            kill_one(fleet, rng)
            if number in outages:
                service, seconds = outages[number]
                with fleet.away(service):
                    time.sleep(seconds)
                back[f"{service} after kill {number}"] = round(seconds_until_back(fleet, probe), 1)
            time.sleep(max(0.0, next_at - time.monotonic()))
        load.stop()
        settle_and_check(fleet, load)
        counts = f"{len(load.stored)} stored, {len(load.deleted)} deleted, {load.own_reads} own reads"
        print(f"{counts}, {dict(load.answers)}, back: {back}")  # noqa: T201
    assert len(load.stored) > kills
    assert max(back.values(), default=0) <= BACK_SECONDS, back


def kill_one(fleet: Fleet, rng: random.Random) -> None:
    """Kill a gateway, a worker or the replica and start it again."""
    number = rng.randrange(GATEWAYS + WORKERS + 1)
    if number == GATEWAYS + WORKERS:
        with fleet.away("replica"):
            pass
    elif number < GATEWAYS:
        fleet.gateways[number].kill()
        fleet.gateways[number].start()
    else:
        fleet.restart_worker(number - GATEWAYS)
        fleet.workers[number - GATEWAYS].wait_until_running()


def seconds_until_back(fleet: Fleet, person: RemotePerson) -> float:
    """Return the time until an upload is accepted again."""
    began = time.monotonic()

    def is_back() -> bool:
        answer = person.upload("back.txt", str(time.monotonic()).encode(), timeout=30, Prefer="respond-async")
        return answer.status_code in {200, 201, 202}

    wait_until(is_back, 60)
    return time.monotonic() - began


def settle_and_check(fleet: Fleet, load: Load) -> None:
    """Wait until no work is left, then look for every marker."""
    pending = "SELECT count(*) FROM resources_resource WHERE state = 'live' AND status IN ('pending', 'ingesting')"
    wait_until(lambda: fleet.rows(pending) == [(0,)], SETTLED_SECONDS)
    assert not load.violations, load.violations[:20]
    found = {marker: load.texts(person, marker) for marker, person in (load.stored | load.deleted).items()}
    assert None not in found.values()
    lost = [marker for marker in load.stored if not found[marker]]
    doubled = [marker for marker in load.stored if len(found[marker] or ()) > 1]
    again = [marker for marker in load.deleted if found[marker]]
    assert (lost, doubled, again) == ([], [], []), fleet.log[-4000:]
