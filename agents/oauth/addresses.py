"""Addresses of OAuth and MCP, below the base path."""

from typing import Final

AUTHORIZE, TOKEN, REGISTER, REVOKE = (f"/oauth/{name}" for name in ("authorize", "token", "register", "revoke"))
RESOURCE_METADATA: Final = "/.well-known/oauth-protected-resource"
SERVER_METADATA: Final = "/.well-known/oauth-authorization-server"
OPENID_METADATA: Final = "/.well-known/openid-configuration"
MCP: Final = "/mcp"
