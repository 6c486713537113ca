"""Read the document at an OAuth client's id (Client ID Metadata Documents, which MCP has since November 2025).

The address comes from anyone, so it is fetched by the address policy: public hosts only, from the checked addresses,
without redirects, within limits of size and time.
"""

import ssl
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import urlsplit

import orjson

from core.errors import InvalidInput
from core.messages import Translatable as _
from core.network.http_client import Deadline, HttpClient, HttpError
from core.network.url_policy import AddressPolicy, BadAddress, Resolver, base_and_path, reachable_addresses, resolve

MAX_BYTES: Final = 32 * 1024
SECONDS: Final = 5.0
MAX_CHARS: Final = 1000
_HEADERS: Final = {"Accept": "application/json", "Accept-Encoding": "identity", "Connection": "close"}
_SLOTS: Final = threading.BoundedSemaphore(4)
"""The most concurrent fetches of this process; another one is refused."""


@dataclass(frozen=True, slots=True)
class ClientDocument:
    """The name and the redirect addresses of an application."""

    name: str
    redirect_uris: Sequence[str]


def is_address(client_id: str) -> bool:
    """Return True for a client id that is the address of a document, rather than one of a registration."""
    return client_id.startswith("https://")


def read(client_id: str, *, resolver: Resolver = resolve, tls: ssl.SSLContext | None = None) -> ClientDocument:
    """Fetch and check the document at a client id.

    Raises: `InvalidInput` for an address that is not allowed, and a document that cannot be read or is of another one.
    """
    _check_address(client_id)
    if not _SLOTS.acquire(blocking=False):
        raise _invalid(_("cannot be read now: too many applications connect at once"))
    try:
        return _document(client_id, _fetched(client_id, resolver, tls))
    finally:
        _SLOTS.release()


def _check_address(client_id: str) -> None:
    """Check the form of the address: it is compared byte by byte, so it has one spelling only."""
    try:
        parts = urlsplit(client_id)
        is_plain = parts.netloc == parts.netloc.lower() and (parts.hostname or "").isascii()
    except ValueError:
        raise _invalid(_("must be a valid address")) from None
    has_path = parts.path not in {"", "/"} and not {".", ".."} & set(parts.path.split("/"))
    if not (is_plain and has_path and client_id.isascii()) or "#" in client_id or len(client_id) > MAX_CHARS:
        raise _invalid(
            _(
                "must be an https address with a lower-case host and a path, without fragment and dot segments, of at "
                "most %(number)s characters",
                number=MAX_CHARS,
            )
        )


def _fetched(client_id: str, resolver: Resolver, tls: ssl.SSLContext | None) -> bytes:
    try:
        addresses = reachable_addresses(client_id, AddressPolicy.from_settings(), resolver=resolver)
    except BadAddress as error:
        raise _invalid(error.message) from None
    if not addresses:
        raise _invalid(_("cannot be read: the host has no address"))
    base_url, path = base_and_path(client_id)
    try:
        with (
            HttpClient(base_url, headers=_HEADERS, addresses=addresses, tls=tls) as client,
            client.send("GET", path, None, Deadline.after(SECONDS)) as response,
        ):
            if response.status != HTTPStatus.OK:
                raise _invalid(_("must lead to a document with status 200, not %(status)s", status=response.status))
            kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
            if kind != "application/json" and not kind.endswith("+json"):
                raise _invalid(_("must lead to a document of type application/json"))
            return response.body(MAX_BYTES)
    except (HttpError, ValueError) as error:  # `from None`: the causes may contain the address
        message = error.message if isinstance(error, HttpError) else _("The response is not HTTP")
        raise _invalid(_("cannot be read: %(reason)s", reason=message)) from None


def _document(client_id: str, body: bytes) -> ClientDocument:
    try:
        found = orjson.loads(body)
    except orjson.JSONDecodeError:
        raise _invalid(_("must lead to a document of type application/json")) from None
    document: dict[str, Any] = found if isinstance(found, dict) else {}
    if document.get("client_id") != client_id:
        raise _invalid(_("must lead to a document that names this address as client_id"))
    if "client_secret" in document or document.get("token_endpoint_auth_method", "none") != "none":
        raise _invalid(_("must lead to a public client: token_endpoint_auth_method 'none', and no client_secret"))
    name, uris = document.get("client_name", ""), document.get("redirect_uris")
    if not isinstance(name, str) or not isinstance(uris, list) or not all(isinstance(uri, str) for uri in uris):
        raise _invalid(_("must lead to a document with client_name as text and redirect_uris as a list of addresses"))
    return ClientDocument(name, uris)


def _invalid(message: str) -> InvalidInput:
    return InvalidInput.of_field("client_id", message)
