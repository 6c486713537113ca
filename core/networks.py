"""Client networks: the addresses that count as one client."""

from __future__ import annotations

import ipaddress


def network_of(address: str) -> str:
    """Return an IPv4 address (also for its IPv6-mapped form) or the /64 network of an IPv6 subscriber."""
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return "unknown"
    if parsed.version == 4:
        return str(parsed)
    return str(parsed.ipv4_mapped or ipaddress.ip_network((parsed, 64), strict=False))
