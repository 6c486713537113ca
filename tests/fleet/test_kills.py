"""Mixed load on a fleet whose processes are killed and whose services go away loses and doubles nothing."""

from __future__ import annotations

import os
import random
import time
from pathlib import Path

import pytest

from tests.fleet.fleet import GATEWAYS, WORKERS, Fleet, missing_programs, running_fleet
from tests.fleet.load import Load
from tests.resources.people import RemotePerson
from tests.server import wait_until

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not os.environ.get("DATABASE_URL", "").startswith("postgres"), reason="a fleet has PostgreSQL"),
    pytest.mark.skipif(bool(missing_programs()), reason=f"missing programs: {missing_programs()}"),
]
SEED = 7
BACK_SECONDS = 10.0
SETTLED_SECONDS = 180.0


def kill_one(fleet: Fleet, rng: random.Random) -> None:
    """Kill a gateway or a worker and start it again."""
    number = rng.randrange(GATEWAYS + WORKERS)
    if number < GATEWAYS:
        fleet.gateways[number].kill()
        fleet.gateways[number].start()
    else:
        fleet.restart_worker(number - GATEWAYS)
        fleet.workers[number - GATEWAYS].wait_until_running()


def seconds_until_back(fleet: Fleet, person: RemotePerson) -> float:
    """Return the time until an upload is carried out again."""
    began = time.monotonic()

    def is_back() -> bool:
        answer = person.upload("back.txt", str(time.monotonic()).encode(), timeout=30, Prefer="respond-async")
        return answer.status_code in {200, 201, 202}

    wait_until(is_back, 60)
    return time.monotonic() - began


def settle_and_check(fleet: Fleet, load: Load) -> None:
    """Wait until no work is left, then look for every marker."""
    pending = "SELECT count(*) FROM resources_resource WHERE status IN ('pending', 'ingesting')"
    wait_until(lambda: fleet.rows(pending) == [(0,)], SETTLED_SECONDS)
    assert not load.violations, load.violations[:20]
    lost = [marker for marker, person in load.stored.items() if not load.texts(person, marker)]
    doubled = [marker for marker, person in load.stored.items() if len(load.texts(person, marker) or ()) > 1]
    again = [marker for marker, person in load.deleted.items() if load.texts(person, marker)]
    assert (lost, doubled, again) == ([], [], []), fleet.log[-4000:]


def report(load: Load, **figures: object) -> None:
    print(f"{len(load.stored)} stored, {len(load.deleted)} deleted, answers {dict(load.answers)}, {figures}")  # noqa: T201


def test_a_few_kills_lose_nothing(tmp_path: Path) -> None:
    rng = random.Random(SEED)
    with running_fleet(tmp_path) as fleet:
        load = Load(fleet, users=2, seed=SEED)
        load.start()
        for _ in range(3):
            kill_one(fleet, rng)
        load.stop()
        assert len(load.stored) > 5
        settle_and_check(fleet, load)
        report(load)


@pytest.mark.torture
def test_two_hundred_kills_and_outages_lose_nothing(tmp_path: Path) -> None:
    rng = random.Random(SEED)
    back: dict[str, float] = {}
    with running_fleet(tmp_path) as fleet:
        probe = RemotePerson.create(fleet, "probe")
        load = Load(fleet, users=4, seed=SEED)
        load.start()
        outages = {40: "database", 80: "files", 120: "redis-server", 160: "database"}
        for number in range(200):
            kill_one(fleet, rng)
            if kind := outages.get(number):
                with fleet.away(kind):
                    time.sleep(5 if kind == "database" else 30)
                back[f"{kind} after kill {number}"] = round(seconds_until_back(fleet, probe), 1)
        load.stop()
        settle_and_check(fleet, load)
        report(load, back=back)
    assert max(back.values()) <= BACK_SECONDS, back
