"""Which web pages may open a socket. Programs send no Origin and pass; their token is looked at next."""

from __future__ import annotations

import ipaddress
from urllib.parse import urlsplit

from django.conf import settings
from django.http.request import split_domain_port, validate_host

_DEFAULT_PORTS = {"http": "80", "https": "443", "ws": "80", "wss": "443"}


def is_host_allowed(host: str) -> bool:
    """The rule of every page, against names that were made to lead here."""
    domain, _ = split_domain_port(host)
    return bool(domain) and validate_host(domain, settings.ALLOWED_HOSTS)


def is_origin_allowed(origin: str, *, host: str, scheme: str, peer: str) -> bool:
    """Whether a page of `origin` may connect to us as `host` over `scheme` (ws, wss); `peer` is the client's address.

    Named in `MEMORY_GATEWAY_ALLOWED_ORIGINS`, or of this very host, or a page on the machine that we run on.
    """
    if origin in settings.MEMORY_GATEWAY_ALLOWED_ORIGINS:
        return True
    try:
        parts = urlsplit(origin)
        page = (parts.hostname or "", str(parts.port or _DEFAULT_PORTS.get(parts.scheme, "")))
    except ValueError:
        return False
    if parts.scheme not in {"http", "https"} or not page[0]:
        return False
    domain, port = split_domain_port(host)
    own = (domain.strip("[]"), port or _DEFAULT_PORTS.get(scheme, ""))
    if page == own and (_is_near(own[0]) or "*" not in settings.ALLOWED_HOSTS):
        return True
    return _is_loopback(page[0]) and _is_loopback(peer)


def _is_near(name: str) -> bool:
    """A name that no stranger can make lead here: this machine, this network."""
    if name.endswith((".local", ".ts.net")) or _is_loopback(name):
        return True
    address = _address(name)
    return address is not None and address.is_private


def _is_loopback(name: str) -> bool:
    address = _address(name)
    return name == "localhost" or (address is not None and address.is_loopback)


def _address(name: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(name)
    except ValueError:
        return None
