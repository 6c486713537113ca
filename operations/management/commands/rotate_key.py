"""`manage.py rotate_key`: a new key in the place of a user's present one, which works a while longer."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.core.management.base import CommandParser

from accounts import services
from accounts.audit import Actor
from core.times import isoformat
from operations.commands import Answer, LifecycleCommand
from operations.keys import one_key


class Command(LifecycleCommand):
    help = "Give a user a new key and print it; the old one works for a while longer, so that nobody is locked out."

    requires_storage = False

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("user_id")
        parser.add_argument("--key", help="which: its id or its first characters; needless where there is one only")
        parser.add_argument("--grace-hours", type=int, default=24, help="how long the old one works (24)")

    def run(self, *, user_id: str, key: str | None, grace_hours: int, **options: Any) -> Answer:
        old = one_key(services.find_user(user_id), key)
        grace = timedelta(hours=min(max(grace_hours, -1), 10**6))
        rotation = services.rotate_key(old.user_id, old.pk, grace=grace, actor=Actor.command("rotate_key"))
        until = rotation.old.expires_at
        data = {
            "user_id": user_id,
            "user_key": rotation.new.plaintext,
            "key_id": str(rotation.new.key.pk),
            "old_key_id": str(old.pk),
            "old_key_expires_at": isoformat(until) if until else None,
        }
        return Answer(data, rotation.new.plaintext)
