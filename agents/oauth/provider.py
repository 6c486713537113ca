"""The clients and tokens of `accounts.oauth` for the MCP SDK's handlers of registration and token requests.

The handlers are coroutines; `asgiref` runs each method in the thread of the request, with its database connection.
"""

from typing import cast
from urllib.parse import urlsplit
from uuid import UUID

from asgiref.sync import sync_to_async
from mcp.server.auth.handlers.register import RegistrationHandler
from mcp.server.auth.handlers.token import TokenHandler
from mcp.server.auth.middleware.client_auth import ClientAuthenticator
from mcp.server.auth.provider import (
    AccessToken,
    AuthorizationCode,
    OAuthAuthorizationServerProvider,
    RefreshToken,
    RegistrationError,
    TokenError,
)
from mcp.server.auth.settings import ClientRegistrationOptions
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken
from pydantic import AnyUrl

from accounts import oauth
from accounts.models import OAuthClient
from core.errors import InvalidInput, Unauthenticated

GRANT_TYPES = ["authorization_code", "refresh_token"]
_EXPIRES_IN = int(oauth.LIFETIMES[oauth.ACCESS].total_seconds())


class Provider:
    """The methods of `OAuthAuthorizationServerProvider` that the two handlers call."""

    @sync_to_async
    def get_client(self, client_id: str) -> OAuthClientInformationFull | None:
        client = oauth.find_client(client_id)
        return _information(client) if client else None

    @sync_to_async
    def register_client(self, client_info: OAuthClientInformationFull) -> None:
        """Store a public client. The response then shows what is stored: no secret, no addresses but the redirects."""
        uris = [str(uri) for uri in client_info.redirect_uris or ()]
        try:
            client = oauth.register(UUID(client_info.client_id), client_info.client_name or "", uris)
        except InvalidInput as error:
            raise RegistrationError("invalid_redirect_uri", error.detail) from None
        for name, value in _information(client):
            setattr(client_info, name, value)

    @sync_to_async
    def load_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: str
    ) -> AuthorizationCode | None:
        token = oauth.find(oauth.CODE, authorization_code)
        if token is None:
            return None
        return AuthorizationCode(
            code=authorization_code,
            scopes=token.scopes.split(),
            expires_at=token.expires_at.timestamp(),
            client_id=token.connection.client.client_id,
            code_challenge=token.connection.code_challenge,
            redirect_uri=AnyUrl(token.connection.redirect_uri),
            redirect_uri_provided_explicitly=True,
        )

    @sync_to_async
    def exchange_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: AuthorizationCode
    ) -> OAuthToken:
        return _redeemed(oauth.CODE, authorization_code.code)

    @sync_to_async
    def load_refresh_token(self, client: OAuthClientInformationFull, refresh_token: str) -> RefreshToken | None:
        token = oauth.find(oauth.REFRESH, refresh_token)
        if token is None:
            return None
        client_id = token.connection.client.client_id
        return RefreshToken(token=refresh_token, client_id=client_id, scopes=token.scopes.split())

    @sync_to_async
    def exchange_refresh_token(
        self, client: OAuthClientInformationFull, refresh_token: RefreshToken, scopes: list[str]
    ) -> OAuthToken:
        return _redeemed(oauth.REFRESH, refresh_token.token, " ".join(scopes))


def _information(client: OAuthClient) -> OAuthClientInformationFull:
    uris = list(client.redirect_uris)
    return OAuthClientInformationFull(
        client_id=client.client_id,
        client_id_issued_at=int(client.created_at.timestamp()),
        client_name=client.name,
        redirect_uris=uris,
        grant_types=GRANT_TYPES,
        response_types=["code"],
        token_endpoint_auth_method="none",  # noqa: S106 - the name of a method
        scope=" ".join(oauth.SCOPES),
        application_type="native" if any(urlsplit(uri).scheme != "https" for uri in uris) else "web",
    )


def _redeemed(kind: oauth.Kind, plaintext: str, scopes: str = "") -> OAuthToken:
    try:
        issued = oauth.redeem(kind, plaintext, scopes)
    except Unauthenticated as error:
        raise TokenError("invalid_grant", error.detail) from None
    return OAuthToken(
        access_token=issued.access, refresh_token=issued.refresh, expires_in=_EXPIRES_IN, scope=issued.scopes
    )


_provider = cast("OAuthAuthorizationServerProvider[AuthorizationCode, RefreshToken, AccessToken]", Provider())
registration = RegistrationHandler(_provider, ClientRegistrationOptions(enabled=True))
token = TokenHandler(_provider, ClientAuthenticator(_provider))
