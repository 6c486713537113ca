"""`manage.py start`: prepare the database and run the server."""

from functools import partial
from typing import Any

from django.conf import settings
from django.core.management import call_command
from django.db import connections

from memory_gateway.management.commands import serve
from memory_gateway.server import preparation, serving


class Command(serve.Command):
    help = "Migrate the database, rebuild the index if needed, create an operator if there is none, and serve."

    def get_version(self) -> str:
        """Return the gateway's version, where Django's commands return that of Django."""
        return str(settings.SPECTACULAR_SETTINGS["VERSION"])

    def handle(self, *args: Any, **options: Any) -> None:
        plan = self.plan(**options)
        listener = serving.listen(plan)
        prepare = partial(_prepare, plan, port=listener.getsockname()[1])
        preparation.run_apart(prepare, loads_application=plan.workers == 1 and not plan.reload)
        serving.require_local_model()
        serving.run(plan, listener)


def _prepare(plan: serving.Plan, port: int) -> None:
    serving.check_before_migration(plan)
    call_command("migrate", verbosity=0)
    serving.check(plan)
    call_command("rebuild", quiet=True)
    call_command("ensure_operator", host=plan.host, port=port)
    connections.close_all()
