from __future__ import annotations

import asyncio
import re
import sys
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar
from urllib.parse import parse_qsl, urlsplit

import httpx2
import pytest
import requests
from mcp.client.auth import AuthorizationCodeResult, OAuthClientProvider
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import OAuthClientInformationFull, OAuthClientMetadata, OAuthToken

from tests.forked import PROJECT
from tests.server import RunningServer, running_server

REDIRECT = "http://127.0.0.1:33418/callback"
_Result = TypeVar("_Result")
Talk = Callable[[Client], Awaitable[_Result]]


class Storage:
    """The tokens of a client, in memory."""

    def __init__(self) -> None:
        self.tokens: OAuthToken | None = None
        self.client: OAuthClientInformationFull | None = None

    async def get_tokens(self) -> OAuthToken | None:
        return self.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self.client = client_info


def approve(address: str, key: str, *, may_write: bool = True) -> str:
    """Fill in the consent page as a browser does. Return the address to which it sends the browser."""
    with requests.Session() as browser:
        page = browser.get(address, timeout=60)
        assert page.status_code == 200, page.text
        form = {**parse_hidden(page.text), "key": key, "answer": "allow", **({"may_write": "on"} if may_write else {})}
        answer = browser.post(address, form, headers={"Referer": address}, allow_redirects=False, timeout=60)
    assert answer.status_code == 303, answer.text
    return answer.headers["Location"]


def ids_in(text: str) -> list[str]:
    """Return the ids of the memories that a tool's text shows, in their order."""
    return re.findall(r"\[id: ([^\]]+)\]", text)


def parse_hidden(page: str) -> dict[str, str]:
    return dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', page))


def parameters_of(address: str) -> dict[str, str]:
    return dict(parse_qsl(urlsplit(address).query))


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

    def over_http(self, use: Talk[_Result], *, mode: str = "auto", query: str = "", **headers: str) -> _Result:
        """Call `use` with the official client connected to `/mcp`."""

        async def session() -> _Result:
            async with httpx2.AsyncClient(headers={**self.headers, **headers}, timeout=60) as http_client:
                transport = streamable_http_client(f"{self.server.url}/mcp{query}", http_client=http_client)
                async with Client(transport, mode=mode) as client:
                    return await use(client)

        return asyncio.run(session())

    def over_oauth(self, use: Talk[_Result], *, mode: str = "auto", may_write: bool = True, query: str = "") -> _Result:
        """Call `use` with the official client, which knows only the URL; the user enters the key on the page."""
        url = f"{self.server.url}/mcp{query}"
        answers: list[dict[str, str]] = []

        async def open_page(address: str) -> None:
            answers.append(parameters_of(await asyncio.to_thread(approve, address, self.key, may_write=may_write)))

        async def answer() -> AuthorizationCodeResult:
            found = answers.pop()
            return AuthorizationCodeResult(code=found["code"], state=found["state"], iss=found["iss"])

        async def session() -> _Result:
            metadata = OAuthClientMetadata.model_validate({"redirect_uris": [REDIRECT], "client_name": "Python agent"})
            login = OAuthClientProvider(url, metadata, Storage(), open_page, answer)
            async with (
                httpx2.AsyncClient(auth=login, timeout=60) as http_client,
                Client(streamable_http_client(url, http_client=http_client), mode=mode) as client,
            ):
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
    without_limits = "tests.agents.rpc.server_settings"  # the files of a worker share the server and its address
    with running_server(tmp_path_factory.mktemp("mcp"), DJANGO_SETTINGS_MODULE=without_limits) as running:
        yield running


def make_user(server: RunningServer, user_id: str) -> User:
    answer = requests.post(f"{server.url}/users", json={"user_id": user_id}, timeout=60)
    return User(server, user_id, answer.json()["user_key"])


@pytest.fixture
def user(server: RunningServer, request: pytest.FixtureRequest) -> User:
    """A separate user for each test."""
    return make_user(server, f"u{abs(hash(request.node.nodeid))}")
