"""Policy for addresses from callers (`uri`, `source_uri`, `ingest_uri`, webhooks): which may be stored and fetched.

The gateway or the engine fetches such an address from inside the operator's network, with the operator's credentials.
Only public hosts are accepted, unless the operator allows a host by name, and only objects in buckets that the operator
allows. The policy is the same for every engine, profile and interface. It applies when an address arrives and again
when it is used: settings change, and rows of archives and earlier versions may hold addresses that are refused now.
"""

import ipaddress
import re
import socket
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Self
from urllib.parse import SplitResult, unquote, urlsplit

from django.conf import settings

from core.messages import MessageError
from core.messages import Translatable as _

MAX_URI_CHARS = 2048
FILE_SCHEME = "file"
WEB_SCHEMES = frozenset({"http", "https"})
STORE_SCHEMES = frozenset({"minio", "s3"})
DEFAULT_PORTS = {"http": 80, "https": 443}

IPAddress = ipaddress.IPv4Address | ipaddress.IPv6Address
Resolver = Callable[[str, int], Iterable[str]]

# Parsers disagree about these characters: one reads a host where another reads a user name or a path.
_AMBIGUOUS = re.compile(r"[\x00-\x20\x7f-\xa0\u2028\u2029\ufeff\\]")
_NO_FILE_NAME = re.compile(r"[\x00-\x1f\x7f\\]")
# Python's `is_global` accepts these: protocol assignments, deprecated 6to4 relays, unassigned IPv6.
_NOT_PUBLIC = (ipaddress.IPv4Network("192.0.0.0/24"), ipaddress.IPv4Network("192.88.99.0/24"))
_GLOBAL_UNICAST = ipaddress.IPv6Network("2000::/3")
# An engine elsewhere may resolve these names, which the gateway cannot: they are of its network, never of the internet.
_NEVER_PUBLIC = re.compile(r"[^.]+|.+\.(?:localhost|localdomain|local|internal|lan|home\.arpa)")
_NAT64 = ipaddress.ip_network("64:ff9b::/96")
_MASK_32 = 0xFFFFFFFF


class BadAddress(MessageError):
    """An address that must not be stored or fetched. The message tells the caller why."""


class NotAllowed(BadAddress):
    """A `file:` address or a bucket that the operator does not allow. A message keeps it as text."""


@dataclass(frozen=True, slots=True)
class AddressPolicy:
    """The operator's exceptions: `file_roots` are folders below which `file://` is allowed.

    `allowed_hosts` are host names that are allowed even at private addresses, `buckets` those that users may name.
    """

    file_roots: tuple[Path, ...] = ()
    allowed_hosts: frozenset[str] = frozenset()
    buckets: frozenset[str] = frozenset()

    @classmethod
    def from_settings(cls) -> Self:
        hosts = frozenset(_normal_host(host) for host in settings.MEMORY_GATEWAY_ALLOWED_PRIVATE_HOSTS)
        own = own_bucket(settings.MEMORY_GATEWAY_STORAGE_URL)
        buckets = (bucket for bucket in settings.MEMORY_GATEWAY_EXTERNAL_BUCKETS if not is_same_bucket(bucket, own))
        return cls(tuple(map(Path, settings.MEMORY_GATEWAY_FILE_URI_ROOTS)), hosts, frozenset(buckets))


