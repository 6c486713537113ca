"""Common parts of request bodies and queries, and the bodies and responses of `/users`."""

from collections.abc import Callable
from contextlib import suppress
from datetime import date
from typing import Annotated, Literal
from uuid import UUID

from pydantic import AwareDatetime, BaseModel, BeforeValidator, ConfigDict, Field, WrapValidator

from accounts.controls import TOPICS
from accounts.models import MAX_NEVER_WORD_CHARS, MAX_NEVER_WORDS, MAX_TENANT_CHARS, TENANT_PATTERN
from accounts.services import DEFAULT_GRACE, MAX_BROWSER_LIFETIME, MAX_GRACE, MAX_LABEL_CHARS
from core import ids
from core.ids import Name
from core.messages import Translatable as _
from core.rest import WHOLE, Body

_USER_ID = "The caller's user id. Required with `user_key` only."
_USER_KEY = "The caller's API key. Send the header `Authorization: Bearer uk_…` instead where you can."

# The parts of bodies, queries, paths and responses that several endpoints share.
Time = Annotated[str, Field(json_schema_extra={"format": "date-time"}, examples=["2026-06-10T10:00:00+00:00"])]
UserId = Annotated[str, Field(description="The user's id.", examples=["u_123"])]
UserKey = Annotated[
    str, Field(description="The API key in plain text.", examples=["uk_4pXn2Zr8Tq6vWs1Yb3Kd5Mf7Hj9Lc0Ga2Ne4Ru6Ti8o"])
]
KeyId = Annotated[UUID, Field(description="The id of the API key.", examples=["0b6f3f0e-6f0c-4d6e-9a51-2f4f5a8f0c11"])]
AppId = Annotated[str, Field(description="The application of the scope.", examples=["default"])]
ProjectId = Annotated[str, Field(description="The project of the scope.", examples=["default"])]
ChatId = Annotated[str, Field(description="The id of the session.", examples=["chat:c_456"])]
NextCursor = Annotated[
    str | None, Field(description="The `cursor` of the next page; null on the last page.", examples=[None])
]


class _Credentials(BaseModel):
    """Credentials in a body or query. Authentication reads them; views ignore them."""

    user_id: str | None = Field(None, description=_USER_ID)
    user_key: str | None = Field(None, description=_USER_KEY, json_schema_extra={"deprecated": True})


class _Scope(BaseModel):
    app_id: Name = Field("default", description="The application. With `project_id` it names the scope of the data.")
    project_id: Name = Field("default", description="The project within the application.")


class AuthenticatedBody(Body, _Credentials):
    """A JSON or form body that may contain credentials."""


class ScopedBody(AuthenticatedBody, _Scope):
    """A body that also names a scope."""


class AuthenticatedQuery(_Credentials):
    """Query parameters that may contain credentials: `parse_query(Model, request)`.

    These models are not strict, because numbers are sent as text; unknown names are refused.
    """

    model_config = ConfigDict(extra="forbid")


class RemoteView(BaseModel):
    """The state of a session or a file at the remote, if one is attached."""

    state: Literal["off", "pending", "sent", "derived", "refused"] = Field(
        description="`off`: nothing of it is for the remote. `pending`: a message waits. `sent`: the remote has all. "
        "`derived`: the memories that it derived are here. `refused`: it refused a message, which stays here.",
        examples=["off"],
    )
    since: Time | None = Field(
        description="When the oldest message in this state was stored, or when the derived memories could be found; "
        "null for `off`.",
        examples=[None],
    )
    detail: str | None = Field(description="Why the remote refused it; null otherwise.", examples=[None])


class ScopedQuery(AuthenticatedQuery, _Scope):
    """Query parameters that also name a scope."""


def _require_text(value: object) -> object:
    """Return a time given as text. Raises: ValueError for a number, also as text, because its unit is ambiguous."""
    if isinstance(value, str):
        try:
            float(value)
        except ValueError:
            return value
    raise ValueError(_("must be a time such as 2027-01-31T12:00:00+00:00"))


Moment = Annotated[AwareDatetime, Field(strict=False), BeforeValidator(_require_text)]


def _moment_or_day(value: object, handler: Callable[[object], date]) -> date:
    """Return a time; for a date alone a day, which ends where the user is (`store.expiry.ending_of`)."""
    if isinstance(value, str) and len(value) == len("2027-01-31"):
        with suppress(ValueError):
            return date.fromisoformat(value)
    return handler(value)


