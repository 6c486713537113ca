"""`manage.py purge_trash`: empty the trash for good."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.core.management.base import CommandParser

from accounts.audit import Actor
from accounts.services import find_user
from operations import compaction, purge
from operations.commands import Answer, LifecycleCommand, whole_number


class Command(LifecycleCommand):
    help = (
        "Remove for good what was deleted longer ago than MEMORY_GATEWAY_TRASH_DAYS. The server does so by itself once "
        "a day. Exit code 1 if something could not be purged."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument(
            "--older-than",
            type=whole_number(0, 36_500),
            metavar="DAYS",
            help="another age than the setting's; 0: all",
        )
        parser.add_argument("--user", metavar="USER_ID", help="only this user's")
        parser.add_argument("--compact", action="store_true", help="rewrite the database file afterwards")

    def run(self, *args: Any, older_than: int | None, user: str | None, compact: bool, **options: Any) -> Answer:
        counts = purge.purge_trash(
            older_than=None if older_than is None else timedelta(days=older_than),
            user_pk=find_user(user).pk if user else None,
            actor=Actor.command("purge_trash"),
            report=self.report,
            stop=self.stop,
        )
        residue = compaction.compact(however_large=True) if compact else []
        words = f"{counts.memories:,} memories, {counts.sessions:,} sessions, {counts.resources:,} files purged."
        data = {**counts.as_dict(), "residue": residue}
        return Answer(data, " ".join([words, *residue]), is_ok=not counts.failed)
