from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.server import RunningServer, running_server

TOKEN = "the-token-of-the-setting"


@pytest.fixture(scope="package")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """A gateway whose ticks come twice a second and whose handshakes end after two."""
    with running_server(
        tmp_path_factory.mktemp("rpc"),
        DJANGO_SETTINGS_MODULE="tests.agents.rpc.server_settings",
        MEMORY_GATEWAY_RPC_TOKEN=TOKEN,
    ) as running:
        yield running


@pytest.fixture(scope="package")
def tokens(server: RunningServer) -> dict[str, str]:
    """A token for each of these users, the names of two of whom say what theirs may do."""
    made = server.manage("shell", "--no-imports", "--command", _MAKE)
    assert made.returncode == 0, made.stderr
    found: dict[str, str] = json.loads(made.stdout)
    return found


_MAKE = """
import json
from accounts import services, tokens
from accounts.audit import Actor

actor, scopes = Actor.command("tests"), {"reader": [tokens.READ], "writer": [tokens.WRITE]}
made = {}
for name in ("alice", "bob", "charlie", "reader", "writer", "logged", "revoked"):
    user = services.create_user(name, actor=actor).key.user
    made[name] = tokens.issue(name, user=user, scopes=scopes.get(name, [tokens.ADMIN]), actor=actor).plaintext
print(json.dumps(made))
"""
