"""How the language model does: what it has still to read, what was given up, and what went wrong last."""

from __future__ import annotations

from typing import Any, Final

from django.db.models import Count, Q

from engines.embedded.llm import client as llm
from store.extraction_models import OwedExtraction

_IS_GIVEN_UP: Final = Q(given_up_at__isnull=False)


def counts() -> dict[str, int]:
    """`owed` waits to be read, `given_up` was tried for the last time. One statement."""
    return OwedExtraction.objects.aggregate(
        owed=Count("pk", filter=~_IS_GIVEN_UP), given_up=Count("pk", filter=_IS_GIVEN_UP)
    )


def state() -> dict[str, Any]:
    """`status` is "ok", "reading" or "failing"; `error` says in a sentence what the last try found. Two statements."""
    counted = counts()
    failed = OwedExtraction.objects.filter(~_IS_GIVEN_UP).exclude(last_error="").order_by("-pk")
    error = llm.client().endpoint.pause.error or failed.values_list("last_error", flat=True).first()
    status = "failing" if error else "reading" if counted["owed"] else "ok"
    found: dict[str, Any] = {"status": status, "model": llm.client().model, **counted}
    return found | {"error": error} if error else found
