"""Translation of messages into the reader's language, the language of a request, and the model field of messages."""

import contextlib
import json
from typing import Any

from django.conf import settings
from django.db import models
from django.http import HttpRequest
from django.utils.translation import gettext
from django.utils.translation.trans_real import get_supported_language_variant, parse_accept_lang_header
from rest_framework.request import Request

from core.messages import Translatable


def localized(text: str) -> str:
    """Return a message, or a sentence without parameters, in the active language; English if it has no translation."""
    template, params = (text.template, text.params) if isinstance(text, Translatable) else (text, {})
    translated = gettext(template) if template else ""
    if not params:
        return translated
    return translated % {name: localized(value) if isinstance(value, str) else value for name, value in params.items()}


def language_of(request: HttpRequest | Request) -> str:
    """Return the language that `Accept-Language` prefers, by default English. The panel's cookie does not count."""
    for code, _quality in parse_accept_lang_header(request.META.get("HTTP_ACCEPT_LANGUAGE", "")):
        with contextlib.suppress(LookupError):
            return get_supported_language_variant(code)
    return settings.LANGUAGE_CODE


def language_headers(language: str) -> dict[str, str]:
    return {"Content-Language": language, "Vary": "Accept-Language"}


class MessageField(models.TextField):  # type: ignore[type-arg]  # Django cannot subscript it at run time
    """A model field that stores a message as JSON with its template and parameters; an empty text stays empty.

    Values are `Message`: English in code and logs. `localized` translates them for readers.
    """

    def from_db_value(self, value: str | None, *_: object) -> str | None:
        return _message(json.loads(value)) if value else value

    def get_prep_value(self, value: Any) -> Any:
        return json.dumps(_plain(value), sort_keys=True, ensure_ascii=False) if value else value


def _plain(value: Any) -> Any:
    if not isinstance(value, Translatable):
        return value if isinstance(value, int | float) else str(value)
    return {"template": value.template, "params": {name: _plain(param) for name, param in value.params.items()}}


def _message(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    return Translatable(value["template"], **{name: _message(param) for name, param in value["params"].items()})
