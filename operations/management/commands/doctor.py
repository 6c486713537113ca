from datetime import timedelta
from typing import Any

from django.core.management.base import CommandParser

from operations.commands import Answer, OperationsCommand, whole_number
from operations.doctor import Doctor, is_healthy, summary
from resources.services import storage_binding


class Command(OperationsCommand):
    help = (
        "Check settings, database, keyword index, files, storage folder, engine, clock and disk. "
        "Exit code 1 if there is a problem."
    )
    requires_system_checks = ()
    requires_storage = False  # it reports a mismatch; `--fix` is refused

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--fix", action="store_true", help="repair problems where possible")
        parser.add_argument(
            "--any-number", action="store_true", help="with --fix: quarantine files without a row, however many"
        )
        parser.add_argument("--compact", action="store_true", help="with --fix: also rewrite the SQLite file")
        parser.add_argument(
            "--min-age",
            type=whole_number(0, 1_000_000),
            default=60,
            metavar="MINUTES",
            help="with --fix: skip files newer than this, which may still be uploading (default: %(default)s)",
        )

    def run(self, *args: Any, fix: bool, compact: bool, any_number: bool, min_age: int, **options: Any) -> Answer:
        if fix:
            storage_binding.require()
        findings = Doctor(fix, timedelta(minutes=min_age), compact, any_number).examine(self.report)
        lines = [f"{finding.status:8} {finding.check}: {finding.text}" for finding in findings]
        return Answer(summary(findings), "\n".join(lines), is_ok=is_healthy(findings))
