"""`manage.py erase_user`: remove everything of a person."""

from __future__ import annotations

import json
from typing import Any

from django.core.management.base import CommandParser

from accounts.audit import Actor
from operations import erase
from operations.commands import Answer, LifecycleCommand


class Command(LifecycleCommand):
    help = (
        "Remove everything of a user: rows, files, index entries, keys, trail. It cannot be undone. Without --yes it "
        "only says what there is. Prints a receipt as JSON; stopped or killed, the same call goes on."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("user_id")
        parser.add_argument("--yes", action="store_true", help="really do it")

    def run(self, *args: Any, user_id: str, yes: bool, **options: Any) -> Answer:
        user_pk = erase.find(user_id)
        if not yes:
            counts = erase.plan(user_pk)
            words = ", ".join(f"{count:,} {name}" for name, count in counts.items() if count)
            return Answer({"would_remove": counts}, f"{user_id} has {words}. Add --yes to erase them for good.")
        actor = Actor.command("erase_user")
        receipt = erase.erase(user_pk, actor=actor, however_large=True, report=self.report, stop=self.stop)
        return Answer(receipt, json.dumps(receipt, indent=2, ensure_ascii=False))
