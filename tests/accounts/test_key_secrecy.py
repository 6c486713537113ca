"""The plaintext of a key is only in the response that issues it."""

from __future__ import annotations

import io
import logging
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests
from django.core.management import call_command
from django.core.management.commands.dumpdata import Command as DumpData
from django.test import Client

from accounts import services
from accounts.audit import Actor
from core.logs import RedactingFilter
from tests.conftest import Person
from tests.server import running_server

URL = "/users/me/keys"


@pytest.fixture
def log_output() -> Iterator[io.StringIO]:
    """Collect log output of all levels, passed through the filter that every handler of the gateway has."""
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.addFilter(RedactingFilter())
    loggers = [logging.getLogger(name) for name in ("", "memory_gateway", "memory_gateway.api", "django")]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.addHandler(handler)
        logger.setLevel(logging.DEBUG)
    yield stream
    for logger, level in zip(loggers, levels, strict=True):
        logger.removeHandler(handler)
        logger.setLevel(level)


@pytest.mark.django_db
def test_database_dump_and_logs_hold_no_key(alice: Person, log_output: io.StringIO, settings: Any) -> None:
    settings.MEMORY_GATEWAY_LOG_BODIES = True
    plaintexts = [alice.user_key]
    plaintexts += [alice.client.post(URL, {}, content_type="application/json").json()["user_key"]]
    plaintexts += [alice.client.post(URL + "/rotate", {}, content_type="application/json").json()["user_key"]]
    Client().get(URL, alice.credentials)
    Client().get(URL, {"user_id": "bob", "user_key": alice.user_key})
    Client().get(f"{URL}/{alice.user_key}")
    Client().post(URL, {**alice.credentials, "surprise": alice.user_key}, content_type="application/json")
    created = Client().post("/users", {"user_id": "bob"}, content_type="application/json").json()
    plaintexts += [created["user_key"]]
    dump = io.StringIO()
    call_command(DumpData(), stdout=dump)
    assert "accounts.userkey" in dump.getvalue()
    assert "/users" in log_output.getvalue()
    for plaintext in plaintexts:
        assert plaintext not in dump.getvalue()
        assert plaintext not in log_output.getvalue()
        assert plaintext[7:30] not in dump.getvalue() + log_output.getvalue()


def test_the_files_of_a_running_server_hold_no_key(tmp_path: Path) -> None:
    with running_server(tmp_path) as server:
        key = requests.post(f"{server.url}/users", json={"user_id": "alice"}, timeout=10).json()["user_key"]
        credentials = {"user_id": "alice", "user_key": key}
        assert requests.get(f"{server.url}{URL}", params=credentials, timeout=10).status_code == 200
        assert requests.get(f"{server.url}{URL}", params={**credentials, "x": key}, timeout=10).status_code == 422
        server.stop()
        assert "/users/me/keys" in server.log
        found = subprocess.run(["grep", "-rl", key, str(tmp_path)], capture_output=True, text=True, check=False)
        assert found.stdout == ""


@pytest.mark.django_db
def test_the_repr_of_an_issued_key_hides_the_plaintext(alice: Person) -> None:
    issued = services.issue_key(alice.user_pk, actor=Actor.command("tests"))
    assert issued.plaintext not in f"{issued} {issued!r} {vars(issued.key)}"
