"""Identifiers: validation of given ones, generation of new ones, parsing of session ids."""

import base64
import re
import secrets
import unicodedata
from functools import lru_cache
from typing import Annotated, Final, Literal, NamedTuple
from urllib.parse import quote
from uuid import UUID

from pydantic import AfterValidator, Field, StringConstraints

from core.messages import Translatable as _

_NAME = re.compile(r"[A-Za-z0-9_.@+-]{1,64}")
_CONTROL_OR_SURROGATE = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
MAX_USER_ID_CHARS: Final = 255
MAX_USER_ID_BYTES: Final = 512
MAX_LITERAL_CHARS: Final = 80
"""The longest user id that session ids hold literally."""
ERASED_PREFIX: Final = "!"
ERASED_ID: Final = r"^![0-9a-f]{32}$"
"""The form of the id of a user who is being erased, which no user has."""
_RESERVED: Final = frozenset({".", "..", "me"})
_REFUSED_CATEGORIES: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
_REMOTE_NAME: Final = re.compile(r"[A-Za-z0-9_.@+-]{1,128}")
_ALIAS: Final = re.compile(r"u_([a-z2-7]{26})")
MAX_SESSION_ID_CHARS = 128
MAX_DISPLAY_NAME_CHARS = 64


def check_name(value: str) -> str:
    """Return a valid `user_id`, `agent_id`, `app_id` or `project_id`.

    Raises: ValueError with the grammar.
    """
    if not _NAME.fullmatch(value) or value in {".", ".."}:
        raise ValueError(_("must be 1 to 64 characters of A-Z a-z 0-9 _ . @ + - and not '.' or '..'"))
    return value


def user_id_form(value: str) -> str:
    """Return the form in which user ids are compared (NFC), whatever form a client sends."""
    return value if value.isascii() else unicodedata.normalize("NFC", value)


def check_user_id(value: str) -> str:
    """Return a valid user id in its form: as identity sources give them, such as `auth0|12`, addresses and names.

    Raises: ValueError that names the limit or the character.
    """
    refused = next((char for char in value if unicodedata.category(char) in _REFUSED_CATEGORIES), None)
    if refused is not None:
        char = f"U+{ord(refused):04X} {unicodedata.name(refused, '')}".strip()
        raise ValueError(_("must not contain %(char)s, which is invisible or unassigned", char=char))
    value = user_id_form(value)
    if not 1 <= len(value) <= MAX_USER_ID_CHARS or len(value.encode()) > MAX_USER_ID_BYTES:
        raise ValueError(
            _(
                "must be 1 to %(chars)s characters and at most %(bytes)s bytes of UTF-8",
                chars=MAX_USER_ID_CHARS,
                bytes=MAX_USER_ID_BYTES,
            )
        )
    if value != value.strip():
        raise ValueError(_("must not begin or end with a space"))
    if value in _RESERVED or re.match(ERASED_ID, value):
        raise ValueError(_("must not be '.', '..', 'me' or '!' and 32 digits: choose another"))
    return value


def alias_of(user_pk: UUID) -> str:
    """Return the alias of a user: 28 characters of `a-z 2-7 _`, which stand for the id where that cannot be."""
    return f"u_{base64.b32encode(user_pk.bytes).decode().rstrip('=').lower()}"


def user_of_alias(name: str) -> UUID | None:
    """Return the key of the user whose alias a name is or would be; None for a name of another form."""
    match = _ALIAS.fullmatch(name)
    if match is None:
        return None
    user_pk = UUID(bytes=base64.b32decode(match[1].upper() + "======"))
    return user_pk if alias_of(user_pk) == name else None


def session_name(user_pk: UUID, user_id: str) -> str:
    """Return the name by which session ids name a user: the id, or the alias of a long one."""
    return user_id if len(user_id) <= MAX_LITERAL_CHARS else alias_of(user_pk)


def remote_name(user_pk: UUID, user_id: str) -> str:
    """Return the name of a user at a remote: the id, or the alias if the remote does not take the id."""
    return user_id if _REMOTE_NAME.fullmatch(user_id) else alias_of(user_pk)


def check_session_id(value: str) -> str:
    """Return a valid session id: 1–128 characters, no control characters (the remote damages records on a newline).

    A user id in it gets the form of user ids. Raises: ValueError.
    """
    if value.startswith(("resource:", "memory_edit:")):
        value = user_id_form(value)
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
UserId = Annotated[
    str,
    StringConstraints(strict=True),
    AfterValidator(check_user_id),
    Field(json_schema_extra={"minLength": 1, "maxLength": MAX_USER_ID_CHARS}),
]
DisplayName = Annotated[
    str,
    StringConstraints(strict=True),
    AfterValidator(check_display_name),
    Field(json_schema_extra=_DISPLAY_NAME_SCHEMA),
]


def new_resource_id() -> str:
    return f"r_{secrets.token_hex(16)}"


def resource_session_id(user_name: str, resource_id: str) -> str:
    """Return `resource:{user_name}:{resource_id}`: at most 9 + 80 + 1 + 34 = 124 characters; the limit is 128.

    `user_name` is the `session_name` of the user.
    """
    return f"resource:{user_name}:{resource_id}"


def resource_uri(user_id: str, resource_id: str) -> str:
    """Return the public address of a resource. It does not reveal where the file is stored."""
    return f"resource://{quote(user_id, safe='@+')}/{resource_id}"


SessionKind = Literal["chat", "resource", "memory_edit", "other"]


class SessionName(NamedTuple):
    """A parsed session id: its kind, the user it names (if any) and the rest."""

    kind: SessionKind
    user_id: str | None
    rest: str


@lru_cache(maxsize=8192)
def parse_session_id(session_id: str) -> SessionName:
    """Parse `chat:{conversation_id}`, `resource:{user_id}:{resource_id}` or `memory_edit:{user_id}`; else "other".

    `user_id` may have colons, `resource_id` has none. It is an alias for long ids.
    """
    kind, _, rest = session_id.partition(":")
    if kind == "chat" and rest:
        return SessionName("chat", None, rest)
    if kind == "resource" and rest:
        user_id, _, resource_id = rest.rpartition(":")
        return SessionName("resource", user_id, resource_id)
    if kind == "memory_edit" and rest:
        return SessionName("memory_edit", rest, "")
    return SessionName("other", None, session_id)
