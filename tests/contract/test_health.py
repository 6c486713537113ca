"""`GET /health`."""

from __future__ import annotations

from tests.contract.caller import Gateway, require_shape


def test_health_tells_of_the_gateway_and_of_its_engine_without_a_key(gateway: Gateway) -> None:
    answer = gateway.ask("GET", "/health")
    require_shape(answer, {"status": str, "api": {"status": str}, "backend": {"status": str, "data": {"status": str}}})
    assert (answer["status"], answer["api"]) == ("ok", {"status": "ok"})
    assert (answer["backend"]["status"], answer["backend"]["data"]["status"]) == ("ok", "ok")
    assert answer["backend"]["base_url"] == gateway.base_url
