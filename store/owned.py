"""User and scope as plain SQL has to be given them."""

from __future__ import annotations

from uuid import UUID

from core.sql import uuid_value
from store.types import Owner


def owner_values(owner: Owner) -> list[UUID | str]:
    """The values of `user_id = %s AND app_id = %s AND project_id = %s`."""
    return [uuid_value(owner.user_pk), owner.app_id, owner.project_id]
