"""Three people for every test: alice owns, bob is near (he has the like himself), charlie is a stranger."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from django.test import Client
from hypothesis import HealthCheck, settings

from accounts import services as accounts
from accounts.audit import Actor
from store.types import Owner
from tests import everos as real_everos

# How fast examples come says something about the machine, not about the gateway.
settings.register_profile("any machine", settings(), deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any machine")

SHARED = Path(__file__).resolve().parent.parent.parent / "shared"


@dataclass(frozen=True)
class Person:
    """A memory user with the key and a client that sends it as a bearer."""

    user_id: str
    user_pk: UUID
    user_key: str
    client: Client

    @property
    def owner(self) -> Owner:
        return Owner(self.user_pk, self.user_id)

    @property
    def credentials(self) -> dict[str, str]:
        return {"user_id": self.user_id, "user_key": self.user_key}


def make_person(user_id: str) -> Person:
    issued = accounts.create_user(user_id, actor=Actor.command("tests"))
    client = Client(headers={"Authorization": f"Bearer {issued.plaintext}"})
    return Person(user_id, issued.key.user_id, issued.plaintext, client)


@pytest.fixture
def alice(db: Any) -> Person:
    return make_person("alice")


@pytest.fixture
def bob(db: Any) -> Person:
    return make_person("bob")


@pytest.fixture
def charlie(db: Any) -> Person:
    return make_person("charlie")


@pytest.fixture(autouse=True)
def storage(settings: Any, tmp_path: Path) -> Iterator[Path]:
    """A storage folder of this test's own, since each test's database is a new one."""
    folder = tmp_path / "storage"
    settings.MEMORY_GATEWAY_STORAGE_DIR = folder
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def everos() -> Iterator[real_everos.EverOS]:
    """A real EverOS, the same for all tests."""
    with real_everos.running() as service:
        yield service
