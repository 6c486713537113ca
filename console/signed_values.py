"""Signed values in pages: the selection of a list, frozen when the list was shown, and the data to undo a decision."""

import re
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, Final

from django.core import signing
from django.http import QueryDict
from django.urls import reverse

from core.errors import BadRequest
from core.messages import Translatable as _
from memories.services.decisions import Change
from operations import bulk, files, jobs
from operations.bulk import Target
from operations.importers import import_from

_SALT: Final = "console.selecting"
_UNDO_SALT: Final = "console.undo"
_RECEIPT_SALT: Final = "console.receipt"
_IMPORT_SALT: Final = "console.import"
_CHOICE_SALT: Final = "console.choice"
_ROW: Final = re.compile(r"[0-9]{1,18}")


def sign_target(target: Target) -> str:
    """Return a frozen selection as text for a form. It excludes rows that are written later."""
    return signing.dumps(target.as_json(), salt=_SALT, compress=True)


def read_target(sealed: str) -> Target:
    """Return the selection. Raises: `BadRequest` for a text that is not from `sign_target`."""
    try:
        return Target.from_json(signing.loads(sealed, salt=_SALT))
    except (signing.BadSignature, KeyError, TypeError, ValueError):
        raise BadRequest(_("The selection is not valid. Select the rows in the list again.")) from None


def undo_address(kind: str, changes: Sequence[Change]) -> str:
    """Return the address to which the notice of a decision posts to undo its changes; empty without changes."""
    signed = signing.dumps([kind, changes], salt=_UNDO_SALT, compress=True)
    return reverse("console:undo", query={"changes": signed}) if changes else ""


def read_undo(sealed: str) -> tuple[str, list[Change]]:
    """Return the kind and the changes of a decision. Raises: `BadRequest` for another text."""
    refusal = _("The undo link is not valid or is older than 30 days.")
    kind, changes = _read(sealed, _UNDO_SALT, refusal, max_age=jobs.KEPT)
    return kind, changes


def sign_receipt(receipt: Mapping[str, Any]) -> str:
    """Return the receipt of an erasure as text for the form that downloads it."""
    return signing.dumps(receipt, salt=_RECEIPT_SALT, compress=True)


def read_receipt(sealed: str) -> dict[str, Any]:
    """Return the receipt. Raises: `BadRequest` for a text that is not from `sign_receipt`."""
    found: dict[str, Any] = _read(sealed, _RECEIPT_SALT, _("The receipt is not valid."))
    return found


def sign_import(request: import_from.Request, total: int) -> str:
    """Return a planned import as text for the form that starts it."""
    return signing.dumps([request.as_json(), total], salt=_IMPORT_SALT, compress=True)


def read_import(sealed: str) -> tuple[import_from.Request, int]:
    """Return a planned import and its number of memories.

    Raises: `BadRequest` for a text that is not from `sign_import`, `NotFound` for a user who was erased.
    """
    refusal = _("The plan is not valid or is older than a day. Upload the file again.")
    given, total = _read(sealed, _IMPORT_SALT, refusal, max_age=files.ARCHIVE_LIFETIME)
    return import_from.Request.from_json(given), total


def sign_choice(url: str, user_id: str) -> str:
    """Return a result of Find as text for the browser to report that it was opened."""
    return signing.dumps([url, user_id], salt=_CHOICE_SALT)


def read_choice(sealed: str) -> tuple[str, str]:
    """Return the address and the user of a result. Raises: `BadRequest` for a text that is not from `sign_choice`."""
    url, user_id = _read(sealed, _CHOICE_SALT, _("The result is not valid. Search again."))
    return url, user_id


def _read(sealed: str, salt: str, refusal: str, *, max_age: timedelta | None = None) -> Any:
    try:
        return signing.loads(sealed, salt=salt, max_age=max_age)
    except signing.BadSignature:
        raise BadRequest(refusal) from None


def target_of(posted: QueryDict) -> Target:
    """Return the selection of a list's form: all matching rows, or the ticked ones.

    Raises: `BadRequest`; `InvalidInput` for too many rows.
    """
    if posted.get("matching") == "1":
        return read_target(posted.get("target", ""))
    rows = posted.getlist("id")
    if not all(_ROW.fullmatch(row) for row in rows):
        raise BadRequest(_("The selection is not valid. Select the rows in the list again."))
    return bulk.of_rows([int(row) for row in rows], in_trash=posted.get("in_trash") == "1")
