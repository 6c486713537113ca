"""`manage.py ingest`: finish ingestions from a shell, once or as a worker of its own."""

from __future__ import annotations

import json
import signal
import sys
import threading
from collections.abc import Callable, Collection
from types import FrameType
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from accounts.models import MemoryUser
from operations.delivery_retry import DeliveryRetryTask
from operations.ingestion import Progress, Summary, ingest_owed, verify_empty
from operations.periodic import INTERVAL_SECONDS
from resources.services import storage_binding
from resources.services.owed import OWED, Kind
from resources.services.storage_binding import StorageMismatch


class Command(BaseCommand):
    help = (
        "Ingest resources that are pending: never begun, abandoned by a process that ended, or due for another try. "
        "Exit code 1 if one of them failed."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--pending", action="store_true", help="only those never begun")
        parser.add_argument(
            "--stale", action="store_true", help="only those whose worker is gone; also verify `empty` ones with EverOS"
        )
        parser.add_argument(
            "--failed", action="store_true", help="only failed ones, due or not; also retry unconfirmed messages"
        )
        parser.add_argument("--user", metavar="USER_ID", help="only this user's")
        parser.add_argument("--watch", action="store_true", help="go on until SIGTERM, as a worker beside the server")
        parser.add_argument("--json", action="store_true", help="print the summary as one line of JSON")

    def handle(self, *args: Any, user: str | None, watch: bool, **options: Any) -> None:
        if user is not None and not MemoryUser.objects.filter(user_id=user).exists():
            raise CommandError(f"There is no user {user!r}.", returncode=2)
        try:
            storage_binding.require()
        except StorageMismatch as error:
            raise CommandError(error.detail, returncode=2) from None
        self._summary = Summary()
        stop = threading.Event()
        previous = {number: signal.signal(number, _set(stop)) for number in (signal.SIGTERM, signal.SIGINT)}
        try:
            self._run(_kinds(options, watch=watch), user, watch=watch, stop=stop)
            if options["stale"] and not watch:
                verify_empty(user_id=user, report=self._report, should_stop=stop.is_set)
            if options["failed"] and not watch and user is None and (arrived := DeliveryRetryTask().retry_all()):
                self.stderr.write(f"{arrived} unconfirmed messages have arrived")
        finally:
            for number, handler in previous.items():
                signal.signal(number, handler)
        self._print(self._summary, as_json=options["json"])
        if self._summary.failures:
            sys.exit(1)

    def _run(self, kinds: Collection[Kind], user: str | None, *, watch: bool, stop: threading.Event) -> None:
        while True:
            ingest_owed(kinds=kinds, user_id=user, report=self._report, should_stop=stop.is_set)
            if not watch or stop.wait(INTERVAL_SECONDS):
                return

    def _report(self, progress: Progress) -> None:
        resource = progress.resource
        self._summary.count(resource)
        reason = f": {resource.error_message}" if resource.error_message else ""
        self.stderr.write(f"{progress.done}/{progress.total} {resource.resource_id} {resource.status}{reason}")

    def _print(self, summary: Summary, *, as_json: bool) -> None:
        counts = dict(sorted(summary.statuses.items()))
        if as_json:
            answer = {"ingested": sum(counts.values()), "statuses": counts, "failures": summary.failures}
            self.stdout.write(json.dumps(answer, ensure_ascii=False))
        else:
            words = ", ".join(f"{count} {status}" for status, count in counts.items())
            self.stdout.write(words or "Nothing is owed.")


def _kinds(options: dict[str, Any], *, watch: bool) -> Collection[Kind]:
    """A worker that goes on for ever keeps to the times of the next tries."""
    chosen = {kind for kind in (Kind.PENDING, Kind.STALE, Kind.FAILED) if options[kind.value]}
    if watch and Kind.FAILED in chosen:
        chosen = chosen - {Kind.FAILED} | {Kind.DUE}
    return chosen or OWED


def _set(stop: threading.Event) -> Callable[[int, FrameType | None], None]:
    """A signal handler: finish the one under way, then end."""

    def handler(_number: int, _frame: FrameType | None) -> None:
        stop.set()

    return handler
