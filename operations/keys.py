"""Which of a user's keys somebody at a shell means."""

from __future__ import annotations

from accounts import services
from accounts.models import MemoryUser, UserKey
from core.errors import Conflict, NotFound


def one_key(user: MemoryUser, named: str | None) -> UserKey:
    """The live key with that id or those first characters; without a name the only one there is.

    Errors: `NotFound`, `Conflict` where several fit.
    """
    keys = [key for key in services.keys_of(user.pk) if services.is_live(key)]
    if named is not None:
        keys = [key for key in keys if str(key.pk) == named or named.startswith(key.prefix)]
    if not keys:
        raise NotFound("The user has no such live key.")
    if len(keys) > 1:
        shown = ", ".join(f"{key.pk} ({key.prefix}… {key.label})".replace(" )", ")") for key in keys)
        raise Conflict(f"Several live keys fit: choose one with --key: {shown}")
    return keys[0]
