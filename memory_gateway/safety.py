"""Safety checks at startup. Each raises `ImproperlyConfigured` with one sentence that names the remedy."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping, Sequence
from pathlib import Path
from urllib.parse import urlsplit

from django.core.exceptions import ImproperlyConfigured

PREFIX = "MEMORY_GATEWAY_"
_MIN_SECRET_CHARS = 50
_MIN_TOKEN_CHARS = 32
_MIN_DIFFERENT_CHARS = 8
# Words from examples, and commands that were pasted instead of run.
_TELLTALES = (
    "insecure",
    "changeme",
    "change-me",
    "change_me",
    "example",
    "password",
    "openssl",
    "$(",
    "your-",
    "your_",
)
_SAFE_SSL_MODES = {"require", "verify-ca", "verify-full"}


def require_secrets(*, is_production: bool, secret_key: str, fallbacks: Sequence[str], provisioning_token: str) -> None:
    """Check the secrets: `production` requires secret key and token; each must be random and used for one purpose."""
    if is_production:
        _require_set(secret_key, "SECRET_KEY")
        _require_set(provisioning_token, "PROVISIONING_TOKEN")
        require_random(secret_key, "SECRET_KEY", minimum=_MIN_SECRET_CHARS)
        for fallback in fallbacks:
            require_random(fallback, "SECRET_KEY_FALLBACKS", minimum=_MIN_SECRET_CHARS)
    if provisioning_token:
        require_random(provisioning_token, "PROVISIONING_TOKEN", minimum=_MIN_TOKEN_CHARS)
        if provisioning_token == secret_key:
            raise ImproperlyConfigured(f"{PREFIX}SECRET_KEY and {PREFIX}PROVISIONING_TOKEN must differ.")


def require_safe_rpc_token(token: str, *, others: Sequence[str], is_reachable: bool) -> None:
    """Check the RPC token, which gives access to all users' memories.

    On loopback under `local` it may be the token that OpenClaw already has.
    """
    if token and is_reachable:
        require_random(token, "RPC_TOKEN", minimum=_MIN_TOKEN_CHARS)
    if token and token in others:
        raise ImproperlyConfigured(f"{PREFIX}RPC_TOKEN must differ from every other secret.")


def require_safe_metrics_token(token: str, *, others: Sequence[str]) -> None:
    """Check that the metrics token is used for nothing else, because scrapers keep it in a file."""
    if token:
        require_random(token, "METRICS_TOKEN", minimum=_MIN_TOKEN_CHARS)
    if token and token in others:
        raise ImproperlyConfigured(f"{PREFIX}METRICS_TOKEN must differ from every other secret.")


def require_random(value: str, name: str, *, minimum: int) -> None:
    """Check that a secret is long and random."""
    if len(value) < minimum:
        raise ImproperlyConfigured(f"{PREFIX}{name} must have at least {minimum} characters.")
    if (
        _is_periodic(value)
        or len(set(value)) < _MIN_DIFFERENT_CHARS
        or any(word in value.lower() for word in _TELLTALES)
    ):
        raise ImproperlyConfigured(f"{PREFIX}{name} must be random, for example what `openssl rand -hex 32` prints.")


def _is_periodic(value: str) -> bool:
    return any(value[period:] == value[:-period] for period in range(1, len(value) // 2 + 1))


def require_safe_local(*, host: str, hosts: Sequence[str], provisioning_token: str) -> None:
    """Check that `local`, where anyone who connects can create users, is on loopback or requires a token."""
    if provisioning_token:
        return
    if not is_loopback(host):
        raise ImproperlyConfigured(
            f"{PREFIX}HOST {host} is reachable from other machines: set {PREFIX}PROVISIONING_TOKEN, "
            "or listen on 127.0.0.1."
        )
    if any("*" in name for name in hosts):
        raise ImproperlyConfigured(
            f"{PREFIX}ALLOWED_HOSTS must not be a wildcard without {PREFIX}PROVISIONING_TOKEN: "
            "any web page could reach this gateway."
        )


def require_safe_names(*, hosts: Sequence[str], origins: Sequence[str]) -> None:
    """Check that `production` names its hosts and uses https origins only."""
    if not hosts:
        raise ImproperlyConfigured(f"{PREFIX}ALLOWED_HOSTS must name the hosts that this gateway answers for.")
    if any("*" in name or name == "." or (name.startswith(".") and name.count(".") < 2) for name in hosts):
        raise ImproperlyConfigured(f"{PREFIX}ALLOWED_HOSTS must name hosts, not a wildcard for all of them.")
    if any("/" in name or _has_port(name) for name in hosts):
        raise ImproperlyConfigured(f"{PREFIX}ALLOWED_HOSTS must hold bare host names, without https:// and port.")
    if any(not origin.startswith("https://") or origin.startswith("https://*") for origin in origins):
        raise ImproperlyConfigured(f"{PREFIX}ALLOWED_ORIGINS must hold whole https:// origins only.")


def _has_port(name: str) -> bool:
    return ":" in name.rpartition("]")[2]


def require_safe_proxies(proxies: Sequence[str]) -> None:
    """Check the trusted proxies, which may set a request's client address."""
    if not proxies:
        raise ImproperlyConfigured(
            f"{PREFIX}TRUSTED_PROXIES must name the proxy in front that ends https: "
            "the gateway itself speaks plain http."
        )
    if any(ipaddress.ip_network(proxy, strict=False).prefixlen == 0 for proxy in proxies):
        raise ImproperlyConfigured(f"{PREFIX}TRUSTED_PROXIES must not trust every address.")


