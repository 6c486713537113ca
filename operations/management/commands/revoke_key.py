from typing import Any

from django.core.management.base import CommandParser

from accounts import services
from accounts.audit import Actor
from operations.commands import Answer, KeyCommand


class Command(KeyCommand):
    help = "Revoke a user's API key at once. Revoking the last active key locks the user out and requires --last."

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("--last", action="store_true", help="allow revoking the last active key")

    def run(self, *, user_id: str, key: str | None, last: bool, **options: Any) -> Answer:
        found = self.find_key(user_id, key)
        services.revoke_key(found.user_id, found.pk, actor=Actor.command("revoke_key"), may_be_last=last)
        return Answer({"user_id": user_id, "revoked": str(found.pk)}, f"Revoked {found.prefix}… ({found.pk}).")
