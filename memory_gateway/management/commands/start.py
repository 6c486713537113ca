"""`manage.py start`: prepare the database and run the server."""

from typing import Any

from django.conf import settings
from django.core.management import call_command
from django.db import connections

from memory_gateway.management.commands import serve
from memory_gateway.server import serving


class Command(serve.Command):
    help = "Migrate the database, rebuild the index if needed, create an operator if there is none, and serve."

    def get_version(self) -> str:
        """Return the gateway's version, where Django's commands return that of Django."""
        return str(settings.SPECTACULAR_SETTINGS["VERSION"])

    def handle(self, *args: Any, **options: Any) -> None:
        plan = self.plan(**options)
        serving.check_before_migration(plan)
        listener = serving.listen(plan)
        call_command("migrate", verbosity=0)
        serving.check(plan)
        call_command("rebuild", quiet=True)
        call_command("ensure_operator", host=plan.host, port=listener.getsockname()[1])
        connections.close_all()
        serving.run(plan, listener)
