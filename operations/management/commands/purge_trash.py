from dataclasses import asdict
from datetime import timedelta
from typing import Any

from django.core.management.base import CommandParser

from accounts.audit import Actor
from accounts.services import find_user
from operations.cleanup import compaction, purge
from operations.commands import Answer, OperationsCommand, whole_number


class Command(OperationsCommand):
    help = (
        "Purge the trash: permanently remove data deleted more than MEMORY_GATEWAY_TRASH_DAYS ago. The server does "
        "this once a day. Exit code 1 if something could not be purged."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--older-than",
            type=whole_number(0, 36_500),
            metavar="DAYS",
            help="purge data deleted more than DAYS days ago; 0 for all (default: MEMORY_GATEWAY_TRASH_DAYS)",
        )
        parser.add_argument("--user", metavar="USER_ID", help="limit to one user")
        parser.add_argument("--compact", action="store_true", help="rewrite the database file afterwards")

    def run(self, *args: Any, older_than: int | None, user: str | None, compact: bool, **options: Any) -> Answer:
        counts = purge.purge_trash(
            older_than=None if older_than is None else timedelta(days=older_than),
            user_pk=find_user(user).pk if user else None,
            actor=Actor.command("purge_trash"),
            report=self.report,
        )
        residue = compaction.compact(however_large=True) if compact else []
        words = f"Purged {counts.memories:,} memories, {counts.sessions:,} sessions, {counts.resources:,} files."
        data = {**asdict(counts), "residue": residue}
        return Answer(data, " ".join([words, *residue]), is_ok=not counts.failed)
