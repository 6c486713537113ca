"""Identifiers: validation of given ones, generation of new ones, parsing of session ids."""

import re
import secrets
from functools import lru_cache
from typing import Annotated, Literal, NamedTuple

from pydantic import AfterValidator, Field, StringConstraints

from core.messages import Translatable as _

_NAME = re.compile(r"[A-Za-z0-9_.@+-]{1,64}")
_CONTROL_OR_SURROGATE = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
MAX_SESSION_ID_CHARS = 128
MAX_DISPLAY_NAME_CHARS = 64


def check_name(value: str) -> str:
    """Return a valid `user_id`, `agent_id`, `app_id` or `project_id`.

    Raises: ValueError with the grammar.
    """
    if not _NAME.fullmatch(value) or value in {".", ".."}:
        raise ValueError(_("must be 1 to 64 characters of A-Z a-z 0-9 _ . @ + - and not '.' or '..'"))
    return value


def check_session_id(value: str) -> str:
    """Return a valid session id: 1–128 characters, no control characters (the remote damages records on a newline).

    Raises: ValueError.
    """
    if not 1 <= len(value) <= MAX_SESSION_ID_CHARS or _CONTROL_OR_SURROGATE.search(value):
        raise ValueError(
            _("must be 1 to %(number)s characters without control characters", number=MAX_SESSION_ID_CHARS)
        )
    return value


def check_new_session_id(value: str) -> str:
    """Return a valid id for a session to write to, which the path of a request can name.

    Raises: ValueError.
    """
    if value in {".", ".."}:
        raise ValueError(_("must not be '.' or '..', which clients remove from addresses"))
    return check_session_id(value)


def check_display_name(value: str) -> str:
    """Return a valid name of a person or agent for readers: 1–64 characters, no control characters.

    Raises: ValueError.
    """
    if not 1 <= len(value) <= MAX_DISPLAY_NAME_CHARS or _CONTROL_OR_SURROGATE.search(value):
        raise ValueError(
            _("must be 1 to %(number)s characters without control characters", number=MAX_DISPLAY_NAME_CHARS)
        )
    return value


# The checks above enforce the same grammar with better error messages.
_NAME_SCHEMA = {"pattern": r"^(?!\.{1,2}$)[A-Za-z0-9_.@+-]{1,64}$"}
_SESSION_ID_PATTERN = rf"[^\u0000-\u001f\u007f-\u009f\u2028\u2029]{{1,{MAX_SESSION_ID_CHARS}}}"
_SESSION_ID_SCHEMA = {"pattern": rf"^{_SESSION_ID_PATTERN}$"}
_NEW_SESSION_ID_SCHEMA = {"pattern": rf"^(?!\.{{1,2}}$){_SESSION_ID_PATTERN}$"}
_DISPLAY_NAME_SCHEMA = {"pattern": rf"^[^\u0000-\u001f\u007f-\u009f\u2028\u2029]{{1,{MAX_DISPLAY_NAME_CHARS}}}$"}

Name = Annotated[str, StringConstraints(strict=True), AfterValidator(check_name), Field(json_schema_extra=_NAME_SCHEMA)]
SessionId = Annotated[
    str,
    StringConstraints(strict=True),
    AfterValidator(check_session_id),
    Field(json_schema_extra=_SESSION_ID_SCHEMA),
]
NewSessionId = Annotated[
    str,
    StringConstraints(strict=True),
    AfterValidator(check_new_session_id),
    Field(json_schema_extra=_NEW_SESSION_ID_SCHEMA),
]
DisplayName = Annotated[
    str,
    StringConstraints(strict=True),
    AfterValidator(check_display_name),
    Field(json_schema_extra=_DISPLAY_NAME_SCHEMA),
]


def new_resource_id() -> str:
    return f"r_{secrets.token_hex(16)}"


def resource_session_id(user_id: str, resource_id: str) -> str:
    """Return `resource:{user_id}:{resource_id}`: at most 9 + 64 + 1 + 34 = 108 characters; the limit is 128."""
    return f"resource:{user_id}:{resource_id}"


def resource_uri(user_id: str, resource_id: str) -> str:
    """Return the public address of a resource. It does not reveal where the file is stored."""
    return f"resource://{user_id}/{resource_id}"


SessionKind = Literal["chat", "resource", "memory_edit", "other"]


class SessionName(NamedTuple):
    """A parsed session id: its kind, the user it names (if any) and the rest."""

    kind: SessionKind
    user_id: str | None
    rest: str


@lru_cache(maxsize=8192)
def parse_session_id(session_id: str) -> SessionName:
    """Parse `chat:{conversation_id}`, `resource:{user_id}:{resource_id}` or `memory_edit:{user_id}`; else "other"."""
    kind, _, rest = session_id.partition(":")
    if kind == "chat" and rest:
        return SessionName("chat", None, rest)
    if kind == "resource" and rest:
        user_id, _, resource_id = rest.partition(":")
        return SessionName("resource", user_id, resource_id)
    if kind == "memory_edit" and rest:
        return SessionName("memory_edit", rest, "")
    return SessionName("other", None, session_id)
