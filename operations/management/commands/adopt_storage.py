"""`manage.py adopt_storage`: tie the storage folder to this database."""

from __future__ import annotations

import sys
from dataclasses import asdict
from typing import Any

from django.core.management.base import CommandParser

from accounts.audit import Actor
from operations.commands import Answer, LifecycleCommand
from resources import storage
from resources.services import storage_binding


class Command(LifecycleCommand):
    help = (
        "Tie the storage folder to this database, which the gateway refuses to do by itself where they do not match. "
        "Both get a new common id; the database that used the folder before is refused from then on."
    )
    requires_storage = False

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("--yes", action="store_true", help="do it without asking")

    def run(self, *args: Any, yes: bool, **options: Any) -> Answer:
        ours, theirs, found = storage_binding.database_id(), storage_binding.storage_id(), storage_binding.survey()
        data = {
            "database": storage_binding.database_name(),
            "database_id": str(ours) if ours else None,
            "folder": str(storage.root()),
            "storage_id": str(theirs) if theirs else None,
            **asdict(found),
        }
        text = (
            f"Database {data['database']}: id {ours or 'none'}, {found.rows:,} rows with files.\n"
            f"Storage folder {data['folder']}: id {theirs or 'none'}, {found.files:,} files.\n"
            f"{found.missing:,} files are missing, {found.without_row:,} files have no row."
        )
        if storage_binding.is_bound():
            return Answer({**data, "adopted": False}, f"{text}\nThey belong together already.")
        if not yes and not self._is_confirmed(text):
            return Answer({**data, "adopted": False}, f"{text}\nNothing was done: --yes ties them together.")
        new = storage_binding.adopt(Actor.command("adopt_storage"))
        return Answer({**data, "adopted": True, "new_id": str(new)}, f"{text}\nBoth have the id {new} now.")

    def _is_confirmed(self, text: str) -> bool:
        """Ask on a terminal."""
        if not sys.stdin.isatty():
            return False
        self.stderr.write(text)
        self.stderr.write("Tie this storage folder to this database? [y/N] ", ending="")
        return input().strip().lower() in {"y", "yes"}