MomentOrDay = Annotated[Moment, WrapValidator(_moment_or_day)]


class CreateUserBody(Body):
    """The user to create."""

    user_id: ids.UserId = Field(
        description="An id of your choice, such as the one of your identity provider: 1 to 255 characters, at most 512 "
        "bytes, without invisible ones. It is stored in Unicode's form NFC.",
        examples=["u_123"],
    )


_LINE = r"^[^\u0000-\u001f\u007f-\u009f\u2028\u2029]*$"


class DescribeUserBody(Body):
    """The description of a user for operators. Absent or null: as before; an empty value removes it."""

    user_id: ids.UserId = Field(description="The user's id.", examples=["u_123"])
    name: Annotated[str, Field(max_length=200, pattern=_LINE)] | None = Field(
        None, description="The person's name.", examples=["Ann Miller"]
    )
    email: Annotated[str, Field(max_length=254, pattern=r"^([^\s@]+@[^\s@]+)?$")] | None = Field(
        None, description="The person's e-mail address.", examples=["ann@example.org"]
    )
    labels: (
        list[Annotated[str, Field(min_length=1, max_length=40, pattern=r"^[^\s,]([^\x00-\x1f,]*[^\s,])?$")]] | None
    ) = Field(None, max_length=10, description="Labels by which operators find the user.", examples=[["pilot"]])
    notes: Annotated[str, Field(max_length=10_000, pattern=r"^[^\u0000]*$")] | None = Field(
        None, description="Notes for operators.", examples=["Prefers e-mail."]
    )
    tenant: Annotated[str, Field(max_length=MAX_TENANT_CHARS, pattern=TENANT_PATTERN)] | None = Field(
        None,
        description="The organization or team that the user belongs to. Operators can be limited to tenants.",
        examples=["acme"],
    )


class DescribedUser(BaseModel):
    """The fields that changed. Their values are for operators alone, so no request returns them."""

    user_id: UserId
    changed: list[Literal["name", "email", "labels", "notes", "tenant"]] = Field(
        description="The fields whose values differ from before.",
        examples=[["name", "email", "labels", "notes", "tenant"]],
    )


class CreatedUser(BaseModel):
    """A user with an API key."""

    user_id: UserId
    user_key: UserKey = Field(description="The user's API key. Store it: every other request needs it.")
    created_at: Time = Field(description="When the user was created.")


KeyScope = Literal["search", "add", "decide", "files", "controls"]
_SCOPES = (
    "`search`: read memories and profiles. `add`: store. `decide`: change, delete and restore. `files`: read, upload "
    "and delete files. `controls`: read and tighten controls. Keys with scopes manage no keys and webhooks."
)


class IssueKeyBody(AuthenticatedBody):
    """The label, the expiry and the limits of a new key."""

    label: str = Field(
        "", max_length=MAX_LABEL_CHARS, description="A name that tells this key from others.", examples=["laptop"]
    )
    expires_at: Moment | None = Field(None, description="When the key expires, within ten years. Absent: never.")
    expires_in: Annotated[int, Field(ge=1, le=int(MAX_BROWSER_LIFETIME.total_seconds())), WHOLE] | None = Field(
        None,
        description="Seconds until the key expires, in the place of `expires_at`: for a key that a browser gets, which "
        "must have `scopes`.",
        examples=[None],
    )
    scopes: list[KeyScope] | None = Field(
        None,
        min_length=1,
        max_length=5,
        description=f"What the key may do. {_SCOPES} Absent: everything but `controls`.",
    )
    app_id: Name | None = Field(
        None, description="The only application whose data the key reads and writes. Absent: all.", examples=[None]
    )
    agent_id: Name | None = Field(
        None, description="The only agent as which the key reads and writes. Absent: all.", examples=[None]
    )


class RotateKeyBody(AuthenticatedBody):
    """The grace period of the rotated key."""

    grace_seconds: Annotated[int, Field(ge=0, le=int(MAX_GRACE.total_seconds())), WHOLE] = Field(
        int(DEFAULT_GRACE.total_seconds()),
        description="Seconds that the old key still works, unless it expires earlier.",
        examples=[3600],
    )


