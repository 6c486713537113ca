"""Signed values that pages carry: a list's filter, frozen when the list was drawn, and what undoes a decision."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from django.core import signing
from django.http import QueryDict

from core.errors import BadRequest
from memories.services.decisions import Change
from operations import bulk, jobs
from operations.bulk import Target

_SALT: Final = "console.selecting"
_UNDO_SALT: Final = "console.undo"
_ROW: Final = re.compile(r"[0-9]{1,18}")


def seal(target: Target) -> str:
    """A frozen selection as a form may carry it: rows written later are not meant."""
    return signing.dumps(target.as_json(), salt=_SALT, compress=True)


def unseal(sealed: str) -> Target:
    """Errors: `BadRequest` for anything that `seal` did not write."""
    try:
        return Target.from_json(signing.loads(sealed, salt=_SALT))
    except (signing.BadSignature, KeyError, TypeError, ValueError):
        raise BadRequest("This selection is not one that the list made.") from None


def seal_undo(kind: str, changes: Sequence[Change]) -> str:
    """Return what undoes a decision as an address may carry it."""
    return signing.dumps([kind, changes], salt=_UNDO_SALT, compress=True)


def unseal_undo(sealed: str) -> tuple[str, list[Change]]:
    """Return a decision's kind and its changes. Raises: `BadRequest` for anything that `seal_undo` did not write."""
    try:
        kind, changes = signing.loads(sealed, salt=_UNDO_SALT, max_age=jobs.KEPT)
    except signing.BadSignature:
        raise BadRequest("This undo was not offered here, or it is older than 30 days.") from None
    return kind, changes


def target_of(posted: QueryDict) -> Target:
    """What the form of a list means: all that match, or the rows that were ticked. Errors: `BadRequest`,
    `InvalidInput` for too many rows."""
    if posted.get("matching") == "1":
        return unseal(posted.get("target", ""))
    rows = posted.getlist("id")
    if not all(_ROW.fullmatch(row) for row in rows):
        raise BadRequest("This selection is not one that the list made.")
    return bulk.of_rows([int(row) for row in rows], in_trash=posted.get("in_trash") == "1")
