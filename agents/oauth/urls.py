from django.urls import path

from agents.oauth import views
from agents.oauth.consent import authorize

# Clients look for the metadata at the address of the server and, with the suffix, at that of `/mcp`. Below a base path
# they find the server's metadata by the address of OpenID Connect, the only one that is below the path too.
_METADATA = (
    (views.RESOURCE_METADATA, views.resource_metadata),
    (views.SERVER_METADATA, views.server_metadata),
    (views.OPENID_METADATA, views.server_metadata),
)
urlpatterns = [
    *(path(f"{address[1:]}{suffix}", view) for address, view in _METADATA for suffix in ("", "/mcp", "/mcp/")),
    path(views.AUTHORIZE[1:], authorize),
    path(views.TOKEN[1:], views.token),
    path(views.REGISTER[1:], views.register),
    path(views.REVOKE[1:], views.revoke),
]
