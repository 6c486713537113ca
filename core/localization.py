"""Translation of messages into the reader's language, and the model field that stores them."""

import json
from typing import Any

from django.db import models
from django.utils.translation import gettext

from core.messages import Message


def localized(text: str) -> str:
    """Return a message, or a sentence without parameters, in the active language; English if it has no translation."""
    template, params = (text.template, text.params) if isinstance(text, Message) else (text, {})
    translated = gettext(template) if template else ""
    if not params:
        return translated
    return translated % {name: localized(value) if isinstance(value, str) else value for name, value in params.items()}


class MessageField(models.TextField):  # type: ignore[type-arg]  # Django cannot subscript it at run time
    """A model field that stores a message as JSON with its template and parameters; an empty text stays empty.

    Values are `Message`: English in code and logs. `localized` translates them for readers.
    """

    def from_db_value(self, value: str | None, *_: object) -> str | None:
        return _message(json.loads(value)) if value else value

    def get_prep_value(self, value: Any) -> Any:
        return json.dumps(_plain(value), sort_keys=True, ensure_ascii=False) if value else value


def _plain(value: Any) -> Any:
    if not isinstance(value, Message):
        return value if isinstance(value, int | float) else str(value)
    return {"template": value.template, "params": {name: _plain(param) for name, param in value.params.items()}}


def _message(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    return Message(value["template"], **{name: _message(param) for name, param in value["params"].items()})
