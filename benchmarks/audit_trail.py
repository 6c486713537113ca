"""Measure the share of the audit trail in a list of memories: `python -m benchmarks.audit_trail`.

Run it in the environment of a seeded gateway. The list of the memories of all users is shown without the trail, with an
event and no users, with an event and its users, and again within ten minutes, in turn. The events are removed
afterwards.
"""

import time
from collections.abc import Callable
from statistics import median
from typing import Any, Final

import django

django.setup()

from django.contrib.auth.models import User  # noqa: E402
from django.db import connection  # noqa: E402
from django.test import Client, override_settings  # noqa: E402

from accounts.audit import record  # noqa: E402
from accounts.models import AuditEvent, AuditSubject  # noqa: E402
from console import access  # noqa: E402

ROUNDS: Final = 40


def nothing(*_args: Any, **_fields: Any) -> None:
    """Record nothing."""


def without_users(*args: Any, **fields: Any) -> None:
    record(*args, **{**fields, "users": ()})


WAYS: Final[dict[str, Callable[..., None]]] = {
    "without": nothing, "event": without_users, "event and users": record, "again": record
}  # fmt: skip


def main() -> None:
    operator = User.objects.create_superuser(f"benchmark-{time.time_ns()}")
    last = AuditEvent.objects.order_by("-pk").values_list("pk", flat=True).first() or 0
    client = Client()
    client.force_login(operator)
    took: dict[str, list[tuple[float, float]]] = {way: [] for way in WAYS}
    for number in range(ROUNDS):
        names = list(WAYS)
        for way in names[number % 3 : 3] + names[: number % 3] + names[3:]:  # "again" follows a first view
            access.record = WAYS[way]  # type: ignore[attr-defined]
            page = f"{number}" if way == "again" else f"{number}-{way}"
            if way == "again":
                client.get(f"/admin/memory/list/?tab=all&n={page}")
            clock, process = time.perf_counter(), time.process_time()
            answer = client.get(f"/admin/memory/list/?tab=all&n={page}")
            took[way].append((time.perf_counter() - clock, time.process_time() - process))
            assert answer.status_code == 200
    users = AuditSubject.objects.filter(event__pk__gt=last).values("user_id").distinct().count()
    print(f"{connection.vendor}: {ROUNDS} rounds, {users} users on the page")
    for column, name in enumerate(("clock", "process")):
        plain = median(row[column] for row in took["without"])
        for way, rows in took.items():
            more = [row[column] - base[column] for row, base in zip(rows, took["without"], strict=True)]
            here = median(row[column] for row in rows)
            print(f"  {name:8} {way:16} {here * 1000:7.2f} ms  {median(more) / plain:+6.1%}")
    AuditEvent.objects.filter(pk__gt=last, actor=operator.username).delete()
    operator.delete()


if __name__ == "__main__":
    with override_settings(ALLOWED_HOSTS=["*"]):
        main()
