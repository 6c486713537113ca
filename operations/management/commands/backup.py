from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from operations.archives.backup import backup
from operations.archives.encryption import read_key
from operations.commands import Answer, OperationsCommand, add_key_file


class Command(OperationsCommand):
    help = "Write and verify a backup of the database and all files. The gateway can keep running."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("archive", type=Path, help="file to write; must not exist")
        add_key_file(parser)

    def run(self, *args: Any, archive: Path, key_file: Path | None, **options: Any) -> Answer:
        key = read_key(key_file) if key_file else None
        done = backup(archive, key=key, report=self.report)
        data = {"archive": str(archive), "files": done.files, "database_bytes": done.database_bytes}
        return Answer(
            data,
            f"Wrote and verified {archive}: the database ({done.database_bytes:,} bytes) and {done.files:,} files.",
        )