Refused = Annotated[
    dict[str, int] | None,
    Field(
        description="The number of texts that the person's controls refused, by reason: `paused`, also what was said "
        "during a pause or repeats it; `never`, what has words or is about topics that are never remembered. "
        "Absent if nothing."
    ),
]
IsPaused = Annotated[
    Literal[True] | None,
    Field(description="True while the person pauses this kind of remembering. Absent otherwise.", examples=[None]),
]
PausedSource = Annotated[
    Literal["chats", "files", "agents"],
    Field(
        description="`chats`: messages. `files`: uploads, registered files and files in messages. `agents`: facts that "
        "applications, agents and operators store, and what agents change."
    ),
]


NeverTopic = Literal["health", "money", "religion", "politics", "sexuality", "location", "family", "work"]


class ControlsBody(AuthenticatedBody):
    """Limits to set. Fields that are absent stay as they are."""

    paused: list[PausedSource] | None = Field(
        None,
        max_length=3,
        description="All sources that are to be paused. Those that are paused already must be among them: only the "
        "person resumes, on their own pages. Absent or null: as before.",
        examples=[["chats"]],
    )
    words: list[Annotated[str, Field(max_length=MAX_NEVER_WORD_CHARS)]] | None = Field(
        None,
        max_length=MAX_NEVER_WORDS,
        description="All words and phrases that are never to be remembered, in any of their forms. Those that are set "
        "must be among them: only the person takes one away. Absent or null: as before.",
        examples=[["Project Heron"]],
    )
    topics: list[NeverTopic] | None = Field(
        None,
        max_length=len(TOPICS),
        description="All topics about which nothing that the person says of themselves is to be remembered. Those that "
        "are set must be among them. Absent or null: as before.",
        examples=[["health"]],
    )


class PauseView(BaseModel):
    """A pause that lasts."""

    source: PausedSource = Field(examples=["chats"])
    since: Time = Field(description="When it began.")
    by: Literal["person", "key", "token", "operator", "command", "provisioning", "system"] = Field(
        description="The one who began it: the person on their own pages, or an API key with the scope `controls`.",
        examples=["key"],
    )


class ControlsView(BaseModel):
    """The controls of a person over remembering."""

    paused: list[PausedSource] = Field(description="The sources that are paused.", examples=[["chats"]])
    pauses: list[PauseView] = Field(description="The pauses, with their times.")
    words: list[str] = Field(description="The words that are never remembered.", examples=[["Project Heron"]])
    topics: list[NeverTopic] = Field(
        description="The topics that are never remembered. They catch words, not meanings.", examples=[["health"]]
    )


class _Key(BaseModel):
    key_id: KeyId
    label: str = Field(description="The label given when the key was made; may be empty.", examples=["laptop"])
    created_at: Time = Field(description="When the key was made.")
    expires_at: Time | None = Field(description="When the key expires; null for never.", examples=[None])
    scopes: list[KeyScope] | None = Field(
        None, description="The scopes of the key; null for everything but `controls`.", examples=[None]
    )
    app_id: str | None = Field(None, description="The only application that it reads and writes.", examples=[None])
    agent_id: str | None = Field(None, description="The only agent as which it reads and writes.", examples=[None])


class KeyView(_Key):
    """An API key without its plain text."""

    prefix: str = Field(description="The first characters of the key.", examples=["uk_4pXn"])
    revoked_at: Time | None = Field(description="When the key was revoked; null if it was not.", examples=[None])
    last_used_at: Time | None = Field(
        description="When the key was last used, to the minute; null for never.", examples=[None]
    )
    is_live: bool = Field(description="True unless the key is expired or revoked.", examples=[True])
    is_current: bool = Field(description="True for the key of this request.", examples=[False])


class KeyList(BaseModel):
    """The caller's API keys."""

    keys: list[KeyView] = Field(description="The keys, newest first, with expired and revoked ones.")


class NewKey(_Key):
    """A new API key."""

    user_key: UserKey = Field(description="The API key in plain text. Store it: it is not shown again.")


class RotatedKey(NewKey):
    """A new API key, and the key that it replaces."""

    previous_key_id: KeyId = Field(
        description="The id of the old key.", examples=["5d0c1f52-3a0e-4c53-8d4b-9f7b1f0e7a02"]
    )
    previous_expires_at: Time = Field(description="When the old key stops working.")


class RevokedKey(BaseModel):
    """A revoked API key."""

    key_id: KeyId
    status: str = Field(description="Always `revoked`.", examples=["revoked"])
