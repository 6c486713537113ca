"""Calls as data: a request, and a function that parses its answer. Nothing here sends."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO, Final, Generic, TypeVar
from urllib.parse import quote
from uuid import uuid4

import httpx2
from pydantic import TypeAdapter, ValidationError
from pydantic_core import to_jsonable_python

from memory_gateway_client.base_models import Versioned
from memory_gateway_client.errors import InvalidAnswer

T = TypeVar("T")
V = TypeVar("V", bound=Versioned)

NEVER: Final = datetime.max.replace(tzinfo=UTC)
"""The `expires_at` of what does not expire: it takes away a former time."""


@dataclass(frozen=True)
class Upload:
    """A file to stream: a path, or an object open for reading bytes, which is read from its beginning."""

    file: Path | BinaryIO
    filename: str

    @property
    def is_repeatable(self) -> bool:
        """Return True if the file can be read a second time."""
        return isinstance(self.file, Path) or self.file.seekable()


@dataclass(frozen=True)
class Call(Generic[T]):
    """A request and the parser of its answer.

    `path` is quoted. `is_idempotent`: carrying it out twice has the effect of once, so it is repeated if its outcome is
    unknown. With an upload, `body` is the form's fields.
    """

    method: str
    path: str
    parse: Callable[[httpx2.Response], T]
    params: Mapping[str, Any] = field(default_factory=dict)
    body: Mapping[str, Any] | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    upload: Upload | None = None
    is_idempotent: bool = False

    @property
    def is_repeatable(self) -> bool:
        """Return True if the same bytes can be sent again."""
        return self.upload is None or self.upload.is_repeatable

    def with_params(self, params: Mapping[str, Any]) -> "Call[T]":
        """Return the call with more query parameters."""
        return replace(self, params={**self.params, **params})


@dataclass(frozen=True)
class Page(Generic[T]):
    """A page of a list. `following` holds the query parameters of the next page, None on the last one."""

    items: list[T]
    following: Mapping[str, Any] | None


def call(
    method: str,
    path: str,
    parse: Callable[[httpx2.Response], T],
    *,
    ids: Mapping[str, object] | None = None,
    params: Mapping[str, Any] | None = None,
    body: Mapping[str, Any] | None = None,
    headers: Mapping[str, str | None] | None = None,
    upload: Upload | None = None,
    is_idempotent: bool | None = None,
    is_keyed: bool = False,
) -> Call[T]:
    """Return a call without its absent (None) fields. `ids` fill the placeholders of `path`.

    All methods but POST and PATCH are idempotent, unless `is_idempotent` says otherwise. With `is_keyed`, the call has
    an `Idempotency-Key`, by which the gateway carries it out once.
    """
    if is_keyed:
        headers, is_idempotent = {**(headers or {}), "Idempotency-Key": str(uuid4())}, True
    quoted = {name: quote(str(value), safe="") for name, value in (ids or {}).items()}
    return Call(
        method,
        path.format(**quoted),
        parse,
        params=_present(params or {}),
        body=None if body is None else _document(body),
        headers=_present(headers or {}),
        upload=upload,
        is_idempotent=method not in {"POST", "PATCH"} if is_idempotent is None else is_idempotent,
    )


def _document(body: Mapping[str, Any]) -> dict[str, Any]:
    document: dict[str, Any] = to_jsonable_python(_present(body), exclude_none=True)
    return document | {name: None for name, value in body.items() if value == NEVER}


def _present(fields: Mapping[str, T | None]) -> dict[str, T]:
    return {name: value for name, value in fields.items() if value is not None}


def parsed_as(kind: type[T], key: str | None = None) -> Callable[[httpx2.Response], T]:
    """Return a parser of JSON answers, or of one `key` of them.

    The parser raises: `InvalidAnswer`.
    """
    adapter = TypeAdapter(kind)

    def parse(response: httpx2.Response) -> T:
        try:
            document = response.json()
            return adapter.validate_python(document if key is None else document[key])
        except (ValueError, TypeError, KeyError, ValidationError) as error:
            raise InvalidAnswer(f"{response.url} did not answer as a Memory Gateway does.") from error

    return parse


def versioned(parse: Callable[[httpx2.Response], V]) -> Callable[[httpx2.Response], V]:
    """Return a parser that adds the `ETag` of the answer."""
    return lambda response: parse(response).of_version(response.headers.get("ETag", ""))


def bearer(token: str | None) -> str | None:
    """Return the header `Authorization` of another token than the client's key."""
    return token and f"Bearer {token}"


def page_of(kind: type[T], key: str) -> Callable[[httpx2.Response], Page[T]]:
    """Return a parser of pages whose items are in `key`."""
    items, cursor = parsed_as(list[kind], key), parsed_as(dict[str, Any])  # type: ignore[valid-type]

    def parse(response: httpx2.Response) -> Page[T]:
        following = cursor(response).get("next_cursor")
        return Page(items(response), None if following is None else {"cursor": following})

    return parse
