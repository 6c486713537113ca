"""Addresses of webhooks: which may be called. The gateway calls them from inside the operator's network."""

import re
from dataclasses import replace
from typing import Final

from django.conf import settings

from core.messages import Message as _
from core.url_policy import AddressPolicy, BadAddress, Resolver, reachable_addresses, resolve

_LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})
_SECURE: Final = re.compile(r"https://", re.IGNORECASE)
_SECURE_OR_LOCAL: Final = re.compile(
    r"https://|http://(?:localhost|127\.0\.0\.1|\[::1\])(?::[0-9]*)?(?:[/?#]|$)", re.IGNORECASE
)


def reachable(url: str, *, resolver: Resolver = resolve) -> list[str]:
    """Return the IP addresses that a webhook may be called at. Connect to these only.

    Only `https://` at public addresses and at hosts that the operator allows; the profile `local` also allows the
    machine itself. Raises: `BadAddress`.
    """
    policy = AddressPolicy.from_settings()
    if not (_SECURE if settings.IS_PRODUCTION else _SECURE_OR_LOCAL).match(url):
        raise BadAddress(_("must start with https://"))
    if not settings.IS_PRODUCTION:
        policy = replace(policy, allowed_hosts=policy.allowed_hosts | _LOOPBACK)
    return reachable_addresses(url, policy, resolver=resolver)
