"""`manage.py migrate`: Django's command, after a check that this version knows the database's migrations."""

from typing import Any

from django.core.management.commands import migrate

from memory_gateway.safety import require_known_migrations


class Command(migrate.Command):
    def handle(self, *args: Any, **options: Any) -> None:
        require_known_migrations()
        super().handle(*args, **options)
