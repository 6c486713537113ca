"""`GET /health`."""

from __future__ import annotations

import time

from tests.contract.caller import TIMEOUT_SECONDS, Gateway, require_shape


def test_health_tells_of_the_gateway_and_of_its_engine_without_a_key(gateway: Gateway) -> None:
    until = time.monotonic() + TIMEOUT_SECONDS  # EverOS may still be busy with what other tests gave it
    while (answer := gateway.ask("GET", "/health"))["backend"]["status"] != "ok" and time.monotonic() < until:
        time.sleep(1)
    require_shape(answer, {"status": str, "api": {"status": str}, "backend": {"status": str, "data": {"status": str}}})
    assert (answer["status"], answer["api"]) == ("ok", {"status": "ok"})
    assert (answer["backend"]["status"], answer["backend"]["data"]["status"]) == ("ok", "ok")
    assert answer["backend"]["base_url"] == gateway.base_url
