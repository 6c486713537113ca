"""How the language model does: what it has still to read, what was given up, and what went wrong last."""

from __future__ import annotations

from typing import Any

from engines.embedded.llm import client as llm
from store.derived_memories import extraction_backlog
from store.extraction_models import OwedExtraction


def state() -> dict[str, Any]:
    """`status` is "ok", "reading" or "failing"; `error` says in a sentence what the last try found. Two statements."""
    counted = extraction_backlog()
    failed = OwedExtraction.objects.filter(given_up_at__isnull=True).exclude(last_error="").order_by("-pk")
    error = llm.client().endpoint.pause.error or failed.values_list("last_error", flat=True).first()
    status = "failing" if error else "reading" if counted["owed"] else "ok"
    found: dict[str, Any] = {"status": status, "model": llm.client().model, **counted}
    return found | {"error": error} if error else found
