from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from accounts.audit import Actor
from operations.archives.encryption import read_key
from operations.archives.import_ import import_archive
from operations.commands import Answer, OperationsCommand, add_key_file


class Command(OperationsCommand):
    help = (
        "Import the users of an archive. The whole archive is checked before anything is written. Each user is "
        "imported completely or not at all. Exit code 1 if users are refused."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("archive", type=Path, help="archive to import")
        add_key_file(parser)
        parser.add_argument(
            "--on-conflict",
            choices=("fail", "skip", "replace"),
            default="fail",
            help="if a user exists: import nothing, keep or replace the existing user (default: %(default)s)",
        )
        parser.add_argument("--even-erased", action="store_true", help="also import users that were erased here")

    def run(
        self, *, archive: Path, on_conflict: Any, even_erased: bool, key_file: Path | None, **options: Any
    ) -> Answer:
        done = import_archive(
            archive,
            on_conflict=on_conflict,
            even_erased=even_erased,
            key=read_key(key_file) if key_file else None,
            actor=Actor.command("import_memory"),
            report=self.report,
        )
        data = {
            "users": len(done.users),
            "skipped": len(done.skipped),
            "refused": done.refused,
            "never_kept": done.never_kept,
            "repaired": done.repaired,
            "repairs": done.repairs,
            "rows": done.rows,
            "files": done.files,
        }
        words = f"{len(done.users):,} users, {done.rows.get('memories', 0):,} memories, {done.files:,} files"
        lines = [f"Imported {words}. Skipped {len(done.skipped):,} users that already exist or were erased here."]
        if done.never_kept:
            lines += [f"Left out {done.never_kept:,} memories that their users want never remembered."]
        if done.repaired:
            lines += [f"Made {done.repaired:,} rows storable:", *(f"  {repair}" for repair in done.repairs)]
        if done.refused:
            lines.append(f"Refused {len(done.refused):,} users, of whom nothing was imported:")
            lines += [f"  {user_id}: {reason}" for user_id, reason in done.refused.items()]
        return Answer(data, "\n".join(lines), is_ok=not done.refused)
