"""Times in the parameters of the plugin's panel."""

from __future__ import annotations

import json
import shutil
import subprocess
from typing import Any

import pytest

from agents.rpc.params import moment_ms

TIMES = (
    "2026-06-10",
    "2026-06",
    "2026",
    "2026-06-10T10:00",
    "2026-06-10T10:00:00.5",
    "2026-06-10 10:00:00",
    "2026-06-10T10:00:00Z",
    "2026-06-10T10:00:00+08:00",
    "Wed, 10 Jun 2026 10:00:00 GMT",
    "Wed, 10 Jun 2026 10:00:00 +0200",
    "Wed Jun 10 2026 10:00:00 GMT+0800 (China Standard Time)",
    "June 10, 2026",
    "Jun 10, 2026 10:00",
    "10 June 2026 10:00 UTC",
    "2026/06/10",
    "2026/06/10 10:00:00",
    "6/10/2026, 10:00:00 AM",
    "6/10/2026 10:00 PM",
)
NO_TIMES = ("", "tomorrow", "2026-13-01", "2026-06-10T25:00", "Jun 32, 2026", "10.06.2026", "Wed", "x" * 1000)


@pytest.mark.parametrize("zone", ["UTC", "Asia/Shanghai", "America/New_York"])
def test_texts_are_read_as_a_browser_reads_them(settings: Any, zone: str) -> None:
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed")
    settings.TIME_ZONE = zone
    script = f"console.log(JSON.stringify({json.dumps([*TIMES, *NO_TIMES])}.map(Date.parse)))"
    printed = subprocess.run([node, "-e", script], env={"TZ": zone}, capture_output=True, check=True).stdout
    times = [*TIMES, *NO_TIMES[:5]]
    expected = dict(zip([*TIMES, *NO_TIMES], json.loads(printed), strict=True))
    assert {text: moment_ms({"at": text}, "at") for text in times} == {text: expected[text] for text in times}


def test_texts_without_a_time_count_as_absent() -> None:
    assert [moment_ms({"at": text}, "at") for text in NO_TIMES] == [None] * len(NO_TIMES)
