import json
from typing import Any

from django.core.management.base import CommandParser

from accounts.audit import Actor
from operations import erase
from operations.commands import Answer, OperationsCommand


class Command(OperationsCommand):
    help = (
        "Erase a user: rows, files, index entries, API keys and audit trail. This cannot be undone. Without --yes, "
        "only count the user's data. Prints a receipt as JSON. If interrupted, run it again to continue."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("user_id", help="user ID")
        parser.add_argument("--yes", action="store_true", help="confirm the erasure")

    def run(self, *args: Any, user_id: str, yes: bool, **options: Any) -> Answer:
        user_pk = erase.find(user_id)
        if not yes:
            counts = erase.plan(user_pk)
            words = ", ".join(f"{count:,} {name}" for name, count in counts.items() if count)
            return Answer({"would_remove": counts}, f"{user_id} has {words}. Run again with --yes to erase the user.")
        actor = Actor.command("erase_user")
        receipt = erase.erase(user_pk, actor=actor, however_large=True, report=self.report)
        return Answer(receipt, json.dumps(receipt, indent=2, ensure_ascii=False))
