from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from resources.services import ingestion_pool


@pytest.fixture(autouse=True)
def quiet_pool(storage: Path) -> Iterator[None]:
    """Each test has a storage of its own, and no ingestion outlives the test that began it."""
    yield
    assert ingestion_pool().wait_until_idle(30)
