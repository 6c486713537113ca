"""`manage.py import_memory`: take in an archive of `export_memory`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from accounts.audit import Actor
from operations.commands import Answer, LifecycleCommand
from operations.import_ import import_archive


class Command(LifecycleCommand):
    help = (
        "Take in the users of an archive. It is checked as a whole before anything is written, and each user comes in "
        "whole or not at all."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("archive", type=Path)
        parser.add_argument(
            "--on-conflict",
            choices=("fail", "skip", "replace"),
            default="fail",
            help="what to do about users who are here already: take in nobody, leave them as they are, or put the "
            "archive's in their place (default: fail)",
        )

        parser.add_argument(
            "--even-erased", action="store_true", help="take in also who was erased here since the archive was made"
        )

    def run(self, *, archive: Path, on_conflict: Any, even_erased: bool, **options: Any) -> Answer:
        done = import_archive(
            archive,
            on_conflict=on_conflict,
            even_erased=even_erased,
            actor=Actor.command("import_memory"),
            report=self.report,
            stop=self.stop,
        )
        data = {"users": len(done.users), "skipped": len(done.skipped), "rows": done.rows, "files": done.files}
        words = f"{len(done.users):,} users, {done.rows.get('memories', 0):,} memories, {done.files:,} files imported"
        return Answer(
            data, f"{words}; {len(done.skipped):,} users were here already, or erased here, and stayed as they were."
        )
