"""Settings from the environment, validated by type.

Every variable starts with `MEMORY_GATEWAY_` and equals the Django setting of the same name, except `DATABASE_URL`. An
unknown variable is a typing error and prevents the start.
"""

import codecs
import contextlib
import difflib
import io
import ipaddress
import os
import re
import secrets
import tempfile
import warnings
import zoneinfo
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, Self
from urllib.parse import SplitResult, parse_qsl, urlsplit

import environ
from django.core.exceptions import ImproperlyConfigured

from core.network.model_endpoint import ModelAddress
from documents import ocr
from memory_gateway import safety
from memory_gateway.safety import PREFIX
from memory_gateway.server.base_path import BASE_PATH
from store.vectors.local_model import WrongModelError, local_model

_MIME_TYPE = re.compile(r"[^\s/*]+/([^\s/*]+|\*)|\*/\*")
_HOST_NAME = re.compile(r"[^\s/:*@\[\]]+")
_ORIGIN = re.compile(r"https?://[^\s/?#@*:][^\s/?#@*]*")
_MODEL_KINDS = ("embedding", "llm", "vision", "transcription", "rerank")
_MODEL = re.compile(r"(?P<address>[^#]+)#(?P<model>[^#?]+)(?:\?(?P<options>[^#?]+))?")
_DIMENSIONS = re.compile(r"[1-9][0-9]{0,3}")
_MAX_NAME_CHARS = 200
_LOCAL = "local:"
_MAX_DIMENSIONS = 4096
_FORMER_MODEL = re.compile(rf"{PREFIX}({'|'.join(_MODEL_KINDS).upper()})_(BASE_URL|MODEL|DIMENSIONS)")
_TRUE = {"1", "true", "yes", "on"}
_FALSE = {"0", "false", "no", "off"}
# Settings of the command-line client, which may be set in the shell that starts the gateway.
_CLIENT_VARIABLES = {PREFIX + name for name in ("BASE_URL", "USER_ID", "USER_KEY")}
_IS_OF_AWS = re.compile(r"AWS_[A-Z0-9_]+").fullmatch
_HSTS = re.compile(
    r"max-age=(?P<seconds>[0-9]{1,10})(?P<subdomains>; ?includeSubDomains(?P<preload>; ?preload)?)?", re.IGNORECASE
)
_CONTACT = re.compile(r"(?:mailto:[^\s@,]+@|https://|tel:\+?)[^\s@,]+")
_ENV_LINE = re.compile(r"\s*(#.*)?|(export )?[A-Za-z_0-9]+=.*")
MAX_EXPIRY_DAYS = 36500


