"""`manage.py start`: prepare the database and run the server."""

from typing import Any

from django.conf import settings
from django.core.management import call_command
from django.db import connections

from memory_gateway.management.commands import serve


class Command(serve.Command):
    help = "Migrate the database, rebuild the index if needed, create an operator if there is none, and serve."

    def get_version(self) -> str:
        """Return the gateway's version, where Django's commands return that of Django."""
        return str(settings.SPECTACULAR_SETTINGS["VERSION"])

    def handle(self, *args: Any, **options: Any) -> None:
        call_command("migrate", verbosity=0)
        call_command("rebuild_index", quiet=True)
        call_command("ensure_operator")
        connections.close_all()
        super().handle(**options)