def resolve(host: str, port: int) -> list[str]:
    """Return every address of a host, as a connection would resolve it; an empty list if it has none."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError:
        return []
    return [str(address[0]) for *_, address in found]


def check_uri(uri: str, policy: AddressPolicy, *, resolver: Resolver = resolve) -> str:
    """Return the address if it may be stored and passed on. http(s) hosts are resolved; nothing is connected.

    A host that does not resolve is accepted: nothing can be reached there, and fetching it later reports the error.
    Names of local networks are not: an engine may resolve them.

    Raises: `BadAddress`.
    """
    parts = _split(uri)
    scheme = parts.scheme.lower()
    if scheme == FILE_SCHEME:
        file_path(uri, policy)
    elif scheme in WEB_SCHEMES:
        reachable_addresses(uri, policy, resolver=resolver)
    elif scheme in STORE_SCHEMES:
        bucket_and_key(uri, policy)
    else:
        allowed = ["https://", "http://", "minio://", "s3://", *(["file://"] if policy.file_roots else [])]
        schemes = f"{', '.join(allowed[:-1])} or {allowed[-1]}"
        raise BadAddress(_("must start with %(schemes)s", schemes=schemes))
    return uri


def reachable_addresses(uri: str, policy: AddressPolicy, *, resolver: Resolver = resolve) -> list[str]:
    """Return the addresses that an http(s) URI may be fetched from.

    Connect to these only: the name may resolve differently next time.

    Raises: `BadAddress` if any address is not public, or the name is of a local network.
    """
    parts = _split(uri)
    host = _host(parts)
    addresses = list(resolver(host, parts.port or DEFAULT_PORTS[parts.scheme.lower()]))
    if host in policy.allowed_hosts:
        return addresses
    is_local = not addresses and _NEVER_PUBLIC.fullmatch(host)
    if is_local or not all(is_public(ipaddress.ip_address(address.partition("%")[0])) for address in addresses):
        raise BadAddress(_("must not be in a private network; ask the operator to allow its host"))
    return addresses


def base_and_path(uri: str) -> tuple[str, str]:
    """Return a checked http(s) address as the HTTP client takes it: scheme with host and port, and path with query."""
    parts = urlsplit(uri)
    host = (parts.hostname or "").encode("idna").decode("ascii")
    name = f"[{host}]" if ":" in host else host
    base = f"{parts.scheme}://{name}{f':{parts.port}' if parts.port else ''}"
    return base, (parts.path or "/") + (f"?{parts.query}" if parts.query else "")


def file_path(uri: str, policy: AddressPolicy) -> Path:
    """Return the path of a `file://` URI, with symbolic links resolved.

    The result does not reveal what exists outside the roots. Ambiguous spellings are refused, because the remote parses
    the URI itself.

    Raises: `NotAllowed` unless the path is below a root, `BadAddress`.
    """
    parts = _split(uri)
    path = _plain_path(parts)
    if path is not None and any(path.is_relative_to(root.resolve()) for root in policy.file_roots):
        return path
    raise NotAllowed(
        _(
            "must be file:/// with a plain path in a folder that the operator allows; upload the file instead, "
            "or ask the operator to allow its folder"
        )
    )


def is_file(uri: str) -> bool:
    """Return True for a `file:` address in any spelling; False for text that is not an address."""
    try:
        return urlsplit(uri).scheme.lower() == FILE_SCHEME
    except ValueError:
        return False


def is_in_object_store(uri: str) -> bool:
    """Return True for an address in an object store (minio, s3)."""
    return urlsplit(uri).scheme.lower() in STORE_SCHEMES


def is_allowed_object(uri: str) -> bool:
    """Return True for an address in an object store that callers may name now."""
    try:
        bucket_and_key(uri, AddressPolicy.from_settings())
    except BadAddress:
        return False
    return True


def own_bucket(storage_url: str) -> str:
    """Return the bucket of the gateway's own files; empty if they are in a folder."""
    return urlsplit(storage_url).netloc


def is_same_bucket(bucket: str, other: str) -> bool:
    """Return True if an object store may take the names for one bucket: they differ in letter case or a last dot."""
    return bucket.casefold().rstrip(".") == other.casefold().rstrip(".")


def bucket_and_key(uri: str, policy: AddressPolicy) -> tuple[str, str]:
    """Return the bucket and the key of an address in an object store.

    Ambiguous spellings of the key are refused, because the remote parses the address itself, and clients of object
    stores may resolve `..` into another bucket. Raises: `NotAllowed` unless the operator allows the bucket,
    `BadAddress`.
    """
    parts = _split(uri)
    bucket = parts.netloc
    if not bucket:
        raise BadAddress(_("must name a bucket or host"))
    if bucket not in policy.buckets:
        raise NotAllowed(
            _(
                "must be in a bucket that MEMORY_GATEWAY_EXTERNAL_BUCKETS names; give an https:// address of the file, "
                "or ask the operator to add the bucket"
            )
        )
    key = _plain_key(parts)
    if key is None:
        raise BadAddress(_("must name an object as s3://bucket/key, with a percent-encoded key"))
    return bucket, key