class Environment:
    """A reader of environment variables by name without prefix. It records which names are settings.

    An empty value means "not set", as in `.env.example`.

    Raises: `ImproperlyConfigured` with one sentence that names the variable and the remedy.
    """

    def __init__(self, values: Mapping[str, str], base_dir: Path) -> None:
        self._values = values
        self._base_dir = base_dir
        self.names: set[str] = set()
        self.env_file: Path | None = None

    @classmethod
    def load(cls, base_dir: Path) -> Self:
        """Read the process environment over the `.env` file (`MEMORY_GATEWAY_ENV_FILE`, empty for none).

        Relative paths are relative to `MEMORY_GATEWAY_HOME`, by default `base_dir`.
        """
        base_dir = Path(os.environ.get(PREFIX + "HOME") or base_dir).expanduser().absolute()
        named = os.environ.get(PREFIX + "ENV_FILE")
        env_file = base_dir / (named or ".env")
        if named and not env_file.is_file():
            raise ImproperlyConfigured(f"{PREFIX}ENV_FILE is {env_file}, which is not a file.")
        is_read = named != "" and env_file.is_file()
        values = _read_env_file(env_file) if is_read else {}
        for name in filter(_IS_OF_AWS, values):  # its SDK reads them from the process
            os.environ.setdefault(name, values[name])
        environment = cls({**values, **os.environ}, base_dir)
        environment.names.update({PREFIX + "ENV_FILE", PREFIX + "HOME", *_CLIENT_VARIABLES})
        environment.env_file = env_file if is_read else None
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

    def ocr(self, name: str) -> str:
        """Return what recognizes text in pictures: "rapidocr" (the default if installed), "tesseract" or "off"."""
        default = "rapidocr" if ocr.is_available("rapidocr") else "off"
        value = self.choice(name, default, ("rapidocr", "tesseract", "off"))
        if value != "off" and not ocr.is_available(value):
            missing = "the program tesseract and the packages" if value == "tesseract" else "the packages"
            raise ImproperlyConfigured(f"{PREFIX}{name}={value} needs {missing} of the extra: memory-gateway[ocr].")
        return value

    def ocr_models(self, name: str, engine: str) -> tuple[str, ...]:
        """Return the models of scripts, which the engine must have."""
        try:
            return ocr.models_of(engine, self.text(name))
        except ValueError as error:
            raise ImproperlyConfigured(f"{PREFIX}{name}: {error}") from error

    def time_zone(self, name: str, default: str) -> str:
        """Return the name of a time zone that this machine knows."""
        value = self.text(name, default)
        if value not in zoneinfo.available_timezones():
            example = "a name such as UTC or Europe/Berlin"
            raise ImproperlyConfigured(f"{PREFIX}{name} must be {example}, not {value!r}.")
        return value

    def words(self, name: str, default: tuple[str, ...] = ()) -> list[str]:
        """Return a comma-separated list."""
        raw = self.text(name)
        return [word.strip() for word in raw.split(",") if word.strip()] if raw else list(default)

    def choices(self, name: str, allowed: tuple[str, ...]) -> frozenset[str]:
        """Return a comma-separated list of some of the allowed words."""
        found = self.words(name)
        if unknown := [word for word in found if word not in allowed]:
            raise ImproperlyConfigured(f"{PREFIX}{name} may list {', '.join(allowed)}, not {', '.join(unknown)}.")
        return frozenset(found)

    def pairs(self, name: str) -> dict[str, str]:
        """Return comma-separated pairs `key=value` in their order. A key may contain `=`."""
        found = {}
        for word in self.words(name):
            key, _, value = (part.strip() for part in word.rpartition("="))
            if not key or not value:
                raise ImproperlyConfigured(f"{PREFIX}{name} must list pairs such as staff=Viewer, not {word!r}.")
            found[key] = value
        return found

    def expiry(self, name: str, categories: Collection[str]) -> dict[str, int]:
        """Return comma-separated pairs of a category, or `tag:` and a tag, and the days until its memories expire."""
        found = {}
        for written, days in self.pairs(name).items():
            key = f"tag:{written.removeprefix('tag:').strip()}" if written.startswith("tag:") else written
            is_known = key in categories or (key.startswith("tag:") and len(key) > len("tag:"))
            if not is_known or not days.isascii() or not days.isdigit() or not 0 < int(days) <= MAX_EXPIRY_DAYS:
                raise ImproperlyConfigured(
                    f"{PREFIX}{name} must list a category or tag:name with 1 to {MAX_EXPIRY_DAYS} days, such as "
                    f"full_context_user=90,tag:draft=7, not {key}={days}."
                )
            found[key] = int(days)
        return found

    def mime_types(self, name: str, default: tuple[str, ...]) -> list[str]:
        """Return comma-separated MIME types, `image/*` for a family."""
        for word in self.words(name):
            if not _MIME_TYPE.fullmatch(word):
                raise ImproperlyConfigured(
                    f"{PREFIX}{name} must list types such as application/pdf or image/*, not {word!r}."
                )
        return self.words(name, default)

    def path(self, name: str, default: str) -> Path:
        """Return a path; a relative one is relative to the home folder, not to the working directory."""
        return (self._base_dir / Path(self.text(name, default)).expanduser()).resolve()

    def paths(self, name: str) -> list[Path]:
        """Return comma-separated paths, each read like `path`."""
        return [(self._base_dir / Path(word).expanduser()).resolve() for word in self.words(name)]

    def url(self, name: str, *, schemes: tuple[str, ...] = ("http", "https")) -> str:
        """Return an address with one of the schemes and without a trailing slash, or an empty string."""
        value = self.text(name).rstrip("/")
        return _checked_url(name, value, schemes) if value else ""

    def models(self, name: str) -> dict[str, ModelAddress]:
        """Return the models by kind, from pairs `kind=address#model` or `embedding=local:/folder`.

        The key of each is in a variable of its kind.
        """
        keys = {kind: self.text(f"{kind.upper()}_API_KEY") for kind in _MODEL_KINDS}
        models: dict[str, ModelAddress] = {}
        for pair in self.text(name).replace(",", " ").split():
            kind, _, value = pair.partition("=")
            if kind not in keys:
                close = difflib.get_close_matches(kind.lower(), keys, n=1)
                hint = f"did you mean {close[0]}?" if close else f"the kinds are {', '.join(keys)}."
                raise ImproperlyConfigured(f"{PREFIX}{name} names no kind of model before '='; {hint}")
            if kind in models:
                raise ImproperlyConfigured(f"{PREFIX}{name} must name one model for {kind}, not two.")
            is_local = kind == "embedding" and value.startswith(_LOCAL)
            models[kind] = self._local_model(name, value) if is_local else _model(name, kind, value, keys[kind])
        return models

    def _local_model(self, name: str, value: str) -> ModelAddress:
        folder = (self._base_dir / Path(value.removeprefix(_LOCAL)).expanduser()).resolve()
        try:
            local_model(str(folder))
        except WrongModelError as error:
            raise ImproperlyConfigured(f"{PREFIX}{name} (embedding): {error}") from None
        return ModelAddress("", folder.name, folder=str(folder))

    def origins(self, name: str) -> list[str]:
        """Return comma-separated origins, each a scheme with host and port."""
        for word in self.words(name):
            shown = word.rpartition("@")[2]
            _split_url(name, word, shown)  # checks its host and port
            if not _ORIGIN.fullmatch(word):
                raise ImproperlyConfigured(
                    f"{PREFIX}{name} must list complete http:// or https:// origins without a path, not {shown!r}."
                )
        return self.words(name)

    def hosts(self, name: str) -> list[str]:
        """Return comma-separated host names and IP addresses."""
        for word in self.words(name):
            if not _HOST_NAME.fullmatch(word) and not _is_ip_address(word):
                raise ImproperlyConfigured(
                    f"{PREFIX}{name} must list host names or addresses without https:// and port, not {word!r}."
                )
        return self.words(name)

    def networks(self, name: str) -> list[str]:
        """Return comma-separated IP addresses or networks."""
        for word in self.words(name):
            try:
                ipaddress.ip_network(word, strict=False)
            except ValueError:
                raise ImproperlyConfigured(
                    f"{PREFIX}{name} must list addresses or networks such as 10.0.0.0/8, not {word!r}."
                ) from None
        return self.words(name)

    def base_path(self, name: str) -> str:
        """Return a path such as `/memory`, empty for the root."""
        path = self.text(name).rstrip("/")
        if path and not BASE_PATH.fullmatch(path):
            raise ImproperlyConfigured(f"{PREFIX}{name} must be a path such as /memory, not {path!r}.")
        return path

    def database(self, sqlite_path: Path) -> dict[str, object]:
        """Return Django's database setting: `DATABASE_URL`, or the SQLite file."""
        raw = self._values.get("DATABASE_URL", "").strip()
        if not raw:
            return _sqlite(sqlite_path)
        config = _database(raw)
        if config is None:
            raise ImproperlyConfigured(
                "DATABASE_URL must look like postgres://user:password@host:5432/name or sqlite:////folder/name."
            )
        engine = str(config.get("ENGINE", ""))
        if not engine.endswith((".sqlite3", ".postgresql")):
            raise ImproperlyConfigured("DATABASE_URL must start with sqlite:// or postgres://.")
        return _sqlite(self._base_dir / str(config["NAME"])) if engine.endswith(".sqlite3") else config

    def replica(self, name: str, primary: Mapping[str, object]) -> dict[str, object] | None:
        """Return Django's setting of a replica of the database, None without one."""
        raw = self.text(name)
        if not raw:
            return None
        config = _database(raw)
        if config is None or not str(config["ENGINE"]).endswith(".postgresql"):
            raise ImproperlyConfigured(f"{PREFIX}{name} must look like postgres://user:password@host:5432/name.")
        if config["ENGINE"] != primary["ENGINE"]:
            raise ImproperlyConfigured(f"{PREFIX}{name} needs a primary: set DATABASE_URL to postgres://….")
        return config

    def hsts(self, name: str, default: str) -> tuple[int, bool, bool]:
        """Return seconds, subdomains and preload of a value of the header `Strict-Transport-Security`."""
        raw = self.text(name, default)
        found = _HSTS.fullmatch(raw)
        if not found:
            raise ImproperlyConfigured(
                f"{PREFIX}{name} must be max-age=SECONDS, optionally followed by ; includeSubDomains and ; preload, "
                f"not {raw!r}."
            )
        return int(found["seconds"]), bool(found["subdomains"]), bool(found["preload"])

    def contacts(self, name: str) -> list[str]:
        """Return the addresses of a list: mailto:, https: or tel:."""
        found = self.words(name)
        for address in found:
            if not _CONTACT.fullmatch(address):
                raise ImproperlyConfigured(
                    f"{PREFIX}{name} must list addresses such as mailto:security@example.org or "
                    f"https://example.org/security, not {address!r}."
                )
        return found

    def refuse_unknown(self) -> None:
        """Check that every `MEMORY_GATEWAY_` variable is a setting: an unknown one is almost always a typing error.

        Raises: `ImproperlyConfigured`.
        """
        for name in sorted(self._values):
            if name.startswith(PREFIX) and name not in self.names:
                if former := _FORMER_MODEL.fullmatch(name):
                    instead = f"set {PREFIX}MODELS, such as {former[1].lower()}=https://host/v1#model."
                    raise ImproperlyConfigured(f"{name} is not a setting of Memory Gateway; {instead}")
                close = difflib.get_close_matches(name, self.names, n=1)
                hint = f"; did you mean {close[0]}?" if close else "."
                raise ImproperlyConfigured(f"{name} is not a setting of Memory Gateway{hint}")


