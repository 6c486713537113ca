"""Name the probable caller of a request before authentication, so that one caller cannot occupy all threads.

The name is not verified: requests with forged or ever new keys fail quickly at authentication.
"""

import re
from collections.abc import Hashable

from accounts.api import limits
from core.limits.rate_limit import network_of
from memory_gateway.server.request_body import Scope

_KEY = rb"(uk_[A-Za-z0-9_-]{22,128})"
_IN_HEADER = re.compile(rb"bearer\s+((?:uk|oat)_[A-Za-z0-9_-]{22,128})", re.IGNORECASE)
_IN_JSON = re.compile(rb'"user_key"\s*:\s*"' + _KEY)
_IN_MULTIPART = re.compile(rb'name="user_key"\r\n\r\n' + _KEY)
_IN_FORM = re.compile(rb"(?:^|&)user_key=" + _KEY)


def client_key(scope: Scope, beginning: bytes) -> Hashable:
    """Return the user of a recently used API key or OAuth token, another one itself, or without one the network.

    `beginning` is the part of the body received so far. No SQL: this runs on the event loop.
    """
    header = next((value for name, value in scope["headers"] if name == b"authorization"), None)
    if header is not None:
        found = _IN_HEADER.match(header.strip())
    elif (found := _IN_FORM.search(scope["query_string"])) is None:
        is_json = beginning.lstrip()[:1] == b"{"
        pattern = _IN_MULTIPART if beginning.startswith(b"--") else _IN_JSON if is_json else _IN_FORM
        found = pattern.search(beginning)
    if found:
        return limits.caller_of(found[1].decode())
    address, _ = scope.get("client") or ("", 0)
    return network_of(address)
