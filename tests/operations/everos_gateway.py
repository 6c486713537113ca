"""A gateway with EverOS as its engine."""

from __future__ import annotations

import contextlib
from collections import Counter
from pathlib import Path

from tests.resources.people import RemotePerson
from tests.server import RunningServer, running_server


def gateway(tmp_path: Path, url: str, **settings: str) -> contextlib.AbstractContextManager[RunningServer]:
    return running_server(
        tmp_path,
        MEMORY_GATEWAY_BACKEND_BASE_URL=url,
        MEMORY_GATEWAY_BACKEND_TIMEOUT_SECONDS="20",
        MEMORY_GATEWAY_BACKEND_RETRY_DELAY_SECONDS="0.05",
        **settings,
    )


def resource_statuses(person: RemotePerson) -> dict[str, int]:
    return dict(Counter(item["status"] for item in person.resources()))
