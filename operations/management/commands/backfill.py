"""`manage.py backfill`: make up for what was not written down at its time."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from accounts.services import find_user
from operations.backfill import KINDS
from operations.commands import Answer, LifecycleCommand


class Command(LifecycleCommand):
    help = (
        "Make up for what was not written down at its time: attachments of older files; sessions and memories that an "
        "EverOS holds; the counts of dashboards; vectors; what a language model makes of what was said. It may be run "
        "at any time, again and again."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("kind", choices=sorted(KINDS))
        parser.add_argument("--user", metavar="USER_ID", help="only this user's")

    def run(self, *, kind: str, user: str | None, **options: Any) -> Answer:
        user_pk = find_user(user).pk if user else None
        counts = KINDS[kind](user_pk, self.report, self.stop)
        text = ", ".join(f"{count:,} {name}" for name, count in counts.items()) or "done"
        return Answer({"kind": kind, **counts}, f"{kind}: {text}", not counts.get("failed"))
