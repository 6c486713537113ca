from functools import partial

from django.urls import path

from agents.oauth import addresses
from core.lazy import lazy_view

_resource_metadata = lazy_view("agents.oauth.views.resource_metadata")
_server_metadata = lazy_view("agents.oauth.views.server_metadata")
_for_programs = partial(lazy_view, csrf_exempt=True)

# Clients look for the metadata at the address of the server and, with the suffix, at that of `/mcp`. Below a base path
# they find the server's metadata by the address of OpenID Connect, the only one that is below the path too.
_METADATA = (
    (addresses.RESOURCE_METADATA, _resource_metadata),
    (addresses.SERVER_METADATA, _server_metadata),
    (addresses.OPENID_METADATA, _server_metadata),
)
urlpatterns = [
    *(path(f"{address[1:]}{suffix}", view) for address, view in _METADATA for suffix in ("", "/mcp", "/mcp/")),
    path(addresses.AUTHORIZE[1:], lazy_view("agents.oauth.consent.authorize")),
    path(addresses.TOKEN[1:], _for_programs("agents.oauth.views.token")),
    path(addresses.REGISTER[1:], _for_programs("agents.oauth.views.register")),
    path(addresses.REVOKE[1:], _for_programs("agents.oauth.views.revoke")),
]