def is_loopback(host: str) -> bool:
    """Return True if a listening address can be reached from this machine only."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def may_name_loopback() -> bool:
    """Return True if callers may name this machine: the gateway listens on loopback and its users need no token.

    Its clients are on this machine already. `serve --host` accepts other addresses only with a provisioning
    token, and background workers have the settings of the gateway.
    """
    return not settings.MEMORY_GATEWAY_PROVISIONING_TOKEN and is_loopback(settings.MEMORY_GATEWAY_HOST)


def is_public(address: IPAddress) -> bool:
    """Return True for a public internet address, also when wrapped (mapped, NAT64, 6to4)."""
    inner = _unwrapped(address)
    if any(inner in network for network in _NOT_PUBLIC):
        return False
    if isinstance(inner, ipaddress.IPv6Address) and inner not in _GLOBAL_UNICAST:
        return False
    return inner.is_global and not inner.is_multicast


def _unwrapped(address: IPAddress) -> IPAddress:
    if isinstance(address, ipaddress.IPv4Address):
        return address
    if address in _NAT64:
        return ipaddress.IPv4Address(int(address) & _MASK_32)
    return address.ipv4_mapped or address.sixtofour or address


def _split(uri: str) -> SplitResult:
    if not 1 <= len(uri) <= MAX_URI_CHARS:
        raise BadAddress(_("must have 1 to %(number)s characters", number=MAX_URI_CHARS))
    if _AMBIGUOUS.search(uri):
        raise BadAddress(_("must not contain spaces, backslashes or control characters: percent-encode them"))
    try:
        parts = urlsplit(uri)
        parts.port  # noqa: B018  raises for a port that is no number
    except ValueError:
        raise BadAddress(_("must be a valid address")) from None
    if "@" in parts.netloc:
        raise BadAddress(_("must not contain a user name or password"))
    return parts


def _host(parts: SplitResult) -> str:
    host = parts.hostname or ""
    if not host or "%" in host:
        raise BadAddress(_("must name a host"))
    return _normal_host(host)


def _normal_host(host: str) -> str:
    """Return the host as it is looked up: IDNA-normalized, lower case, without the root's dot."""
    try:
        name = host.encode("idna").decode("ascii").lower().rstrip(".")
        name.encode("idna")  # again, as a look-up does: normalization turns "…" into three dots
    except UnicodeError:
        raise BadAddress(_("must name a valid host")) from None
    return name


def _plain_key(parts: SplitResult) -> str | None:
    """Return the decoded key of an object; None if it is missing or ambiguous."""
    try:
        key = unquote(parts.path.removeprefix("/"), errors="strict")
    except ValueError:
        return None
    is_plain = unquote(key) == key and not {".", ".."} & set(key.split("/")) and not _NO_FILE_NAME.search(key)
    return key if key and is_plain and not (parts.query or parts.fragment) else None


def _plain_path(parts: SplitResult) -> Path | None:
    """Return the absolute path without links; None if it is not absolute or is ambiguous."""
    has_extras = parts.netloc.lower() not in {"", "localhost"} or parts.query or parts.fragment
    try:
        path = unquote(parts.path, errors="strict")
        is_encoded_twice = unquote(path) != path
        is_plain = path.startswith("/") and not path.startswith("//") and ".." not in path.split("/")
        if has_extras or is_encoded_twice or not is_plain or _NO_FILE_NAME.search(path):
            return None
        resolved = Path(path).resolve()
    except (ValueError, RuntimeError, OSError):
        return None
    # A link that is left leads back to itself. Python before 3.13 raises an error for it.
    return None if any(one.is_symlink() for one in (resolved, *resolved.parents)) else resolved
