"""Check the host and the origin of requests, against DNS rebinding and requests from pages of other sites.

Programs that are no browsers send no origin and pass; only their token is checked.
"""

import ipaddress
from urllib.parse import urlsplit

from django.conf import settings
from django.http.request import split_domain_port, validate_host

_DEFAULT_PORTS = {"http": "80", "https": "443", "ws": "80", "wss": "443"}


def is_host_allowed(host: str) -> bool:
    """Return True if `ALLOWED_HOSTS` permits the host, which prevents DNS rebinding."""
    domain, _ = split_domain_port(host)
    return bool(domain) and validate_host(domain, settings.ALLOWED_HOSTS)


def is_probe_host(host: str) -> bool:
    """Return True if a health probe may name the host: an allowed host, `localhost`, an IP address, or none.

    DNS rebinding needs another host name.
    """
    domain, _ = split_domain_port(host)
    return not host or is_host_allowed(host) or domain == "localhost" or _address(domain.strip("[]")) is not None


def is_secure(scheme: str) -> bool:
    """Return True if keys may be sent over this scheme: `production` requires https and wss."""
    return scheme in {"https", "wss"} or not settings.SECURE_SSL_REDIRECT


def is_origin_allowed(origin: str, *, host: str, scheme: str, peer: str) -> bool:
    """Return True if a page of `origin` may connect to `host` over `scheme` (ws, wss).

    Allowed are origins in `MEMORY_GATEWAY_ALLOWED_ORIGINS`, pages of the same host and port, and pages on this machine.
    `peer` is the client's address.
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
    gateway = (domain.strip("[]"), port or _DEFAULT_PORTS.get(scheme, ""))
    if page == gateway and (_is_local_network(gateway[0]) or "*" not in settings.ALLOWED_HOSTS):
        return True
    return _is_loopback(page[0]) and _is_loopback(peer)


def _is_local_network(name: str) -> bool:
    """Return True for names and addresses of this machine or a local network, which DNS rebinding cannot use."""
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
