"""`manage.py backup`: database and files in one file, while the gateway works."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from operations.backup import backup
from operations.commands import Answer, LifecycleCommand


class Command(LifecycleCommand):
    help = "Write a verified backup of the database and all files. The gateway may run meanwhile."

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("archive", type=Path, help="the file to write; it must not exist yet")

    def run(self, *args: Any, archive: Path, **options: Any) -> Answer:
        done = backup(archive, report=self.report, stop=self.stop)
        data = {"archive": str(archive), "files": done.files, "database_bytes": done.database_bytes}
        return Answer(
            data, f"{archive}: the database ({done.database_bytes:,} bytes) and {done.files:,} files, verified."
        )
