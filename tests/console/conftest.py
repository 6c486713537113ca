from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.console.panel import Panel, running_panel


@pytest.fixture(scope="module")
def panel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Panel]:
    """Run one gateway and one browser for all tests of a file. Two browsers at the same time are not possible."""
    with running_panel(tmp_path_factory.mktemp("panel")) as running:
        yield running
