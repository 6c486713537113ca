"""Settings from the environment: strict, typed, and each complaint one sentence.

Every variable starts with `MEMORY_GATEWAY_` and equals the Django setting of the same name; `DATABASE_URL` is the one
exception. A variable that nobody reads is a typing error and stops the start.
"""

from __future__ import annotations

import difflib
import ipaddress
import os
import secrets
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

import environ
from django.core.exceptions import ImproperlyConfigured

PREFIX = "MEMORY_GATEWAY_"
_TRUE = {"1", "true", "yes", "on"}
_FALSE = {"0", "false", "no", "off"}
_MIN_SECRET_CHARS = 50
_MIN_TOKEN_CHARS = 32


class Environment:
    """Reads variables by their name without prefix and remembers which exist.

    An empty value means "not set", as in `.env.example`. Errors: `ImproperlyConfigured` with one sentence that names
    the variable and the remedy.
    """

    def __init__(self, values: Mapping[str, str], base_dir: Path) -> None:
        self._values = values
        self._base_dir = base_dir
        self.names: set[str] = set()
        self.env_file = base_dir / ".env"

    @classmethod
    def load(cls, base_dir: Path) -> Environment:
        """The process environment over the `.env` file (`MEMORY_GATEWAY_ENV_FILE`, empty for none)."""
        values: dict[str, str] = {}
        env_file = os.environ.get(PREFIX + "ENV_FILE", str(base_dir / ".env"))
        if env_file and Path(env_file).is_file():
            reader = environ.Env()
            reader.ENVIRON = values
            reader.read_env(env_file)
        environment = cls({**values, **os.environ}, base_dir)
        environment.names.add(PREFIX + "ENV_FILE")
        environment.env_file = Path(env_file)
        return environment

    def text(self, name: str, default: str = "") -> str:
        self.names.add(PREFIX + name)
        return self._values.get(PREFIX + name, "").strip() or default

    def integer(self, name: str, default: int, *, minimum: int = 0, maximum: int | None = None) -> int:
        raw = self.text(name, str(default))
        try:
            value = int(raw)
        except ValueError:
            raise ImproperlyConfigured(f"{PREFIX}{name} must be a whole number, not {raw!r}.") from None
        if value < minimum or (maximum is not None and value > maximum):
            limits = f"at least {minimum}" if maximum is None else f"between {minimum} and {maximum}"
            raise ImproperlyConfigured(f"{PREFIX}{name} must be {limits}, not {value}.")
        return value

    def number(self, name: str, default: float, *, minimum: float = 0.0) -> float:
        raw = self.text(name, str(default))
        try:
            value = float(raw)
        except ValueError:
            raise ImproperlyConfigured(f"{PREFIX}{name} must be a number, not {raw!r}.") from None
        if not minimum <= value < float("inf"):
            raise ImproperlyConfigured(f"{PREFIX}{name} must be a number of at least {minimum}, not {raw}.")
        return value

    def boolean(self, name: str, default: bool) -> bool:
        raw = self.text(name, "true" if default else "false").lower()
        if raw in _TRUE:
            return True
        if raw in _FALSE:
            return False
        raise ImproperlyConfigured(f"{PREFIX}{name} must be true or false, not {raw!r}.")

    def choice(self, name: str, default: str, allowed: tuple[str, ...]) -> str:
        value = self.text(name, default)
        if value not in allowed:
            raise ImproperlyConfigured(f"{PREFIX}{name} must be one of {', '.join(allowed)}, not {value!r}.")
        return value

    def words(self, name: str, default: tuple[str, ...] = ()) -> list[str]:
        """A comma-separated list."""
        raw = self.text(name)
        return [word.strip() for word in raw.split(",") if word.strip()] if raw else list(default)

    def path(self, name: str, default: str) -> Path:
        """A path; a relative one is relative to the project, wherever the command was called from."""
        return (self._base_dir / Path(self.text(name, default)).expanduser()).resolve()

    def url(self, name: str) -> str:
        """An http(s) address without a trailing slash, or an empty string."""
        value = self.text(name).rstrip("/")
        parts = urlsplit(value)
        if value and (parts.scheme not in {"http", "https"} or not parts.hostname or parts.query or parts.fragment):
            raise ImproperlyConfigured(f"{PREFIX}{name} must be an http:// or https:// address, not {value!r}.")
        return value

    def networks(self, name: str) -> list[str]:
        """Comma-separated addresses or networks."""
        for word in self.words(name):
            try:
                ipaddress.ip_network(word, strict=False)
            except ValueError:
                raise ImproperlyConfigured(
                    f"{PREFIX}{name} must list addresses or networks such as 10.0.0.0/8, not {word!r}."
                ) from None
        return self.words(name)

    def database(self, sqlite_path: Path) -> dict[str, object]:
        """Django's database setting: `DATABASE_URL`, or the SQLite file."""
        raw = self._values.get("DATABASE_URL", "").strip() or f"sqlite:///{sqlite_path}"
        try:
            config: dict[str, object] = dict(environ.Env.db_url_config(raw))
        except (ValueError, KeyError, ImproperlyConfigured):
            raise ImproperlyConfigured("DATABASE_URL must look like postgres://user:password@host:5432/name.") from None
        engine = str(config.get("ENGINE", ""))
        if not engine.endswith((".sqlite3", ".postgresql")):
            raise ImproperlyConfigured("DATABASE_URL must name a sqlite:// or postgres:// database.")
        return config

    def refuse_unknown(self) -> None:
        """Stops the start at a `MEMORY_GATEWAY_` variable that no setting reads: almost always a typing error."""
        for name in sorted(self._values):
            if name.startswith(PREFIX) and name not in self.names:
                close = difflib.get_close_matches(name, self.names, n=1)
                hint = f"; did you mean {close[0]}?" if close else "."
                raise ImproperlyConfigured(f"{name} is not a setting of Memory Gateway{hint}")


