"""An application that connects to the gateway step by step, over Django's test client or a running server."""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit
from uuid import UUID, uuid4

from django.test import Client

from accounts import oauth
from accounts.audit import Actor
from accounts.models import OAuthClient

REDIRECT = "http://127.0.0.1:33418/callback"
ORIGIN = "http://testserver"
RESOURCE = f"{ORIGIN}/mcp"


class Application:
    """A registered client with a fresh PKCE verifier."""

    def __init__(self, http: Client, *, redirect_uris: tuple[str, ...] = (REDIRECT,), name: str = "Test agent") -> None:
        self.http = http
        registered = register(http, redirect_uris=list(redirect_uris), client_name=name)
        assert registered.status_code == 201, registered.content
        self.client_id = registered.json()["client_id"]
        self.redirect_uri = redirect_uris[0]
        self.verifier = secrets.token_urlsafe(48)

    @property
    def challenge(self) -> str:
        return base64.urlsafe_b64encode(hashlib.sha256(self.verifier.encode()).digest()).decode().rstrip("=")

    def address(self, **changes: Any) -> str:
        """Return the address of the consent page; a changed parameter of None is left out."""
        parameters = {
            "response_type": "code",
            "client_id": self.client_id,
            "redirect_uri": self.redirect_uri,
            "code_challenge": self.challenge,
            "code_challenge_method": "S256",
            "state": "s t&te",
            "scope": "memories:read memories:write",
            "resource": RESOURCE,
            **changes,
        }
        sent = {name: value for name, value in parameters.items() if value is not None}
        return f"/oauth/authorize?{urlencode(sent, doseq=True)}"

    def approve(self, key: str, *, http: Client | None = None, **form: str) -> Any:
        data = {"key": key, "may_write": "on", "answer": "allow", **form}
        return (http or self.http).post(self.address(), {name: value for name, value in data.items() if value})

    def code(self, key: str, **form: str) -> str:
        answer = self.approve(key, **form)
        assert answer.status_code == 303, answer.content.decode()
        return str(answer_of(answer)["code"])

    def redeem(self, code: str, **changes: Any) -> Any:
        return self.token(
            grant_type="authorization_code",
            code=code,
            redirect_uri=self.redirect_uri,
            code_verifier=self.verifier,
            **changes,
        )

    def refresh(self, refresh_token: str, **changes: Any) -> Any:
        return self.token(grant_type="refresh_token", refresh_token=refresh_token, **changes)

    def token(self, **parameters: Any) -> Any:
        form = urlencode({"client_id": self.client_id, "resource": RESOURCE, **parameters})
        return self.http.post("/oauth/token", form, content_type="application/x-www-form-urlencoded")

    def connect(self, key: str, **form: str) -> dict[str, Any]:
        """Return the tokens of a new connection."""
        answer = self.redeem(self.code(key, **form))
        assert answer.status_code == 200, answer.content
        return dict(answer.json())


def connect(user_pk: UUID, key_id: UUID | None, name: str, scopes: tuple[str, ...] = oauth.SCOPES) -> OAuthClient:
    """Register an application and connect it, without HTTP."""
    client = oauth.register(uuid4(), name, [REDIRECT])
    approval = oauth.Approval(client.pk, REDIRECT, "x" * 43, RESOURCE, scopes)
    oauth.approve(approval, user_pk=user_pk, key_id=key_id, actor=Actor.command("tests"))
    return client


def register(http: Client, **metadata: Any) -> Any:
    return http.post("/oauth/register", json.dumps(metadata), content_type="application/json")


def answer_of(answer: Any) -> dict[str, str]:
    """Return the parameters of the redirect to the application."""
    return {name: values[0] for name, values in parse_qs(urlsplit(answer.headers["Location"]).query).items()}
