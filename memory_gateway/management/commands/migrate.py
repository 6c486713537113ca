"""`manage.py migrate`: Django's command, which lets processes of the version before go on meanwhile (PostgreSQL)."""

import time
from typing import Any, Final

from django.core.management.base import CommandError
from django.core.management.commands import migrate
from django.db import OperationalError, connection

from memory_gateway.safety import require_known_migrations

LOCK_SECONDS: Final = 2
"""The longest wait for the lock of a table: everybody else who uses the table waits behind it."""
PAUSE_SECONDS: Final = 3.0
ATTEMPTS: Final = 60
_LOCK_NOT_AVAILABLE: Final = "55P03"


class Command(migrate.Command):
    def handle(self, *args: Any, **options: Any) -> None:
        require_known_migrations()
        for _ in range(ATTEMPTS):
            if connection.vendor == "postgresql":
                with connection.cursor() as cursor:
                    cursor.execute(f"SET lock_timeout = '{LOCK_SECONDS}s'")
            try:
                super().handle(*args, **options)
            except OperationalError as error:
                if getattr(error.__cause__, "sqlstate", None) != _LOCK_NOT_AVAILABLE:
                    raise
            else:
                return
            self.stderr.write("A long transaction uses a table. The migration is tried again.")
            time.sleep(PAUSE_SECONDS)
        raise CommandError("A table was always in use. End the transactions that pg_stat_activity shows, and repeat.")
