"""The addresses of the OAuth endpoints. They follow the host of the request, which the caller has checked."""

from typing import Final

from django.conf import settings

from accounts.oauth import SCOPES

AUTHORIZE, TOKEN, REGISTER, REVOKE = (f"/oauth/{name}" for name in ("authorize", "token", "register", "revoke"))
RESOURCE_METADATA: Final = "/.well-known/oauth-protected-resource"
SERVER_METADATA: Final = "/.well-known/oauth-authorization-server"
MCP: Final = "/mcp"
_DEFAULT_PORTS: Final = {"http": ":80", "https": ":443"}


def origin_of(scheme: str, host: str) -> str:
    """Return scheme and host, the identifier of the authorization server, without a default port."""
    return f"{scheme}://{host.lower().removesuffix(_DEFAULT_PORTS[scheme])}"


def challenge(scheme: str, host: str, *, is_invalid: bool) -> str:
    """Return the `WWW-Authenticate` of a 401 of `/mcp` (RFC 9728); `is_invalid` if the request had a token."""
    if not settings.MEMORY_GATEWAY_OAUTH:
        return "Bearer"
    metadata = f'resource_metadata="{origin_of(scheme, host)}{RESOURCE_METADATA}{MCP}"'
    problem = 'error="invalid_token", ' if is_invalid else ""
    return f'Bearer {problem}{metadata}, scope="{" ".join(SCOPES)}"'
