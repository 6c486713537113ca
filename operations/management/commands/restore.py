from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from operations.archives.backup import restore
from operations.archives.encryption import read_key
from operations.commands import Answer, OperationsCommand, add_key_file
from operations.doctor import Doctor, is_healthy, summary


class Command(OperationsCommand):
    help = (
        "Restore a backup into an empty database and an empty storage folder while the server is stopped, then run "
        "the checks of `doctor`. Exit code 1 if they find a problem."
    )
    requires_storage = False  # it binds the two itself

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("archive", type=Path, help="backup to restore")
        add_key_file(parser)

    def run(self, *args: Any, archive: Path, key_file: Path | None, **options: Any) -> Answer:
        key = read_key(key_file) if key_file else None
        done = restore(archive, key=key, report=self.report)
        findings = Doctor().examine(self.report)
        problems = [finding.text for finding in findings if finding.status == "problem"]
        text = " ".join([f"Restored the database and {done.files:,} files.", *problems])
        return Answer({"files": done.files, **summary(findings)}, text, is_ok=is_healthy(findings))