def _model(name: str, kind: str, value: str, api_key: str) -> ModelAddress:
    found = _MODEL.fullmatch(value)
    options = _embedding_options(found["options"] or "") if found and kind == "embedding" else {}
    if not found or options is None or (found["options"] and kind != "embedding"):
        example = f"{kind}=https://host/v1#model"
        forms = f"{example} or {example}?dimensions=1024" if kind == "embedding" else example
        raise ImproperlyConfigured(f"{PREFIX}{name} must name the model of {kind} as in {forms}.")
    address = _checked_url(f"{name} ({kind})", found["address"].rstrip("/"), ("http", "https"), whole=value)
    prefixes = {option: options[option] for option in ("query_prefix", "text_prefix") if option in options}
    model = ModelAddress(address, found["model"], api_key, int(options.get("dimensions", 0)), **prefixes)
    if len(model.identity) > _MAX_NAME_CHARS:
        raise ImproperlyConfigured(
            f"{PREFIX}{name} must name the model of {kind} and its prefixes in at most {_MAX_NAME_CHARS} characters."
        )
    return model


def _embedding_options(text: str) -> dict[str, str] | None:
    """Return the options after the name of an embedding model, None for wrong ones."""
    try:
        options = dict(parse_qsl(text, keep_blank_values=True, strict_parsing=True)) if text else {}
    except ValueError:
        return None
    dimensions = options.get("dimensions", "1")
    is_known = options.keys() <= {"dimensions", "query_prefix", "text_prefix"}
    is_number = _DIMENSIONS.fullmatch(dimensions) is not None
    return options if is_known and is_number and int(dimensions) <= _MAX_DIMENSIONS else None


