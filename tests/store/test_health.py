"""`Engine.health`, `Engine.capabilities` and the choice of the engine."""

from __future__ import annotations

from typing import Any

from django.db import OperationalError, connection

from engines.embedded.engine import EmbeddedEngine
from engines.registry import get_engine
from store.text.tokens import TOKENIZER_VERSION
from tests.conftest import Person
from tests.store.conftest import remember


def test_a_fresh_database_is_healthy(engine: EmbeddedEngine, db: None) -> None:
    health = engine.health(2)
    assert (health.status, health.base_url, health.error) == ("ok", None, None)
    assert health.data == {
        "engine": "embedded",
        "status": "ok",
        "database": connection.vendor,
        "index": {"status": "ok", "tokenizer": TOKENIZER_VERSION, "built_by": None},
        "ocr": {"engine": "off"},
    }


def test_the_index_names_the_tokenizer_that_built_it(engine: EmbeddedEngine, alice: Person) -> None:
    remember(engine, alice.owner, "payment")
    assert engine.health(2).data["index"] == {
        "status": "ok",
        "tokenizer": TOKENIZER_VERSION,
        "built_by": TOKENIZER_VERSION,
    }


def test_an_unreachable_database_is_reported_as_unavailable(engine: EmbeddedEngine, db: None) -> None:
    def fail(*_: Any) -> None:
        raise OperationalError("connection refused")

    with connection.execute_wrapper(fail):
        health = engine.health(2)
    assert health.status == "unavailable"
    assert health.data["status"] == "unavailable"
    assert health.error == "The memory database does not respond."


def test_the_health_check_restores_the_timeout_of_the_connection(
    engine: EmbeddedEngine, transactional_db: None
) -> None:
    statement = "SHOW statement_timeout" if connection.vendor == "postgresql" else "PRAGMA busy_timeout"

    def timeout() -> Any:
        with connection.cursor() as cursor:
            cursor.execute(statement)
            return cursor.fetchone()[0]

    before = timeout()
    engine.health(0.123)
    assert timeout() == before


def test_only_capabilities_that_work_are_listed(engine: EmbeddedEngine) -> None:
    assert {name for name, works in engine.capabilities().items() if works} == {"keyword", "delete"}


def test_the_embedded_engine_is_the_default_and_one_per_process(settings: Any) -> None:
    settings.MEMORY_GATEWAY_BACKEND_BASE_URL = ""
    assert get_engine().label == "embedded"
    assert get_engine() is get_engine()


def test_a_backend_address_selects_the_upstream_engine(settings: Any) -> None:
    settings.MEMORY_GATEWAY_BACKEND_BASE_URL = "http://127.0.0.1:1995"
    assert get_engine().label == "remote"
