from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from operations.archives.backup import backup
from operations.commands import Answer, OperationsCommand


class Command(OperationsCommand):
    help = "Write and verify a backup of the database and all files. The gateway can keep running."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("archive", type=Path, help="file to write; must not exist")

    def run(self, *args: Any, archive: Path, **options: Any) -> Answer:
        done = backup(archive, report=self.report)
        data = {"archive": str(archive), "files": done.files, "database_bytes": done.database_bytes}
        return Answer(
            data,
            f"Wrote and verified {archive}: the database ({done.database_bytes:,} bytes) and {done.files:,} files.",
        )
