import sys
from dataclasses import asdict
from typing import Any

from django.core.management.base import CommandParser

from accounts.audit import Actor
from core.persistence.files import stored_files
from operations.commands import Answer, OperationsCommand
from resources.services import storage_binding


class Command(OperationsCommand):
    help = (
        "Bind the storage folder to this database if they do not match. Both get a new common ID; the database that "
        "used the folder before can no longer use it."
    )
    requires_storage = False

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--yes", action="store_true", help="do not ask for confirmation")

    def run(self, *args: Any, yes: bool, **options: Any) -> Answer:
        database_id, storage_id = storage_binding.database_id(), storage_binding.storage_id()
        found = storage_binding.survey()
        data = {
            "database": storage_binding.database_name(),
            "database_id": str(database_id) if database_id else None,
            "folder": stored_files().place_name(),
            "storage_id": str(storage_id) if storage_id else None,
            **asdict(found),
        }
        text = (
            f"Database {data['database']}: ID {database_id or 'none'}, {found.rows:,} rows with files.\n"
            f"Storage folder {data['folder']}: ID {storage_id or 'none'}, {found.files:,} files.\n"
            f"{found.missing:,} files are missing, {found.without_row:,} files have no row."
        )
        if storage_binding.is_bound():
            return Answer({**data, "adopted": False}, f"{text}\nThey are already bound.")
        if not yes and sys.stdin.isatty():
            self.stderr.write(text)
            self.stderr.write("Bind this storage folder to this database? [y/N] ", ending="")
            yes = input().strip().lower() in {"y", "yes"}
        if not yes:
            return Answer(
                {**data, "adopted": False}, f"{text}\nNothing was changed. Run again with --yes to bind them."
            )
        new = storage_binding.adopt(Actor.command("adopt_storage"))
        return Answer({**data, "adopted": True, "new_id": str(new)}, f"{text}\nBoth now have the ID {new}.")
