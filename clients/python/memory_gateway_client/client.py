"""The two clients: the same endpoints on two transports."""

from copy import copy
from types import TracebackType
from typing import Final, Self
from urllib.parse import urlsplit

import httpx2

from memory_gateway_client import models
from memory_gateway_client.calls import Call, call, parsed_as
from memory_gateway_client.endpoints import Keys, Memories, Profiles, Resources, Sessions, Users, Webhooks
from memory_gateway_client.transports import AsyncTransport, Endpoint, Group, Retries, S, Settings, Transport

TIMEOUT: Final = httpx2.Timeout(180.0, connect=10.0, pool=10.0)
"""An upload, an add and a flush wait until the engine is done."""


class _Gateway(Group[S]):
    """All groups of endpoints."""

    _closes: bool

    def __init__(self, transport: S, scope: dict[str, str | None]) -> None:
        super().__init__(transport, scope)
        self.memories: Memories[S] = Memories(transport, scope)
        self.sessions: Sessions[S] = Sessions(transport, scope)
        self.resources: Resources[S] = Resources(transport, scope)
        self.profiles: Profiles[S] = Profiles(transport, scope)
        self.users: Users[S] = Users(transport, scope)
        self.keys: Keys[S] = Keys(transport, scope)
        self.webhooks: Webhooks[S] = Webhooks(transport, scope)

    def in_scope(self, app_id: str | None = None, project_id: str | None = None) -> Self:
        """Return a client of another scope, which shares connections and key with this one."""
        scoped = copy(self)
        _Gateway.__init__(scoped, self._transport, {"app_id": app_id, "project_id": project_id})
        scoped._closes = False  # noqa: SLF001
        return scoped

    @Endpoint
    def health(self) -> Call[models.Health]:
        """Return the state of the gateway and its engine."""
        return call("GET", "/health", parsed_as(models.Health))


class Client(_Gateway[Transport]):
    """A client that waits for answers. Threads may share it.

    `app_id` and `project_id` are the scope of all calls. `timeout` is in seconds, or an `httpx2.Timeout`. `http` is a
    client with other connections, such as a proxy; the caller closes it.
    """

    def __init__(
        self,
        base_url: str,
        api_key: str | None = None,
        *,
        app_id: str | None = None,
        project_id: str | None = None,
        timeout: float | httpx2.Timeout = TIMEOUT,
        retries: Retries | None = None,
        http: httpx2.Client | None = None,
    ) -> None:
        self._closes = http is None
        transport = Transport(http or httpx2.Client(timeout=timeout), _settings(base_url, api_key, retries))
        super().__init__(transport, {"app_id": app_id, "project_id": project_id})

    def close(self) -> None:
        """Close the connections."""
        if self._closes:
            self._transport.http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class AsyncClient(_Gateway[AsyncTransport]):
    """A client for asyncio, with the same endpoints as `Client`; lists and contents are asynchronous iterators."""

    def __init__(
        self,
        base_url: str,
        api_key: str | None = None,
        *,
        app_id: str | None = None,
        project_id: str | None = None,
        timeout: float | httpx2.Timeout = TIMEOUT,
        retries: Retries | None = None,
        http: httpx2.AsyncClient | None = None,
    ) -> None:
        self._closes = http is None
        transport = AsyncTransport(http or httpx2.AsyncClient(timeout=timeout), _settings(base_url, api_key, retries))
        super().__init__(transport, {"app_id": app_id, "project_id": project_id})

    async def close(self) -> None:
        """Close the connections."""
        if self._closes:
            await self._transport.http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


def _settings(base_url: str, api_key: str | None, retries: Retries | None) -> Settings:
    """Return the transport's settings. Raises: ValueError for an address that is not one of HTTP."""
    address = urlsplit(base_url)
    if address.scheme not in {"http", "https"} or not address.netloc or address.query or address.fragment:
        raise ValueError(f"base_url must read like http://127.0.0.1:8010, not {base_url!r}.")
    headers = {"Accept": "application/json, application/problem+json"}
    if api_key is not None:
        headers["Authorization"] = f"Bearer {api_key}"
    return Settings(base_url.rstrip("/"), headers, retries or Retries())
