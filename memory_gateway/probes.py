"""Probes of Kubernetes and load balancers: `GET /live` and `GET /ready`.

A gateway is alive if its process answers: a restart does not help against a database that is away. It is ready if
requests can be sent to it. `/health` says more, for people and monitoring, and is always 200.
"""

import logging
import pkgutil
from functools import cache
from pathlib import Path
from typing import Any

from django.apps import apps
from django.db import DatabaseError, connection
from django.db.migrations.recorder import MigrationRecorder
from django.http import HttpRequest, JsonResponse
from django.views.decorators.http import require_safe

from memory_gateway.health import HealthMonitor

logger = logging.getLogger("memory_gateway.health")
STOPPING = "The gateway is stopping."


@cache
def _migrations() -> frozenset[tuple[str, str]]:
    """Return the migrations of this version as (app, name), by the names of their files: none is loaded."""
    folders = ((app.label, Path(app.path) / "migrations") for app in apps.get_app_configs())
    return frozenset(
        (label, found.name)
        for label, folder in folders
        for found in pkgutil.iter_modules([str(folder)])
        if not found.ispkg and found.name[0] not in "_~"  # as Django's loader
    )


def problem(_timeout_seconds: float) -> str:
    """Return why requests cannot be answered, or an empty text."""
    try:
        missing = _migrations() - MigrationRecorder(connection).applied_migrations().keys()
    except DatabaseError as error:
        logger.warning("The gateway is not ready: %s", error)
        return "The database does not answer."
    return f"Unapplied migrations: {len(missing)}." if missing else ""


monitor = HealthMonitor(problem, failed=lambda error: f"The database does not answer: {error}.")


def readiness(problem: str) -> tuple[int, dict[str, Any]]:
    """Return the status and the body of `GET /ready`."""
    return (503, {"status": "unavailable", "error": problem}) if problem else (200, {"status": "ok"})


# For other WSGI servers; in `manage.py serve` the ASGI router answers.
@require_safe
def live(_request: HttpRequest) -> JsonResponse:
    return JsonResponse({"status": "ok"})


@require_safe
def ready(_request: HttpRequest) -> JsonResponse:
    status, data = readiness(monitor.wait())
    return JsonResponse(data, status=status)
