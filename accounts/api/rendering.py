"""Responses of `/users` as plain data. Their shapes are in `schemas`."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import UUID

from accounts.models import UserKey
from accounts.services import IssuedKey, Rotation, is_live
from core.times import isoformat


def created_user(issued: IssuedKey) -> dict[str, Any]:
    user = issued.key.user
    return {"user_id": user.user_id, "user_key": issued.plaintext, "created_at": isoformat(user.created_at)}


def key(item: UserKey, *, current: UUID) -> dict[str, Any]:
    return {
        "key_id": str(item.pk),
        "prefix": item.prefix,
        "label": item.label,
        "created_at": isoformat(item.created_at),
        "expires_at": _time(item.expires_at),
        "revoked_at": _time(item.revoked_at),
        "last_used_at": _time(item.last_used_at),
        "is_live": is_live(item),
        "is_current": item.pk == current,
    }


def new_key(issued: IssuedKey) -> dict[str, Any]:
    return {
        "key_id": str(issued.key.pk),
        "user_key": issued.plaintext,
        "label": issued.key.label,
        "created_at": isoformat(issued.key.created_at),
        "expires_at": _time(issued.key.expires_at),
    }


def rotated_key(rotation: Rotation) -> dict[str, Any]:
    previous = {"previous_key_id": str(rotation.old.pk), "previous_expires_at": _time(rotation.old.expires_at)}
    return {**new_key(rotation.new), **previous}


def _time(moment: datetime | None) -> str | None:
    return isoformat(moment) if moment else None
