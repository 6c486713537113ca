"""`manage.py revoke_key`: end a key at once."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from accounts import services
from accounts.audit import Actor
from operations.commands import Answer, LifecycleCommand
from operations.keys import one_key


class Command(LifecycleCommand):
    help = "End a user's key at once. The last one goes only with --last, since it locks the user out."

    requires_storage = False

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("user_id")
        parser.add_argument("--key", help="which: its id or its first characters; needless where there is one only")
        parser.add_argument("--last", action="store_true", help="even if the user has no other")

    def run(self, *, user_id: str, key: str | None, last: bool, **options: Any) -> Answer:
        found = one_key(services.find_user(user_id), key)
        services.revoke_key(found.user_id, found.pk, actor=Actor.command("revoke_key"), may_be_last=last)
        return Answer({"user_id": user_id, "revoked": str(found.pk)}, f"Revoked {found.prefix}… ({found.pk}).")
