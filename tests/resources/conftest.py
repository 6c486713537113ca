from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from core.background import tasks


@pytest.fixture(autouse=True)
def quiet_tasks(storage: Path) -> Iterator[None]:
    """Give each test its own storage folder, and wait at its end for the ingestions that it started."""
    yield
    assert tasks.wait_until_idle(30)
