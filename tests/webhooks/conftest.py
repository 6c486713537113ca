from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.webhooks.receiver import Receiver, running_receiver


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with running_receiver() as running:
        yield running
