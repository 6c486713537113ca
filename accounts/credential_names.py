"""The short names of API keys and RPC tokens: the first characters, by which pages and the audit trail name them."""

import re
from collections.abc import Iterable
from typing import Final

from django.core.cache import cache as process_cache

from accounts.models import RpcToken, UserKey
from accounts.services import SHOWN_KEY_CHARS, SHOWN_TOKEN_CHARS

_NAME_SECONDS: Final = 3600
_UUID: Final = re.compile("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_SHOWN: Final = {"uk_": SHOWN_KEY_CHARS, "rpc_": SHOWN_TOKEN_CHARS}


def credential_names(ids: Iterable[str]) -> dict[str, str]:
    """Return the names of API keys and RPC tokens by id, empty for deleted ones. At most two statements.

    Names never change, so this process keeps what it has looked up for an hour.
    """
    entries = {f"credential-name:{name}": name for name in ids}
    known = process_cache.get_many(entries) if entries else {}
    found: dict[str, str] = {entries[entry]: name for entry, name in known.items()}
    if unknown := [name for entry, name in entries.items() if entry not in known and _UUID.fullmatch(name)]:
        keys = UserKey.objects.filter(pk__in=unknown).values_list("pk", "prefix")
        tokens = RpcToken.objects.filter(pk__in=unknown).values_list("pk", "prefix")
        looked_up = dict.fromkeys(unknown, "") | {str(pk): prefix for rows in (keys, tokens) for pk, prefix in rows}
        process_cache.set_many({f"credential-name:{pk}": name for pk, name in looked_up.items()}, _NAME_SECONDS)
        found |= looked_up
    return found


def credentials_named(text: str) -> list[str]:
    """Return the ids of the API keys and RPC tokens whose shown characters the text begins with. Two statements."""
    keys = UserKey.objects.filter(prefix=text[:SHOWN_KEY_CHARS]).values_list("pk", flat=True)
    tokens = RpcToken.objects.filter(prefix=text[:SHOWN_TOKEN_CHARS]).values_list("pk", flat=True)
    return [str(pk) for pk in (*keys, *tokens)]


def shown_part(text: str) -> str:
    """Return a text without the secret part of an API key or RPC token: a pasted one must not stand in addresses."""
    return next((text[:chars] for start, chars in _SHOWN.items() if text.startswith(start)), text)