def local_secret(path: Path) -> str:
    """The secret of the `local` profile: made once, kept in the data folder with mode 0600."""
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return path.read_text(encoding="ascii").strip()
    with os.fdopen(descriptor, "w", encoding="ascii") as file:
        file.write(secret := secrets.token_urlsafe(64))
    return secret


def require_secret(value: str, name: str, *, minimum: int = _MIN_SECRET_CHARS) -> None:
    """Refuses a missing, short or guessable secret."""
    if not value:
        raise ImproperlyConfigured(f"{PREFIX}{name} must be set under the production profile.")
    if len(value) < minimum:
        raise ImproperlyConfigured(f"{PREFIX}{name} must have at least {minimum} characters.")
    if len(set(value)) < 12 or any(word in value.lower() for word in ("insecure", "changeme", "change-me", "example")):
        raise ImproperlyConfigured(f"{PREFIX}{name} must be random, for example from `openssl rand -base64 48`.")


def is_loopback(host: str) -> bool:
    """Whether an address to listen on can be reached from this machine only."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def require_private_file(path: Path) -> None:
    """Refuses a file with secrets that everybody on the machine can read."""
    if path.is_file() and path.stat().st_mode & 0o007:
        raise ImproperlyConfigured(f"{path} is readable by everyone on this machine; run `chmod 600` on it.")


def require_safe_local(*, host: str, provisioning_token: str) -> None:
    """`local` lets anyone who can connect create users: so either loopback, or a token."""
    if provisioning_token:
        require_secret(provisioning_token, "PROVISIONING_TOKEN", minimum=_MIN_TOKEN_CHARS)
    elif not is_loopback(host):
        raise ImproperlyConfigured(
            f"{PREFIX}HOST {host} is reachable from other machines: set {PREFIX}PROVISIONING_TOKEN, "
            "or listen on 127.0.0.1."
        )


def require_safe_production(
    *,
    secret_key: str,
    hosts: list[str],
    origins: list[str],
    proxies: list[str],
    provisioning_token: str,
    metrics_token: str,
    backend_url: str,
    private_hosts: list[str],
) -> None:
    """Refuses to start with a setting that is unsafe where strangers can connect."""
    require_secret(secret_key, "SECRET_KEY")
    require_secret(provisioning_token, "PROVISIONING_TOKEN", minimum=_MIN_TOKEN_CHARS)
    if metrics_token:
        require_secret(metrics_token, "METRICS_TOKEN", minimum=_MIN_TOKEN_CHARS)
    if secret_key == provisioning_token:
        raise ImproperlyConfigured(f"{PREFIX}SECRET_KEY and {PREFIX}PROVISIONING_TOKEN must differ.")
    if not hosts:
        raise ImproperlyConfigured(f"{PREFIX}ALLOWED_HOSTS must name the hosts that this gateway answers for.")
    if any(name in {"*", "."} or (name.startswith(".") and name.count(".") < 2) for name in hosts):
        raise ImproperlyConfigured(f"{PREFIX}ALLOWED_HOSTS must name hosts, not a wildcard for all of them.")
    if any(not origin.startswith("https://") for origin in origins):
        raise ImproperlyConfigured(f"{PREFIX}ALLOWED_ORIGINS must hold https:// origins only.")
    if not proxies:
        raise ImproperlyConfigured(
            f"{PREFIX}TRUSTED_PROXIES must name the proxy in front that ends https: "
            "the gateway itself speaks plain http."
        )
    if any(ipaddress.ip_network(proxy, strict=False).prefixlen == 0 for proxy in proxies):
        raise ImproperlyConfigured(f"{PREFIX}TRUSTED_PROXIES must not trust every address.")
    _require_safe_backend(backend_url, private_hosts)


def _require_safe_backend(backend_url: str, private_hosts: list[str]) -> None:
    parts = urlsplit(backend_url)
    if parts.username or parts.password:
        raise ImproperlyConfigured(f"{PREFIX}BACKEND_BASE_URL must not hold a password.")
    hostname = parts.hostname or ""
    if parts.scheme == "http" and not is_loopback(hostname) and hostname not in private_hosts:
        raise ImproperlyConfigured(
            f"{PREFIX}BACKEND_BASE_URL must use https, or its host must stand in {PREFIX}ALLOWED_PRIVATE_HOSTS."
        )
