"""Fairness keys: the probable caller of a request before authentication, so that one caller cannot occupy all threads.

The key is not verified. A caller who forges one, or uses a new one each time, fails quickly at authentication.
"""

from __future__ import annotations

import re
from collections.abc import Hashable

from accounts.api import limits
from core.networks import network_of
from memory_gateway.server.wsgi_bridge import Scope

_KEY = rb"(uk_[A-Za-z0-9_-]{43})"
_IN_HEADER = re.compile(rb"bearer\s+" + _KEY, re.IGNORECASE)
_IN_JSON = re.compile(rb'"user_key"\s*:\s*"' + _KEY)
_IN_MULTIPART = re.compile(rb'name="user_key"\r\n\r\n' + _KEY)
_IN_FORM = re.compile(rb"(?:^|&)user_key=" + _KEY)


def client_key(scope: Scope, beginning: bytes) -> Hashable:
    """Return the user of the request's API key if the key was used lately; else the key, or the network without a key.

    `beginning` is the part of the body received so far. No SQL: this runs on the event loop.
    """
    key = _key(scope, beginning)
    if key is not None:
        return limits.caller_of(key.decode())
    address, _ = scope.get("client") or ("", 0)
    return network_of(address)


def _key(scope: Scope, beginning: bytes) -> bytes | None:
    header = next((value for name, value in scope["headers"] if name == b"authorization"), None)
    if header is not None:
        found = _IN_HEADER.match(header.strip())
    else:
        found = _IN_FORM.search(scope["query_string"]) or _body_pattern(beginning).search(beginning)
    return found[1] if found else None


def _body_pattern(beginning: bytes) -> re.Pattern[bytes]:
    if beginning.startswith(b"--"):
        return _IN_MULTIPART
    return _IN_JSON if beginning.lstrip()[:1] == b"{" else _IN_FORM
