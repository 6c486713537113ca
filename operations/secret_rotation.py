"""Encrypt again, with the present secret, what former secrets encrypted, so that these can be given up.

Rows are changed one by one, each only if it is still as it was read, so that servers may run meanwhile and an
interrupted run is continued by the next.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from django.apps import apps
from django.db import transaction
from django.db.models import QuerySet

from accounts import oidc, services  # noqa: F401 - these modules and the next ones register their columns
from accounts.audit import Actor, record
from core.crypto import PURPOSES, Purpose, Undecryptable, is_current
from operations.commands import Report, no_report
from resources.services import claims  # noqa: F401
from webhooks.services import signing  # noqa: F401

BATCH: Final = 500
_PASSES: Final = 3
"""Texts that a server with the former settings encrypts behind the first pass are found by the next."""


@dataclass(frozen=True, slots=True)
class Left:
    """The number of texts that a former secret encrypted, and of those that no known secret did."""

    former: int = 0
    undecryptable: int = 0


@dataclass(frozen=True, slots=True)
class _Column:
    purpose: Purpose
    name: str

    @property
    def field(self) -> str:
        return self.name.rpartition(".")[2]

    def rows(self) -> QuerySet[Any]:
        """Return the rows with an encrypted text."""
        model: Any = apps.get_model(self.name.rpartition(".")[0])
        rows: QuerySet[Any] = model.objects.exclude(**{self.field: ""})
        return rows.order_by("pk")

    def batches(self) -> Iterator[list[tuple[Any, str]]]:
        """Yield primary keys and texts in batches."""
        last: dict[str, Any] = {}
        while batch := list(self.rows().filter(**last).values_list("pk", self.field)[:BATCH]):
            yield batch
            last = {"pk__gt": batch[-1][0]}

    def is_former(self, ciphertext: str) -> bool | None:
        """Return True for a text of a former secret, None for one of no known secret."""
        try:
            return not is_current(ciphertext, purpose=self.purpose.name)
        except Undecryptable:
            return None

    def encrypt_again(self, pk: Any, ciphertext: str) -> int:
        """Encrypt a text with the present secret; return 0 if it has changed meanwhile."""
        text = self.purpose.encrypt(self.purpose.decrypt(ciphertext))
        return self.rows().filter(pk=pk, **{self.field: ciphertext}).update(**{self.field: text})


def columns() -> list[str]:
    """Return the names of all encrypted columns."""
    return [column.name for column in _columns()]


def left() -> Left:
    """Count what the present secret alone cannot decrypt."""
    counts = {True: 0, False: 0, None: 0}
    for column in _columns():
        for batch in column.batches():
            for _pk, ciphertext in batch:
                counts[column.is_former(ciphertext)] += 1
    return Left(counts[True], counts[None])


def rotate(*, actor: Actor, report: Report = no_report) -> int:
    """Encrypt again what former secrets encrypted, and return the number of texts. Raises: `Stopped`."""
    count = 0
    for _ in range(_PASSES):
        found = sum(_rotate_column(column, report) for column in _columns())
        count += found
        if not found:
            break
    record(actor, "secret.rotate", detail={"count": count})
    return count


def _rotate_column(column: _Column, report: Report) -> int:
    count, done, total = 0, 0, column.rows().count()
    for batch in column.batches():
        report(f"Encrypting {column.name}", done, total)
        with transaction.atomic():
            count += sum(column.encrypt_again(pk, text) for pk, text in batch if column.is_former(text))
        done += len(batch)
    report(f"Encrypting {column.name}", done, max(done, total))
    return count


def _columns() -> list[_Column]:
    return [_Column(purpose, name) for purpose in PURPOSES for name in purpose.columns]
