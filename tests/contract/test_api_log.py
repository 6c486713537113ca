"""The log line of each request."""

from __future__ import annotations

import json
import secrets
import time
from typing import Any

import pytest

from tests.contract.caller import Caller, Gateway, require_shape

FIELDS = {
    "request_time": str,
    "duration_ms": (int, float),
    "method": str,
    "path": str,
    "url": str,
    "client": str,
    "input": dict,
    "output": dict,
}


def lines_about(gateway: Gateway, marker: str) -> list[dict[str, Any]]:
    """The log lines that mention the marker, once there is one."""
    deadline = time.monotonic() + 60
    while True:
        lines = [json.loads(line) for line in gateway.server.log.splitlines() if marker in line and line[0] == "{"]
        if lines or time.monotonic() > deadline:
            return lines
        time.sleep(0.05)


def test_each_request_is_logged_with_the_documented_fields_and_without_keys(gateway: Gateway, alice: Caller) -> None:
    marker = f"nothing{secrets.token_hex(6)}"
    alice.search(marker, method="keyword")
    [line] = lines_about(gateway, marker)
    require_shape(line, FIELDS)
    assert (line["method"], line["path"]) == ("POST", "/memories/search")
    assert "[REDACTED]" in json.dumps(line["input"])
    assert '"status": 200' in json.dumps(line["output"]) or "200" in json.dumps(line["output"])
    assert alice.user_key not in gateway.server.log


@pytest.mark.usefixtures("writes")
def test_of_an_upload_only_type_and_size_are_logged(gateway: Gateway, alice: Caller) -> None:
    words = f"secretwords{secrets.token_hex(6)}"
    resource_id = alice.upload(words.encode(), "secret.txt")["resource_id"]
    assert lines_about(gateway, resource_id)
    assert words not in gateway.server.log
