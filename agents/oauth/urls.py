from django.urls import path

from agents.oauth import addresses, views
from agents.oauth.consent import authorize

# Clients look for the metadata at the address of the server and, with the suffix, at that of `/mcp`.
_METADATA = (
    (addresses.RESOURCE_METADATA, views.resource_metadata),
    (addresses.SERVER_METADATA, views.server_metadata),
)
urlpatterns = [
    *(path(f"{address[1:]}{suffix}", view) for address, view in _METADATA for suffix in ("", "/mcp", "/mcp/")),
    path(addresses.AUTHORIZE[1:], authorize),
    path(addresses.TOKEN[1:], views.token),
    path(addresses.REGISTER[1:], views.register),
    path(addresses.REVOKE[1:], views.revoke),
]
