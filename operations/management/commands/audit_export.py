import contextlib
import re
import sys
from argparse import ArgumentTypeError
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone

from accounts.audit import Actor, record
from accounts.audit_export import events_after
from accounts.models import AuditEvent
from core.errors import GatewayError, InvalidInput
from core.messages import Translatable as _
from operations import audit_targets
from operations.audit_targets import Event, NotDelivered, Target
from operations.commands import Stop, stop_on_signals, whole_number

_POLL_SECONDS: Final = 2.0
_MAX_BACKOFF_SECONDS: Final = 60.0


def moment(text: str) -> datetime:
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise ArgumentTypeError("must be a time such as 2026-11-20 or 2026-11-20T16:42+08:00") from None
    return timezone.make_aware(found) if found.tzinfo is None else found


class Command(BaseCommand):
    help = (
        "Write the events of the audit trail as JSON lines, oldest first, to stdout, a webhook or a syslog server. "
        "With --follow, new events are written until a signal ends the command. With --position, the command "
        "continues where it ended; each event arrives at least once."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--follow", action="store_true", help="wait for new events")
        start = parser.add_mutually_exclusive_group()
        start.add_argument("--after", type=whole_number(0, 10**18 - 1), default=0, help="only events after this id")
        start.add_argument("--since", type=moment, help="only events from this time on")
        start.add_argument("--position", type=Path, help="file with the id of the last event that arrived")
        target = parser.add_mutually_exclusive_group()
        target.add_argument("--webhook", metavar="URL", help="post batches of JSON lines to this address")
        target.add_argument("--syslog", metavar="ADDRESS", help="tcp://HOST:PORT, udp://HOST:PORT or /dev/log")
        parser.add_argument("--headers", type=Path, metavar="FILE", help="lines `Name: value` for the webhook")

    def handle(self, *args: Any, follow: bool, position: Path | None, **options: Any) -> None:
        last = 0
        try:
            with self._target(options) as target, stop_on_signals() as stop:
                last = _start(position, options)
                record(Actor.command("audit_export"), "audit.export", detail={"after": last, "follow": follow})
                while events := self._next(last, stop, follow=follow):
                    self._deliver(target, events, stop, follow=follow)
                    last = events[-1]["id"]
                    if position is not None:
                        _save(position, last)
        except GatewayError as error:
            raise CommandError(error.detail, returncode=2) from error
        except NotDelivered as error:
            raise CommandError(
                f"{error.message} The events from id {last + 1} on were not delivered.", returncode=2
            ) from error
        if stop.is_set():
            sys.exit(128 + stop.number)

    def _target(self, options: dict[str, Any]) -> contextlib.AbstractContextManager[Target]:
        if options["webhook"]:
            return audit_targets.webhook(options["webhook"], _headers(options["headers"]))
        return audit_targets.syslog(options["syslog"]) if options["syslog"] else contextlib.nullcontext(self._print)

    def _print(self, events: Sequence[Event]) -> None:
        for event in events:
            self.stdout.write(audit_targets.line(event).decode())
        self.stdout.flush()

    def _next(self, last: int, stop: Stop, *, follow: bool) -> list[dict[str, Any]]:
        """Return the events after a position; none at the end, or after a signal."""
        while not stop.is_set():
            events = events_after(last)
            if events is None and not follow:
                raise NotDelivered(_("A long transaction is running. Run the command again to continue."))
            if events or not follow:
                return events or []
            stop.wait(_POLL_SECONDS)
        return []

    def _deliver(self, target: Target, events: Sequence[Event], stop: Stop, *, follow: bool) -> None:
        """Deliver a batch, retrying with backoff while the command follows. Raises: `NotDelivered`."""
        pause = 1.0
        while True:
            try:
                target(events)
            except NotDelivered as error:
                if not follow or stop.is_set():
                    raise
                self.stderr.write(f"{error.message} Next try in {pause:.0f} s.")
                stop.wait(pause)
                pause = min(2 * pause, _MAX_BACKOFF_SECONDS)
            else:
                return


def _start(position: Path | None, options: dict[str, Any]) -> int:
    """Return the id of the last event that is left out. Raises: `InvalidInput` for a damaged file."""
    if options["since"] is not None:
        before = AuditEvent.objects.filter(at__lt=options["since"]).order_by("-at", "-pk")
        return before.values_list("pk", flat=True).first() or 0
    if position is None:
        return int(options["after"])
    with contextlib.suppress(FileNotFoundError):
        text = position.read_text(encoding="ascii", errors="replace").strip()
        if not re.fullmatch("[0-9]{1,18}", text):
            raise InvalidInput(_("%(file)s does not hold the id of an event.", file=str(position)))
        return int(text)
    return 0


def _save(position: Path, last: int) -> None:
    """Write the position to a new file first, so that a crash leaves the old one or the new one."""
    written = position.with_name(f"{position.name}.new")
    written.write_text(f"{last}\n", encoding="ascii")
    written.replace(position)


def _headers(file: Path | None) -> dict[str, str]:
    """Return the headers of a file, which the process list does not show. Raises: `InvalidInput`."""
    try:
        lines = file.read_text(encoding="utf-8").splitlines() if file else []
    except OSError as error:
        raise InvalidInput(str(error)) from None
    found = {name.strip(): value.strip() for name, colon, value in (line.partition(":") for line in lines) if colon}
    if len(found) < len([line for line in lines if line.strip()]):
        raise InvalidInput(_("Each line of %(file)s must read Name: value.", file=str(file)))
    return found
