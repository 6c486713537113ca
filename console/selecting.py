"""What a list hands to the page of bulk actions: its filter, frozen when the list was drawn."""

from __future__ import annotations

import re
from typing import Final

from django.core import signing
from django.http import QueryDict

from lifecycle import bulk
from lifecycle.bulk import Target
from memory_gateway.core.errors import BadRequest

_SALT: Final = "console.selecting"
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


def target_of(posted: QueryDict) -> Target:
    """What the form of a list means: all that match, or the rows that were ticked. Errors: `BadRequest`,
    `InvalidInput` for too many rows."""
    if posted.get("matching") == "1":
        return unseal(posted.get("target", ""))
    rows = posted.getlist("id")
    if not all(_ROW.fullmatch(row) for row in rows):
        raise BadRequest("This selection is not one that the list made.")
    return bulk.of_rows([int(row) for row in rows], in_trash=posted.get("in_trash") == "1")
