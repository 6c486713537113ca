"""A JSON column whose rows can always be read."""

from typing import Any

from django.db import models
from django.db.models.fields.json import KeyTransform

from core import readable


class ReadableJSONField(models.JSONField):
    """A column of JSON objects, or of lists of strings if its default is a list, read as `core.readable` says.

    In migrations it is Django's own field.
    """

    def deconstruct(self) -> Any:
        name, _path, args, kwargs = super().deconstruct()
        return name, "django.db.models.JSONField", args, kwargs

    def from_db_value(self, value: Any, expression: Any, connection: Any) -> Any:
        if value is None or isinstance(expression, KeyTransform):
            return super().from_db_value(value, expression, connection)
        place = f"{self.model._meta.db_table}.{self.column}"  # noqa: SLF001
        return readable.read_strings(value, place) if self.default is list else readable.read_json(value, dict, place)
