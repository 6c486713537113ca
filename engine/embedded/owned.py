"""User and scope as plain SQL has to be given them."""

from __future__ import annotations

from uuid import UUID

from django.db import connection

from engine.port import Owner


def owner_values(owner: Owner) -> list[UUID | str]:
    """The values of `user_id = %s AND app_id = %s AND project_id = %s`."""
    user_pk = owner.user_pk if connection.features.has_native_uuid_field else owner.user_pk.hex
    return [user_pk, owner.app_id, owner.project_id]
