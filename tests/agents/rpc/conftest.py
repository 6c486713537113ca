from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.server import RunningServer, running_server

TOKEN = "the-token-of-the-setting"


@pytest.fixture(scope="package")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """A gateway with two ticks a second and a handshake timeout of two seconds."""
    with running_server(
        tmp_path_factory.mktemp("rpc"),
        DJANGO_SETTINGS_MODULE="tests.agents.rpc.server_settings",
        MEMORY_GATEWAY_RPC_TOKEN=TOKEN,
    ) as running:
        yield running


@pytest.fixture(scope="package")
def tokens(server: RunningServer) -> dict[str, str]:
    """A token for each of these users. Those of `reader` and `writer` have restricted scopes."""
    process = server.manage("shell", "--no-imports", "--command", _CREATE_TOKENS)
    assert process.returncode == 0, process.stderr
    tokens_by_user: dict[str, str] = json.loads(process.stdout)
    return tokens_by_user


_CREATE_TOKENS = """
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