def _checked_url(name: str, url: str, schemes: tuple[str, ...], *, whole: str = "") -> str:
    """Return the address. `whole` is the text that contained it. No message shows a password."""
    shown = (whole or url).rpartition("@")[2]
    parts = _split_url(name, url, shown)
    if parts.scheme not in schemes or not parts.hostname or parts.query or parts.fragment:
        allowed = " or ".join(f"{scheme}://" for scheme in schemes)
        raise ImproperlyConfigured(f"{PREFIX}{name} must begin with {allowed} and name a host, not be {shown!r}.")
    if parts.username is not None and "redis" not in schemes:  # Redis has no other place for a password
        raise ImproperlyConfigured(f"{PREFIX}{name} must not contain a user name or password.")
    return url


def _split_url(name: str, url: str, shown: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        parts.port  # noqa: B018  raises for a port that is none
    except ValueError:
        raise ImproperlyConfigured(f"{PREFIX}{name} must name a valid host and port, not {shown!r}.") from None
    return parts


def _is_ip_address(word: str) -> bool:
    try:
        ipaddress.ip_address(word)
    except ValueError:
        return False
    return True


def _read_env_file(path: Path) -> dict[str, str]:
    """Return the variables of a `.env` file without changing `os.environ`, which child processes inherit."""
    try:
        content = path.read_bytes()
        if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE, codecs.BOM_UTF32_BE)):
            raise ImproperlyConfigured(f"{path} is UTF-16 or UTF-32 text. Save it as UTF-8.")
        text = content.decode("utf-8-sig")  # some editors write a byte-order mark
        lines = text.splitlines()
    except (OSError, UnicodeDecodeError):
        raise ImproperlyConfigured(f"{path} cannot be read as UTF-8 text.") from None
    for number, line in enumerate(lines, start=1):
        if not _ENV_LINE.fullmatch(line):
            raise ImproperlyConfigured(
                f"Line {number} of {path} must have the form NAME=value, without spaces around '='."
            )
    values: dict[str, str] = {}
    reader: Any = type("EnvFile", (environ.Env,), {"ENVIRON": values})
    reader.read_env(io.StringIO(text))
    return values


