"""The part of the address below which a proxy serves the gateway, such as `/memory` of `https://example.org/memory/`."""

import ipaddress
import re
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from memory_gateway.server.request_body import Receive, Scope, Send

BASE_PATH: Final = re.compile(r"(?:/[A-Za-z0-9_.~-]+)+")
_HEADER: Final = b"x-forwarded-prefix"
ASGIApplication = Callable[[Scope, Receive, Send], Awaitable[None]]


class BasePath:
    """ASGI middleware that takes the base path off the path of a request and names it as `root_path`.

    `base_path` is the setting; without one, trusted proxies name it by `X-Forwarded-Prefix`. A proxy may have removed
    it, and probes ask without it: a path that does not begin with it stays as it is. To be outside of what replaces a
    proxy's address by its client's.
    """

    def __init__(self, application: ASGIApplication, base_path: str, proxies: Sequence[str]) -> None:
        self._application = application
        self._base_path = base_path
        self._proxies = [ipaddress.ip_network(proxy, strict=False) for proxy in proxies]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "lifespan" and (base := self._base_path or self._named_by_proxy(scope)):
            scope["root_path"] = base
            scope["path"] = _below(base, scope["path"])
            scope["raw_path"] = _below(base, scope["raw_path"].decode("latin1")).encode("latin1")
        await self._application(scope, receive, send)

    def _named_by_proxy(self, scope: Scope) -> str:
        named = [value for name, value in scope["headers"] if name == _HEADER]
        if len(named) != 1 or not self._is_trusted(scope):
            return ""
        base = named[0].decode("latin1").rstrip("/")
        return base if BASE_PATH.fullmatch(base) else ""

    def _is_trusted(self, scope: Scope) -> bool:
        host = (scope.get("client") or ("",))[0]
        try:
            address = ipaddress.ip_address(host)
        except ValueError:  # a socket file has no address
            return False
        return any(address in network for network in self._proxies)


def _below(base: str, path: str) -> str:
    return path.removeprefix(base) or "/" if path == base or path.startswith(f"{base}/") else path
