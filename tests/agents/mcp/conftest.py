from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

import httpx2
import pytest
import requests
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

from tests.forked import PROJECT
from tests.server import RunningServer, running_server

_Result = TypeVar("_Result")
Talk = Callable[[Client], Awaitable[_Result]]


@dataclass(frozen=True)
class User:
    """A user of a running gateway."""

    server: RunningServer
    user_id: str
    key: str

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.key}"}

    def post(self, path: str, **request: Any) -> requests.Response:
        return requests.post(f"{self.server.url}{path}", headers=self.headers, timeout=60, **request)

    def over_http(self, use: Talk[_Result], *, mode: str = "auto", **headers: str) -> _Result:
        """Call `use` with the official client connected to `/mcp`."""

        async def session() -> _Result:
            async with httpx2.AsyncClient(headers={**self.headers, **headers}, timeout=60) as http_client:
                transport = streamable_http_client(f"{self.server.url}/mcp", http_client=http_client)
                async with Client(transport, mode=mode) as client:
                    return await use(client)

        return asyncio.run(session())

    def over_stdio(self, use: Talk[_Result], *arguments: str, mode: str = "auto") -> _Result:
        """Call `use` with the official client connected to `manage.py mcp`, which it starts."""
        command = StdioServerParameters(
            command=sys.executable,
            args=["manage.py", "mcp", "--user", self.user_id, *arguments],
            env=self.server.env,
            cwd=PROJECT,
        )

        async def session() -> _Result:
            async with Client(command, mode=mode) as client:
                return await use(client)

        return asyncio.run(session())


@pytest.fixture(scope="package")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    with running_server(tmp_path_factory.mktemp("mcp")) as running:
        yield running


def make_user(server: RunningServer, user_id: str) -> User:
    answer = requests.post(f"{server.url}/users", json={"user_id": user_id}, timeout=60)
    return User(server, user_id, answer.json()["user_key"])


@pytest.fixture
def user(server: RunningServer, request: pytest.FixtureRequest) -> User:
    """A separate user for each test."""
    return make_user(server, f"u{abs(hash(request.node.nodeid))}")