def _database(url: str) -> dict[str, object] | None:
    """Return Django's setting of a database by its address, None for one that cannot be read."""
    try:
        with warnings.catch_warnings(action="error", category=UserWarning):
            return dict(environ.Env.db_url_config(url))
    except (ValueError, KeyError, ImproperlyConfigured, UserWarning):
        return None


def _sqlite(path: Path) -> dict[str, object]:
    if path.name == ":memory:":
        raise ImproperlyConfigured("DATABASE_URL must name a file. An in-memory database is lost at exit.")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ImproperlyConfigured(f"The folder {path.parent} cannot be created: {error.strerror}.") from None
    return {"ENGINE": "django.db.backends.sqlite3", "NAME": str(path)}


def local_secret(path: Path) -> str:
    """Return the secret of the `local` profile, created once in the data folder with mode 0600.

    The file appears atomically, so that two concurrent first starts use the same secret.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists():
        descriptor, draft = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")  # mkstemp: mode 0600
        try:
            with os.fdopen(descriptor, "w", encoding="ascii") as file:
                file.write(secrets.token_urlsafe(64))
            with contextlib.suppress(FileExistsError):
                os.link(draft, path)
        finally:
            Path(draft).unlink()
    safety.require_private(path)
    secret = path.read_text(encoding="ascii").strip()
    if not secret:
        raise ImproperlyConfigured(f"{path} is empty. Restore its content, or set {PREFIX}SECRET_KEY.")
    return secret


def file_storage(url: str) -> dict[str, Any]:
    """Return the storage of files for Django's `STORAGES`: the bucket of `s3://bucket/prefix`, or the local folder."""
    if not url:
        return {"BACKEND": "core.persistence.files.LocalFiles"}
    parts = urlsplit(url)
    options = {"bucket_name": parts.netloc, "location": parts.path.strip("/")}
    return {"BACKEND": "core.persistence.object_store.ObjectFiles", "OPTIONS": options}
