"""A stand-in for an OpenID Connect provider on a loopback port. Tests make it lie about single things."""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, unquote_plus, urlencode, urlsplit

import jwt
from cryptography.hazmat.primitives.asymmetric import rsa
from jwt.algorithms import RSAAlgorithm

CLIENT_ID, CLIENT_SECRET = "memory gateway", "s3cret:with/signs+"  # both need the encoding of RFC 6749, 2.3.1
KEY_ID = "key-1"


def new_key() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


@dataclass
class Provider:
    """`person` are the claims about who signs in. The other fields change single answers."""

    issuer: str = ""
    person: dict[str, Any] = field(default_factory=lambda: {"sub": "s-1", "preferred_username": "maria"})
    claims: dict[str, Any] = field(default_factory=dict)
    left_out: set[str] = field(default_factory=set)
    discovery: dict[str, Any] = field(default_factory=dict)
    user_info: dict[str, Any] = field(default_factory=dict)
    algorithm: str = "RS256"
    signing_key: Any = field(default_factory=cache(new_key))
    published_key: Any = None
    redirected: dict[str, str] = field(default_factory=dict)
    grants: dict[str, dict[str, str]] = field(default_factory=dict)
    requests: list[str] = field(default_factory=list)
    refresh_tokens: set[str] | None = None
    """The live refresh tokens; None for a provider without. Each is good for one use."""
    refresh_answer: tuple[int, dict[str, Any]] | None = None
    is_id_token_refreshed: bool = True

    def __post_init__(self) -> None:
        self.published_key = self.signing_key.public_key()

    def metadata(self) -> dict[str, Any]:
        names = {"authorization_endpoint": "authorize", "token_endpoint": "token", "jwks_uri": "keys",
                 "userinfo_endpoint": "me", "end_session_endpoint": "leave"}  # fmt: skip
        found = {"issuer": self.issuer, **{name: f"{self.issuer}/{path}" for name, path in names.items()}}
        return {**found, **self.discovery}

    def keys(self) -> dict[str, Any]:
        return {"keys": [{**RSAAlgorithm.to_jwk(self.published_key, as_dict=True), "kid": KEY_ID, "use": "sig"}]}

    def authorize(self, query: dict[str, str]) -> str:
        """Sign the person in at once, and return the address to which the browser goes back."""
        assert query["response_type"] == "code"
        assert query["client_id"] == CLIENT_ID
        assert "openid" in query["scope"].split()
        code = secrets.token_urlsafe()
        self.grants[code] = query
        return f"{query['redirect_uri']}?{urlencode({'code': code, 'state': query['state'], **self.redirected})}"

    def token(self, form: dict[str, str], authorization: str) -> tuple[int, dict[str, Any]]:
        if form["grant_type"] == "refresh_token":
            return self.refresh(form["refresh_token"], authorization)
        grant = self.grants.pop(form.get("code", ""), None)
        client = base64.b64decode(authorization.removeprefix("Basic ")).decode().split(":")
        challenge = base64.urlsafe_b64encode(hashlib.sha256(form["code_verifier"].encode()).digest()).rstrip(b"=")
        if (
            grant is None
            or [unquote_plus(part) for part in client] != [CLIENT_ID, CLIENT_SECRET]
            or grant["code_challenge_method"] != "S256"
            or grant["code_challenge"] != challenge.decode()
            or grant["redirect_uri"] != form["redirect_uri"]
        ):
            return 400, {"error": "invalid_grant"}
        return 200, {"id_token": self._id_token(nonce=grant["nonce"]), **self._issued()}

    def refresh(self, token: str, authorization: str) -> tuple[int, dict[str, Any]]:
        client = base64.b64decode(authorization.removeprefix("Basic ")).decode().split(":")
        assert [unquote_plus(part) for part in client] == [CLIENT_ID, CLIENT_SECRET]
        if self.refresh_answer:
            return self.refresh_answer
        if token not in (self.refresh_tokens or set()):
            return 400, {"error": "invalid_grant"}
        (self.refresh_tokens or set()).remove(token)
        return 200, {**({"id_token": self._id_token()} if self.is_id_token_refreshed else {}), **self._issued()}

    def _issued(self) -> dict[str, Any]:
        issued = {"access_token": "at", "token_type": "Bearer"}
        if self.refresh_tokens is None:
            return issued
        token = f"rt_{secrets.token_urlsafe()}"
        self.refresh_tokens.add(token)
        return {**issued, "refresh_token": token}

    def _id_token(self, **claims: str) -> str:
        now = int(time.time())
        issued = {"iss": self.issuer, "aud": CLIENT_ID, "iat": now, "exp": now + 300, **claims}
        found = {**issued, **self.person, **self.claims}
        found = {name: value for name, value in found.items() if name not in self.left_out}
        return str(jwt.encode(found, self._key(), self.algorithm, headers={"kid": KEY_ID}))

    def _key(self) -> Any:
        return {"none": None, "HS256": CLIENT_SECRET.ljust(32, "x")}.get(self.algorithm, self.signing_key)


class _Handler(BaseHTTPRequestHandler):
    provider: Provider

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        self.provider.requests.append(parts.path)
        match parts.path.removeprefix("/realm"):
            case "/.well-known/openid-configuration":
                self._send(200, self.provider.metadata())
            case "/keys":
                self._send(200, self.provider.keys())
            case "/me":
                assert self.headers["Authorization"] == "Bearer at"
                self._send(200, {**self.provider.person, **self.provider.user_info})
            case "/authorize":
                self.send_response(302)
                self.send_header("Location", self.provider.authorize(dict(parse_qsl(parts.query))))
                self.end_headers()
            case _:
                self._send(200, {})

    def do_POST(self) -> None:
        self.provider.requests.append(self.path)
        form = dict(parse_qsl(self.rfile.read(int(self.headers["Content-Length"])).decode()))
        self._send(*self.provider.token(form, self.headers.get("Authorization", "")))

    def _send(self, status: int, content: dict[str, Any]) -> None:
        body = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Write nothing."""


@contextmanager
def running() -> Iterator[Provider]:
    provider = Provider()
    handler = type("Handler", (_Handler,), {"provider": provider})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        provider.issuer = f"http://127.0.0.1:{server.server_address[1]}/realm"
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield provider
        finally:
            server.shutdown()
            thread.join()
