from datetime import timedelta
from typing import Any

from django.core.management.base import CommandParser

from accounts import services
from accounts.audit import Actor
from core.times import isoformat_or_none
from operations.commands import Answer, KeyCommand, whole_number


class Command(KeyCommand):
    help = "Replace a user's API key and print the new one. The old key keeps working for a grace period."

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument(
            "--grace-hours",
            type=whole_number(0, services.MAX_GRACE.days * 24),
            default=24,
            help="hours that the old key keeps working (default: %(default)s)",
        )

    def run(self, *, user_id: str, key: str | None, grace_hours: int, **options: Any) -> Answer:
        old = self.find_key(user_id, key)
        grace, actor = timedelta(hours=grace_hours), Actor.command("rotate_key")
        rotation = services.rotate_key(old.user_id, old.pk, grace=grace, actor=actor)
        data = {
            "user_id": user_id,
            "user_key": rotation.new.plaintext,
            "key_id": str(rotation.new.key.pk),
            "old_key_id": str(old.pk),
            "old_key_expires_at": isoformat_or_none(rotation.old.expires_at),
        }
        return Answer(data, rotation.new.plaintext)
