"""Translatable messages. Services write them in English; pages and REST errors translate them on rendering."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final, Self

_IS_CHECKOUT: Final = Path(__file__).parents[1].joinpath("manage.py").is_file()

MANAGE: Final = "python manage.py" if _IS_CHECKOUT else "memory-gateway manage"
"""The command line that runs management commands here."""


class Translatable(str):  # noqa: SLOT000  instances carry their template
    """An English sentence that keeps its template and parameters, for `localized` to translate.

    Import it as `_`: then `makemessages` finds the template in `_("at most %(limit)s bytes", limit=limit)`. A parameter
    may be a message itself. This module does not import Django: `documents` and the remote's client use it.
    """

    template: str
    params: dict[str, Any]

    def __new__(cls, template: str, /, **params: Any) -> Self:
        message = super().__new__(cls, template % params if params else template)
        message.template, message.params = template, params
        return message

    def __getnewargs_ex__(self) -> tuple[tuple[str], dict[str, Any]]:
        """Pickle the template and parameters."""
        return (self.template,), self.params


def joined(separator: str, messages: Iterable[str]) -> Translatable:
    """Return the messages as one message that translates each of them."""
    params = {f"message{number}": message for number, message in enumerate(messages)}
    return Translatable(separator.join(f"%({name})s" for name in params), **params)


class MessageError(Exception):
    """An error of a lower layer. A service passes its `message` on to the caller."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message
