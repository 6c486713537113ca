"""Models whose rows are checked when they are written, whichever code creates or changes them.

`save`, `create`, `bulk_create`, `bulk_update`, `update` and `core.persistence.sql.insert` check values of all fields by
`core.storable`, and the lengths of texts, which SQLite does not check. Rows that are read are not checked.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from datetime import datetime
from functools import cache
from typing import Any, Final, TypeVar, cast

from django.db import models

from core.errors import FieldError, InvalidInput
from core.messages import Translatable as _
from core.storable import NotStorable, Repair, check_json, check_moment, check_ms, check_number, check_text

_Row = TypeVar("_Row", bound=models.Model)
_Check = Callable[[Any], object]
_KINDS: Final = (
    models.JSONField,
    models.CharField,
    models.TextField,
    models.FloatField,
    models.IntegerField,
    models.DateTimeField,
)
_MAX_INT: Final = 2**31 - 1


class CheckedQuerySet(models.QuerySet[_Row]):
    """A query that checks the rows it writes."""

    def bulk_create(self, objs: Iterable[_Row], *args: Any, **kwargs: Any) -> list[_Row]:
        rows = list(objs)
        for row in rows:
            check_row(row)
        return super().bulk_create(rows, *args, **kwargs)

    def bulk_update(self, objs: Iterable[_Row], fields: Iterable[str], *args: Any, **kwargs: Any) -> int:
        rows, names = list(objs), list(fields)
        for row in rows:
            check_row(row, names)
        return super().bulk_update(rows, names, *args, **kwargs)

    def update(self, **values: Any) -> int:
        _check(self.model, values, values)
        return super().update(**values)


class CheckedModel(models.Model):
    """A model whose rows are checked when they are saved."""

    objects = CheckedQuerySet.as_manager()

    class Meta:
        abstract = True

    def save_base(
        self,
        raw: bool = False,
        force_insert: bool | tuple[models.base.ModelBase, ...] = False,
        force_update: bool = False,
        using: str | None = None,
        update_fields: Iterable[str] | None = None,
    ) -> None:
        """Check the fields and save them. Raises: as `check_row`."""
        names = None if update_fields is None else frozenset(update_fields)
        check_row(self, names)
        super().save_base(raw, force_insert, force_update, using, names)


def check_row(row: models.Model, fields: Collection[str] | None = None) -> None:
    """Check all loaded fields of a row, or some by name. Raises: `InvalidInput` with every wrong field."""
    _check(type(row), row.__dict__, fields)


def repair_row(row: models.Model) -> list[FieldError]:
    """Make a new row storable; return what was changed, by field."""
    repair = Repair()
    for field in _fields(type(row)):
        value = row.__dict__.get(field.attname)
        if value and not hasattr(value, "resolve_expression"):
            setattr(row, field.attname, _repaired(field, value, repair))
    return repair.changes


def _check(model: type[models.Model], values: Mapping[str, Any], fields: Collection[str] | None) -> None:
    wrong = []
    for name, check in _checks(model):
        value = values.get(name)
        if value and (fields is None or name in fields):  # empty values can be stored
            try:
                check(value)
            except NotStorable as error:
                wrong.append(FieldError(".".join([name, *error.path]), error.message))
    if wrong:
        raise InvalidInput.of_fields(wrong)


@cache
def _checks(model: type[models.Model]) -> tuple[tuple[str, _Check], ...]:
    return tuple((field.attname, _check_of(field)) for field in _fields(model))


@cache
def _fields(model: type[models.Model]) -> "tuple[models.Field[Any, Any], ...]":
    fields = cast("Iterable[models.Field[Any, Any]]", model._meta.concrete_fields)  # noqa: SLF001
    return tuple(field for field in fields if isinstance(field, _KINDS))


def _check_of(field: "models.Field[Any, Any]") -> _Check:
    # Expressions, such as `F("version") + 1`, are left to the database.
    if isinstance(field, models.JSONField):
        return lambda value: hasattr(value, "resolve_expression") or check_json(value)
    if isinstance(field, models.CharField | models.TextField):
        longest = field.max_length
        return lambda value: not isinstance(value, str) or check_text(value, longest)
    if isinstance(field, models.DateTimeField):
        return lambda value: not isinstance(value, datetime) or check_moment(value)
    if is_ms(field):
        return lambda value: not isinstance(value, int) or check_ms(value)
    if isinstance(field, models.FloatField):
        return lambda value: not isinstance(value, int | float) or check_number(value)
    low, high = integer_range(field)
    return lambda value: not isinstance(value, int) or _check_range(value, low, high)


def is_ms(field: "models.Field[Any, Any]") -> bool:
    """Return True for a time in Unix milliseconds."""
    return isinstance(field, models.BigIntegerField) and field.name.endswith("_at_ms")


def integer_range(field: "models.Field[Any, Any]") -> tuple[int, int]:
    """Return the smallest and the largest number of an integer column."""
    high = models.BigIntegerField.MAX_BIGINT if isinstance(field, models.BigIntegerField) else _MAX_INT
    return -high - 1, high


def _check_range(value: int, low: int, high: int) -> int:
    if not low <= value <= high:
        raise NotStorable(_("must be between %(low)s and %(high)s", low=low, high=high))
    return value


def _repaired(field: "models.Field[Any, Any]", value: Any, repair: Repair) -> Any:
    if isinstance(field, models.JSONField):
        return repair.json(field.name, value)
    if isinstance(field, models.CharField | models.TextField):
        return repair.text(field.name, value, field.max_length)
    if isinstance(field, models.DateTimeField):
        return repair.moment(field.name, value)
    if is_ms(field):
        return repair.ms(field.name, value)
    if isinstance(field, models.FloatField):
        return repair.json(field.name, value)
    low, high = integer_range(field)
    return repair.number(field.name, value, low, high)
