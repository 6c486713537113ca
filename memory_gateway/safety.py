"""Safety checks at startup. Each raises `ImproperlyConfigured` with a message that names the remedy."""

import importlib.util
import ipaddress
import os
import re
import stat
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from django.core.exceptions import ImproperlyConfigured
from django.db import connection
from django.db.migrations.loader import MigrationLoader

from core.messages import MANAGE
from core.network.url_policy import is_loopback, is_same_bucket, own_bucket

PREFIX = "MEMORY_GATEWAY_"
_MIN_SECRET_CHARS = 50
_MIN_TOKEN_CHARS = 32
_MIN_DIFFERENT_CHARS = 8
# Texts from examples, and from commands that were pasted instead of their output.
_PLACEHOLDERS = (
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
_BUCKET = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_SAFE_SSL_MODES = {"require", "verify-ca", "verify-full"}


def require_secrets(*, is_production: bool, secret_key: str, fallbacks: Sequence[str], provisioning_token: str) -> None:
    """Check the secrets: `production` requires secret key and token; each must be random and used for one purpose.

    On loopback under `local`, without a token, the secret key may be simple.
    """
    if is_production:
        _require_set(secret_key, "SECRET_KEY")
        _require_set(provisioning_token, "PROVISIONING_TOKEN")
    if provisioning_token:
        if secret_key:
            require_random(secret_key, "SECRET_KEY", minimum=_MIN_SECRET_CHARS)
        for fallback in fallbacks:
            require_random(fallback, "SECRET_KEY_FALLBACKS", minimum=_MIN_SECRET_CHARS)
        require_random(provisioning_token, "PROVISIONING_TOKEN", minimum=_MIN_TOKEN_CHARS)
        if provisioning_token == secret_key:
            raise ImproperlyConfigured(f"{PREFIX}SECRET_KEY and {PREFIX}PROVISIONING_TOKEN must differ.")


def require_safe_token(token: str, name: str, *, others: Sequence[str], may_be_simple: bool = False) -> None:
    """Check that a token is random and used for nothing else."""
    if token and not may_be_simple:
        require_random(token, name, minimum=_MIN_TOKEN_CHARS)
    if token and token in others:
        raise ImproperlyConfigured(f"{PREFIX}{name} must differ from every other secret.")


def require_random(value: str, name: str, *, minimum: int) -> None:
    """Check that a secret is long and random."""
    if len(value) < minimum:
        raise ImproperlyConfigured(f"{PREFIX}{name} must have at least {minimum} characters.")
    is_periodic = any(value[period:] == value[:-period] for period in range(1, len(value) // 2 + 1))
    if is_periodic or len(set(value)) < _MIN_DIFFERENT_CHARS or any(word in value.lower() for word in _PLACEHOLDERS):
        raise ImproperlyConfigured(f"{PREFIX}{name} must be random. Generate it with `openssl rand -hex 32`.")


def require_safe_local(*, host: str, hosts: Sequence[str], provisioning_token: str) -> None:
    """Check that `local`, where anyone who connects can create users, is on loopback or requires a token."""
    if provisioning_token:
        return
    if not is_loopback(host):
        raise ImproperlyConfigured(
            f"{PREFIX}HOST {host} is reachable from other machines. Set {PREFIX}PROVISIONING_TOKEN, "
            "or listen on 127.0.0.1."
        )
    for name in hosts:
        if not is_loopback(name.strip("[]")) and not name.endswith(".localhost"):
            raise ImproperlyConfigured(
                f"{PREFIX}ALLOWED_HOSTS must not contain {name} without {PREFIX}PROVISIONING_TOKEN: "
                "web pages of that host could create users."
            )


def require_safe_names(*, hosts: Sequence[str], origins: Sequence[str]) -> None:
    """Check that `production` lists its host names, and https origins only."""
    if not hosts:
        raise ImproperlyConfigured(f"{PREFIX}ALLOWED_HOSTS must list the host names of this gateway.")
    if any("*" in name or name == "." or (name.startswith(".") and name.count(".") < 2) for name in hosts):
        raise ImproperlyConfigured(f"{PREFIX}ALLOWED_HOSTS must list host names, not a wildcard for all hosts.")
    if any("/" in name or ":" in name.rpartition("]")[2] for name in hosts):
        raise ImproperlyConfigured(f"{PREFIX}ALLOWED_HOSTS must list host names without https:// and port.")
    if any(not origin.startswith("https://") for origin in origins):
        raise ImproperlyConfigured(f"{PREFIX}ALLOWED_ORIGINS must list complete https:// origins.")


def require_safe_proxies(proxies: Sequence[str]) -> None:
    """Check the trusted proxies, which may set a request's client address."""
    if not proxies:
        raise ImproperlyConfigured(
            f"{PREFIX}TRUSTED_PROXIES must list the proxy that terminates HTTPS: the gateway itself serves plain HTTP."
        )
    if any(ipaddress.ip_network(proxy, strict=False).prefixlen == 0 for proxy in proxies):
        raise ImproperlyConfigured(f"{PREFIX}TRUSTED_PROXIES must not include every address.")


def require_sign_in(*, issuer: str, client_id: str, client_secret: str, has_roles: bool, has_passwords: bool) -> None:
    """Check that sign-in by OpenID Connect is configured completely, and that operators can sign in at all."""
    if issuer and not (client_id and client_secret):
        raise ImproperlyConfigured(
            f"{PREFIX}OIDC_ISSUER requires {PREFIX}OIDC_CLIENT_ID and {PREFIX}OIDC_CLIENT_SECRET."
        )
    if not issuer:
        values = {"OIDC_CLIENT_ID": client_id, "OIDC_CLIENT_SECRET": client_secret, "OIDC_ROLES": has_roles}
        for name in (name for name, value in values.items() if value):
            raise ImproperlyConfigured(f"{PREFIX}{name} requires {PREFIX}OIDC_ISSUER.")
        if not has_passwords:
            raise ImproperlyConfigured(f"{PREFIX}PASSWORD_SIGN_IN can be false only with {PREFIX}OIDC_ISSUER.")


def require_user_claim(claim: str, *, scopes: Sequence[str], issuer: str, has_roles: bool) -> None:
    """Check the claim by which users sign in to their own pages: without roles, they would become operators too."""
    name = f"{PREFIX}PORTAL_OIDC_CLAIM"
    if not claim:
        return
    if not re.fullmatch(r"[^\s,=]{1,200}", claim):
        raise ImproperlyConfigured(f"{name} must be the name of one claim, such as sub, not {claim!r}.")
    if not issuer:
        raise ImproperlyConfigured(f"{name} requires {PREFIX}OIDC_ISSUER.")
    if not has_roles:
        raise ImproperlyConfigured(f"{name} requires {PREFIX}OIDC_ROLES: without it, users could sign in as operators.")
    if claim == "email" and "email" not in scopes:
        raise ImproperlyConfigured(f"{name} is email, which requires email in {PREFIX}OIDC_SCOPES.")


def require_tls(name: str, url: str, private_hosts: Sequence[str]) -> None:
    """Check that what is sent to an http or redis address is encrypted, or that the operator allows its host."""
    parts = urlsplit(url)
    hostname = parts.hostname or ""
    if parts.scheme in {"http", "redis"} and not is_loopback(hostname) and hostname not in private_hosts:
        raise ImproperlyConfigured(
            f"{PREFIX}{name} must use {parts.scheme}s, or {PREFIX}ALLOWED_PRIVATE_HOSTS must list its host."
        )


def require_extra(extra: str, package: str, *, setting: str, value: str) -> None:
    """Check that the optional package that a setting needs is installed."""
    root = package.partition(".")[0]  # `find_spec` raises if the parent of a package is absent
    if value and (importlib.util.find_spec(root) is None or importlib.util.find_spec(package) is None):
        raise ImproperlyConfigured(f"{setting} needs the package {package}: install memory-gateway[{extra}].")


def require_one_storage(*, folder: str, url: str) -> None:
    if folder and url:
        raise ImproperlyConfigured(f"Set {PREFIX}STORAGE_DIR or {PREFIX}STORAGE_URL, not both.")


def own_temporary_folder() -> Path:
    """Return a folder for temporary files that belongs to this account. Other accounts cannot write to it."""
    folder = Path(tempfile.gettempdir()).resolve() / f"memory-gateway-{os.geteuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    status = folder.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid() or status.st_mode & 0o022:
        raise ImproperlyConfigured(f"Another account can write to {folder}. Remove it, or set TMPDIR.")
    return folder


def require_safe_database(name: str, database: Mapping[str, object], private_hosts: Sequence[str]) -> None:
    """Check that a database on another machine uses TLS: the default `sslmode` "prefer" falls back to plain text."""
    host, options = str(database.get("HOST") or ""), database.get("OPTIONS")
    is_local = not host or host.startswith("/") or is_loopback(host) or host in private_hosts
    mode = options.get("sslmode") if isinstance(options, Mapping) else None
    if not is_local and mode not in _SAFE_SSL_MODES:
        raise ImproperlyConfigured(
            f"{name} must end in ?sslmode=require (or verify-full), or {PREFIX}ALLOWED_PRIVATE_HOSTS must list "
            "its host."
        )


def require_shared_positions(*, has_replica: bool, redis_url: str) -> None:
    """Check that several processes know of each other's writes before they read a replica."""
    if has_replica and not redis_url:
        raise ImproperlyConfigured(
            f"{PREFIX}READ_DATABASE_URL needs {PREFIX}REDIS_URL with several processes: a user whose requests reach "
            "two of them could miss the own last write."
        )


def require_no_reload(reload: bool) -> None:
    if reload:
        raise ImproperlyConfigured(f"{PREFIX}RELOAD is for development. It must be false under the production profile.")


def require_folder(path: Path, name: str) -> None:
    """Check that a path is a folder, or can become one."""
    existing = next(place for place in (path, *path.parents) if place.exists())
    if not existing.is_dir():
        raise ImproperlyConfigured(f"{PREFIX}{name} must be a folder: {existing} is a file.")


def require_separate(*, database: Path, storage: Path) -> None:
    """Check that the storage folder holds nothing else: files without a database row are deleted from it."""
    if database.is_relative_to(storage):
        raise ImproperlyConfigured(
            f"{PREFIX}STORAGE_DIR must be a separate folder: the database {database} is inside {storage}."
        )


def require_no_overlap(roots: Sequence[Path], *, own: Sequence[Path]) -> None:
    """Check that folders which users may read by `file://` do not overlap with the gateway's own data."""
    for root in roots:
        if any(path.is_relative_to(root) or root.is_relative_to(path) for path in own):
            raise ImproperlyConfigured(
                f"{PREFIX}FILE_URI_ROOTS must not overlap with the gateway's own data: users could read {root}."
            )


def require_foreign(buckets: Sequence[str], *, own: str) -> None:
    """Check that the buckets that users may name by `s3://` are plain names, and not the one of the gateway's files."""
    for bucket in buckets:
        if not _BUCKET.fullmatch(bucket):
            raise ImproperlyConfigured(
                f"{PREFIX}EXTERNAL_BUCKETS must list names of buckets, without s3:// and path, not {bucket!r}."
            )
        if is_same_bucket(bucket, own_bucket(own)):
            raise ImproperlyConfigured(
                f"{PREFIX}EXTERNAL_BUCKETS must not contain the gateway's own bucket: users could read {bucket}."
            )


def require_private(path: Path) -> None:
    """Check that a file or folder is not accessible to all users of the machine."""
    if path.exists() and path.stat().st_mode & 0o007:
        mode = 700 if path.is_dir() else 600
        raise ImproperlyConfigured(f"{path} is accessible to all users of this machine. Run `chmod {mode}` on it.")


def _require_set(value: str, name: str) -> None:
    if not value:
        raise ImproperlyConfigured(f"{PREFIX}{name} must be set under the production profile.")


_APPS: Final = frozenset({
    "accounts", "memories", "operations", "profiles", "remote", "resources", "store", "webhooks",
    "engine", "lifecycle",  # app labels before the tables were rebuilt
})  # fmt: skip
_NEWEST_COLUMN: Final = ("store_memory", "batch_id")
"""The newest column of `0001_initial`. Before the first release, this migration changes without a new name."""


def require_known_migrations() -> None:
    """Check that this version has all migrations that were applied to the database.

    Raises: `ImproperlyConfigured` if one is unknown, or created different tables.
    """
    loader = MigrationLoader(connection)
    unknown = sorted(key for key in loader.applied_migrations if key[0] in _APPS and key not in loader.disk_migrations)
    difference = f"has the migration {'.'.join(unknown[0])}" if unknown else ""
    if not unknown and ("store", "0001_initial") in loader.applied_migrations:
        table, name = _NEWEST_COLUMN
        with connection.cursor() as cursor:
            columns = {column.name for column in connection.introspection.get_table_description(cursor, table)}
        difference = "" if name in columns else f"lacks the column {table}.{name}"
    if difference:
        raise ImproperlyConfigured(
            f"Another version of Memory Gateway created this database (it {difference}). Nothing was "
            f"changed. Run `{MANAGE} export_memory --all --with-keys` with that version, then "
            f"`{MANAGE} import_memory` into an empty database of this version."
        )