def require_model(kind: str, base_url: str, model: str) -> None:
    """Check that an endpoint's model is named, because an endpoint serves many."""
    if base_url and not model:
        raise ImproperlyConfigured(f"{PREFIX}{kind}_BASE_URL needs {PREFIX}{kind}_MODEL beside it.")


def require_safe_backend(kind: str, base_url: str, private_hosts: Sequence[str]) -> None:
    """Check that memories go to the engine and to models over https, or to a host that the operator allows."""
    parts = urlsplit(base_url)
    if parts.username or parts.password:
        raise ImproperlyConfigured(f"{PREFIX}{kind}_BASE_URL must not hold a password.")
    hostname = parts.hostname or ""
    if parts.scheme == "http" and not is_loopback(hostname) and hostname not in private_hosts:
        raise ImproperlyConfigured(
            f"{PREFIX}{kind}_BASE_URL must use https, or its host must stand in {PREFIX}ALLOWED_PRIVATE_HOSTS."
        )


def require_safe_database(database: Mapping[str, object], private_hosts: Sequence[str]) -> None:
    """Check that a database on another machine uses TLS: the default `sslmode` "prefer" falls back to plain text."""
    host, options = str(database.get("HOST") or ""), database.get("OPTIONS")
    is_local = not host or host.startswith("/") or is_loopback(host) or host in private_hosts
    mode = options.get("sslmode") if isinstance(options, Mapping) else None
    if not is_local and mode not in _SAFE_SSL_MODES:
        raise ImproperlyConfigured(
            f"DATABASE_URL must end in ?sslmode=require (or verify-full), or its host must stand in "
            f"{PREFIX}ALLOWED_PRIVATE_HOSTS."
        )


def require_no_reload(reload: bool) -> None:
    if reload:
        raise ImproperlyConfigured(f"{PREFIX}RELOAD is for development: it must be false under production.")


def require_separate(*, database: Path, storage: Path) -> None:
    """Check that the storage folder holds nothing else: files without a database row are deleted from it."""
    if database.is_relative_to(storage):
        raise ImproperlyConfigured(
            f"{PREFIX}STORAGE_DIR must be a folder of its own: the database {database} lies inside {storage}."
        )


def require_foreign(roots: Sequence[Path], *, own: Sequence[Path]) -> None:
    """Check that folders which users may read by `file://` do not overlap with the gateway's own data."""
    for root in roots:
        if any(path.is_relative_to(root) or root.is_relative_to(path) for path in own):
            raise ImproperlyConfigured(
                f"{PREFIX}FILE_URI_ROOTS must not overlap with the gateway's own data: {root} would open it to users."
            )


def require_private(path: Path) -> None:
    """Check that a file or folder is not accessible to all users of the machine."""
    if path.exists() and path.stat().st_mode & 0o007:
        mode = 700 if path.is_dir() else 600
        raise ImproperlyConfigured(f"{path} is open to everyone on this machine: run `chmod {mode}` on it.")


def is_loopback(host: str) -> bool:
    """Return True if a listening address can be reached from this machine only."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _require_set(value: str, name: str) -> None:
    if not value:
        raise ImproperlyConfigured(f"{PREFIX}{name} must be set under the production profile.")
