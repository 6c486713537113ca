"""Health and capabilities of EverOS."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta

import pytest

from engines.attached import AttachedEngine
from remote.everos import EverOS
from tests.remote.conftest import make_client, make_engine
from tests.stub_upstream import Fault, StubUpstream


def test_a_working_upstream_is_ok(stub: StubUpstream) -> None:
    health = make_engine(stub).health(2.0)
    assert (health.status, health.base_url, health.data["version"]) == ("ok", stub.url, "1.5.1")


def test_an_old_version_without_details_is_ok() -> None:
    with StubUpstream(version=None) as stub:
        engine = make_engine(stub)
        assert engine.health(2.0).data == {"status": "ok"}
        assert engine.capabilities()["vector"]


def test_an_absent_server_is_unavailable(stub: StubUpstream) -> None:
    engine = make_engine(stub)
    stub.__exit__()
    health = engine.health(2.0)
    assert (health.status, health.error, health.base_url) == ("unavailable", "Connection refused", stub.url)
    assert not any(engine.capabilities().values())


FAULTS = (
    Fault(hang_seconds=5),
    Fault(drip_seconds=0.05),
    Fault(status=500, body={}),
    Fault(body=[]),
    Fault(reset=True),
)


@pytest.mark.parametrize("fault", FAULTS)
def test_a_faulty_upstream_is_reported_as_unavailable_in_time(stub: StubUpstream, fault: Fault) -> None:
    stub.fault("health", fault)
    started = time.monotonic()
    health = make_engine(stub).health(0.3)
    assert time.monotonic() - started < 3.0
    assert health.status == "unavailable"
    assert health.error


def test_capabilities_are_cached_for_half_a_minute(stub: StubUpstream) -> None:
    now = [datetime(2026, 11, 20, tzinfo=UTC)]
    engine = AttachedEngine(EverOS(make_client(stub), clock=lambda: now[0]))
    assert engine.capabilities() == engine.capabilities()
    assert len(stub.calls("health")) == 1
    assert not engine.capabilities()["delete"]
    now[0] += timedelta(seconds=31)
    engine.capabilities()
    assert len(stub.calls("health")) == 2
