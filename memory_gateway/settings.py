"""Django settings. Each `MEMORY_GATEWAY_X` below is the environment variable of the same name."""

import os
import sys
from pathlib import Path
from types import ModuleType
from typing import cast

from csp.constants import NONE, SELF

from core import redaction
from core.persistence import database_errors
from memory_gateway import environment, safety
from store.categories import CATEGORIES

BASE_DIR = Path(__file__).resolve().parent.parent
env = environment.Environment.load(BASE_DIR)

# --- wire contract ---------------------------------------------------------------------------------------------------

MEMORY_GATEWAY_BACKEND_BASE_URL = env.url("BACKEND_BASE_URL")
MEMORY_GATEWAY_DB_PATH = env.path("DB_PATH", "./data/memory_gateway.sqlite3")
MEMORY_GATEWAY_STORAGE_URL = env.url("STORAGE_URL", schemes=("s3",))
safety.require_one_storage(folder=env.text("STORAGE_DIR"), url=MEMORY_GATEWAY_STORAGE_URL)
MEMORY_GATEWAY_STORAGE_DIR = (
    # With a bucket it holds temporary files only.
    safety.own_temporary_folder() if MEMORY_GATEWAY_STORAGE_URL else env.path("STORAGE_DIR", "./data/storage")
)
MEMORY_GATEWAY_RESOURCE_SEARCH_BATCH_SIZE = env.integer("RESOURCE_SEARCH_BATCH_SIZE", 50, minimum=1, maximum=1000)
MEMORY_GATEWAY_MAX_UPLOAD_BYTES = env.integer("MAX_UPLOAD_BYTES", 25 * 2**20, minimum=1)
MEMORY_GATEWAY_MAX_TEXT_BYTES = env.integer("MAX_TEXT_BYTES", 5_000_000, minimum=1_000, maximum=100_000_000)
MEMORY_GATEWAY_ALLOWED_MIME_TYPES = env.mime_types(
    "ALLOWED_MIME_TYPES",
    (
        "image/*",
        "audio/*",
        "text/*",
        "application/pdf",
        "application/json",
        "application/xml",
        "application/rtf",
        "application/epub+zip",
        "application/msword",
        "application/vnd.ms-excel",
        "application/vnd.ms-powerpoint",
        "application/vnd.ms-outlook",
        "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
        "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
        "application/vnd.openxmlformats-officedocument.presentationml.presentation",
        "application/vnd.oasis.opendocument.text",
        "application/vnd.oasis.opendocument.spreadsheet",
        "application/vnd.oasis.opendocument.presentation",
        "message/rfc822",
        "application/mbox",
    ),
)
MEMORY_GATEWAY_BACKEND_INGEST_ATTEMPTS = env.integer("BACKEND_INGEST_ATTEMPTS", 3, minimum=1, maximum=100)
MEMORY_GATEWAY_BACKEND_RETRY_DELAY_SECONDS = env.number("BACKEND_RETRY_DELAY_SECONDS", 0.25)
MEMORY_GATEWAY_BACKEND_TIMEOUT_SECONDS = env.number("BACKEND_TIMEOUT_SECONDS", 120.0, minimum=0.1)
MEMORY_GATEWAY_BACKEND_SEARCH_SECONDS = env.number("BACKEND_SEARCH_SECONDS", 3.0, minimum=0.1)
MEMORY_GATEWAY_EVEROS_DELETE = env.boolean("EVEROS_DELETE", False)
MEMORY_GATEWAY_HOST = env.text("HOST", "127.0.0.1")
MEMORY_GATEWAY_PORT = env.integer("PORT", 8010, maximum=65535)
MEMORY_GATEWAY_RELOAD = env.boolean("RELOAD", False)

# --- gateway ---------------------------------------------------------------------------------------------------------

MEMORY_GATEWAY_PROFILE = env.choice("PROFILE", "local", ("local", "production"))
MEMORY_GATEWAY_SECRET_KEY = env.text("SECRET_KEY")
MEMORY_GATEWAY_SECRET_KEY_FALLBACKS = env.words("SECRET_KEY_FALLBACKS")
MEMORY_GATEWAY_PROVISIONING_TOKEN = env.text("PROVISIONING_TOKEN")
MEMORY_GATEWAY_RPC_TOKEN = env.text("RPC_TOKEN")
MEMORY_GATEWAY_OAUTH = env.boolean("OAUTH", True)
MEMORY_GATEWAY_OIDC_ISSUER = env.url("OIDC_ISSUER")
MEMORY_GATEWAY_OIDC_CLIENT_ID = env.text("OIDC_CLIENT_ID")
MEMORY_GATEWAY_OIDC_CLIENT_SECRET = env.text("OIDC_CLIENT_SECRET")
MEMORY_GATEWAY_OIDC_SCOPES = env.words("OIDC_SCOPES", ("profile",))
MEMORY_GATEWAY_OIDC_GROUPS_CLAIM = env.text("OIDC_GROUPS_CLAIM", "groups")
MEMORY_GATEWAY_OIDC_ROLES = env.pairs("OIDC_ROLES")
MEMORY_GATEWAY_PORTAL_OIDC_CLAIM = env.text("PORTAL_OIDC_CLAIM")
MEMORY_GATEWAY_PASSWORD_SIGN_IN = env.boolean("PASSWORD_SIGN_IN", True)
MEMORY_GATEWAY_SESSION_MAX_HOURS = env.integer("SESSION_MAX_HOURS", 12, minimum=1, maximum=8760)
MEMORY_GATEWAY_FULL_CONTEXT_MEMORY = env.boolean("FULL_CONTEXT_MEMORY", True)
MEMORY_GATEWAY_SELF_IMPROVING_MEMORY = env.boolean("SELF_IMPROVING_MEMORY", True)
MEMORY_GATEWAY_ALLOWED_HOSTS = env.words("ALLOWED_HOSTS")
MEMORY_GATEWAY_ALLOWED_ORIGINS = env.origins("ALLOWED_ORIGINS")
MEMORY_GATEWAY_PORTAL_ORIGINS = env.origins("PORTAL_ORIGINS")
MEMORY_GATEWAY_HSTS = env.hsts("HSTS", "max-age=31536000")
MEMORY_GATEWAY_SECURITY_CONTACT = env.contacts("SECURITY_CONTACT")
MEMORY_GATEWAY_TRUSTED_PROXIES = env.networks("TRUSTED_PROXIES")
MEMORY_GATEWAY_BASE_PATH = env.base_path("BASE_PATH")
MEMORY_GATEWAY_ALLOWED_PRIVATE_HOSTS = env.hosts("ALLOWED_PRIVATE_HOSTS")
MEMORY_GATEWAY_FILE_URI_ROOTS = env.paths("FILE_URI_ROOTS")
MEMORY_GATEWAY_EXTERNAL_BUCKETS = env.words("EXTERNAL_BUCKETS")
MEMORY_GATEWAY_THREADS = env.integer("THREADS", 40, minimum=1, maximum=1000)
MEMORY_GATEWAY_RATE_LIMIT_PER_MINUTE = env.integer("RATE_LIMIT_PER_MINUTE", 60_000)
MEMORY_GATEWAY_REDIS_URL = env.url("REDIS_URL", schemes=("redis", "rediss"))
MEMORY_GATEWAY_QUOTA_FILES = env.integer("QUOTA_FILES", 0)
MEMORY_GATEWAY_QUOTA_BYTES = env.integer("QUOTA_BYTES", 0)
MEMORY_GATEWAY_INCOGNITO_SECONDS = env.integer("INCOGNITO_SECONDS", 7200, minimum=60, maximum=86400)
MEMORY_GATEWAY_TRASH_DAYS = env.integer("TRASH_DAYS", 30, maximum=36500)
MEMORY_GATEWAY_TIME_ZONE = env.time_zone("TIME_ZONE", "UTC")
MEMORY_GATEWAY_MIN_FREE_DISK_BYTES = env.integer("MIN_FREE_DISK_BYTES", 256 * 2**20)
MEMORY_GATEWAY_MODELS = env.models("MODELS")
MEMORY_GATEWAY_OCR = env.ocr("OCR")
MEMORY_GATEWAY_OCR_MODELS = env.ocr_models("OCR_MODELS", MEMORY_GATEWAY_OCR)
MEMORY_GATEWAY_EXPIRY = env.expiry("EXPIRY", CATEGORIES)
MEMORY_GATEWAY_REDACT = env.choices("REDACT", redaction.KINDS)
MEMORY_GATEWAY_METRICS_TOKEN = env.text("METRICS_TOKEN")
MEMORY_GATEWAY_AUDIT_DAYS = env.integer("AUDIT_DAYS", 400, maximum=36500)
MEMORY_GATEWAY_ALERT_URL = env.text("ALERT_URL")
MEMORY_GATEWAY_SEARCH_LOG_DAYS = env.integer("SEARCH_LOG_DAYS", 30, maximum=36500)
MEMORY_GATEWAY_LOG_QUERIES = env.boolean("LOG_QUERIES", False)
MEMORY_GATEWAY_LOG_RESULTS = env.boolean("LOG_RESULTS", True)
MEMORY_GATEWAY_LOG_BODIES = env.boolean("LOG_BODIES", MEMORY_GATEWAY_PROFILE == "local")

IS_PRODUCTION = MEMORY_GATEWAY_PROFILE == "production"
env.names.update({"MEMORY_GATEWAY_NO_WORKER", "MEMORY_GATEWAY_WORKER"})  # set by `serve` for its processes
_database = env.database(MEMORY_GATEWAY_DB_PATH)
_replica = env.replica("READ_DATABASE_URL", _database)
env.refuse_unknown()
_is_sqlite = str(_database["ENGINE"]).endswith("sqlite3")
_database_file = Path(str(_database["NAME"])) if _is_sqlite else MEMORY_GATEWAY_DB_PATH
os.umask(0o077)  # database, journals and stored files are private to the gateway's user
safety.require_folder(MEMORY_GATEWAY_STORAGE_DIR, "STORAGE_DIR")
safety.require_separate(database=_database_file, storage=MEMORY_GATEWAY_STORAGE_DIR)
_local_secret = MEMORY_GATEWAY_DB_PATH.parent / "secret_key"
safety.require_no_overlap(
    MEMORY_GATEWAY_FILE_URI_ROOTS,
    own=[path for path in (MEMORY_GATEWAY_STORAGE_DIR, _database_file, _local_secret, env.env_file) if path],
)
safety.require_foreign(MEMORY_GATEWAY_EXTERNAL_BUCKETS, own=MEMORY_GATEWAY_STORAGE_URL)
safety.require_secrets(
    is_production=IS_PRODUCTION,
    secret_key=MEMORY_GATEWAY_SECRET_KEY,
    fallbacks=MEMORY_GATEWAY_SECRET_KEY_FALLBACKS,
    provisioning_token=MEMORY_GATEWAY_PROVISIONING_TOKEN,
)
_other_secrets = (MEMORY_GATEWAY_SECRET_KEY, MEMORY_GATEWAY_PROVISIONING_TOKEN)
safety.require_safe_token(
    MEMORY_GATEWAY_RPC_TOKEN,
    "RPC_TOKEN",
    others=_other_secrets,
    # On loopback under `local` it may be the token that OpenClaw already has.
    may_be_simple=not IS_PRODUCTION and not MEMORY_GATEWAY_PROVISIONING_TOKEN,
)
safety.require_safe_token(MEMORY_GATEWAY_METRICS_TOKEN, "METRICS_TOKEN", others=_other_secrets)
safety.require_sign_in(
    issuer=MEMORY_GATEWAY_OIDC_ISSUER,
    client_id=MEMORY_GATEWAY_OIDC_CLIENT_ID,
    client_secret=MEMORY_GATEWAY_OIDC_CLIENT_SECRET,
    has_roles=bool(MEMORY_GATEWAY_OIDC_ROLES),
    has_passwords=MEMORY_GATEWAY_PASSWORD_SIGN_IN,
)
safety.require_user_claim(
    MEMORY_GATEWAY_PORTAL_OIDC_CLAIM,
    scopes=MEMORY_GATEWAY_OIDC_SCOPES,
    issuer=MEMORY_GATEWAY_OIDC_ISSUER,
    has_roles=bool(MEMORY_GATEWAY_OIDC_ROLES),
)
safety.require_extra("redis", "limits", setting="MEMORY_GATEWAY_REDIS_URL", value=MEMORY_GATEWAY_REDIS_URL)
safety.require_extra("s3", "storages", setting="MEMORY_GATEWAY_STORAGE_URL", value=MEMORY_GATEWAY_STORAGE_URL)
safety.require_extra("s3", "boto3", setting="MEMORY_GATEWAY_STORAGE_URL", value=MEMORY_GATEWAY_STORAGE_URL)
_external_buckets = ",".join(MEMORY_GATEWAY_EXTERNAL_BUCKETS)
safety.require_extra("s3", "storages", setting="MEMORY_GATEWAY_EXTERNAL_BUCKETS", value=_external_buckets)
safety.require_extra("s3", "boto3", setting="MEMORY_GATEWAY_EXTERNAL_BUCKETS", value=_external_buckets)
# Its SDK reads this variable and the other standard ones itself.
OTEL_EXPORTER_OTLP_ENDPOINT = os.environ.get("OTEL_EXPORTER_OTLP_ENDPOINT", "")
safety.require_extra(
    "otel", "opentelemetry.sdk", setting="OTEL_EXPORTER_OTLP_ENDPOINT", value=OTEL_EXPORTER_OTLP_ENDPOINT
)
if IS_PRODUCTION:
    safety.require_tls("OIDC_ISSUER", MEMORY_GATEWAY_OIDC_ISSUER, MEMORY_GATEWAY_ALLOWED_PRIVATE_HOSTS)
    safety.require_tls("REDIS_URL", MEMORY_GATEWAY_REDIS_URL, MEMORY_GATEWAY_ALLOWED_PRIVATE_HOSTS)
    safety.require_safe_names(hosts=MEMORY_GATEWAY_ALLOWED_HOSTS, origins=MEMORY_GATEWAY_ALLOWED_ORIGINS)
    safety.require_safe_proxies(MEMORY_GATEWAY_TRUSTED_PROXIES)
    safety.require_tls("BACKEND_BASE_URL", MEMORY_GATEWAY_BACKEND_BASE_URL, MEMORY_GATEWAY_ALLOWED_PRIVATE_HOSTS)
    for _kind, _endpoint in MEMORY_GATEWAY_MODELS.items():
        if not _endpoint.folder:
            safety.require_tls(f"MODELS ({_kind})", _endpoint.base_url, MEMORY_GATEWAY_ALLOWED_PRIVATE_HOSTS)
    safety.require_safe_database("DATABASE_URL", _database, MEMORY_GATEWAY_ALLOWED_PRIVATE_HOSTS)
    if _replica:
        safety.require_safe_database("MEMORY_GATEWAY_READ_DATABASE_URL", _replica, MEMORY_GATEWAY_ALLOWED_PRIVATE_HOSTS)
    safety.require_no_reload(MEMORY_GATEWAY_RELOAD)
    for _path in filter(None, (env.env_file, _database_file, MEMORY_GATEWAY_STORAGE_DIR)):
        safety.require_private(_path)
else:
    safety.require_safe_local(
        host=MEMORY_GATEWAY_HOST,
        hosts=MEMORY_GATEWAY_ALLOWED_HOSTS,
        provisioning_token=MEMORY_GATEWAY_PROVISIONING_TOKEN,
    )

# --- Django ----------------------------------------------------------------------------------------------------------

SECRET_KEY = MEMORY_GATEWAY_SECRET_KEY or environment.local_secret(_local_secret)
SECRET_KEY_FALLBACKS = MEMORY_GATEWAY_SECRET_KEY_FALLBACKS
# Strict host names prevent web pages from controlling a gateway on loopback by DNS rebinding.
ALLOWED_HOSTS = MEMORY_GATEWAY_ALLOWED_HOSTS or ["127.0.0.1", "localhost", "[::1]", MEMORY_GATEWAY_HOST]
CSRF_TRUSTED_ORIGINS = MEMORY_GATEWAY_ALLOWED_ORIGINS

INSTALLED_APPS = [
    "accounts",
    "store",
    "remote",
    "engines",
    "resources",
    "memories",
    "profiles",
    "webhooks",
    "operations",
    "agents",
    "console",
    "portal",
    "memory_gateway",
    "rest_framework",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "csp",
    "django_tasks",
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
]
MIDDLEWARE = [
    "memory_gateway.middleware.RequestLog",
    "memory_gateway.middleware.CompressionMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "memory_gateway.middleware.PolicyMiddleware",
    "memory_gateway.middleware.MethodMiddleware",
    "memory_gateway.middleware.PreconditionMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "memory_gateway.middleware.SessionMiddleware",
    "memory_gateway.middleware.LocaleMiddleware",
    "memory_gateway.middleware.TimeZoneMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "memory_gateway.middleware.AuthenticationMiddleware",
    "memory_gateway.middleware.SessionEndMiddleware",
    "memory_gateway.middleware.ExpiryMiddleware",
    "memory_gateway.middleware.TenantMiddleware",
    "memory_gateway.middleware.MessageMiddleware",
    "memory_gateway.middleware.ReplicaMiddleware",
]
ROOT_URLCONF = "memory_gateway.urls"
WSGI_APPLICATION = "memory_gateway.server.wsgi.application"
APPEND_SLASH = False
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ]
        },
    }
]

if _is_sqlite:
    # Immediate transactions and WAL: with Django's defaults concurrent writers fail with "database is locked".
    # Temporary data is kept in memory: an insert whose triggers change many pages would create a rollback file
    # (whole-table statements use `temporary_data_on_disk` of `core.persistence.sql`). Reads use mmap, up to SQLite's
    # limit (2 GB), instead of a system call per page. After a checkpoint the write-ahead log shrinks to 64 MiB.
    _database["OPTIONS"] = {
        "factory": database_errors.Connection,
        "transaction_mode": "IMMEDIATE",
        "timeout": 20,
        "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA foreign_keys=ON; "
        "PRAGMA temp_store=MEMORY; PRAGMA mmap_size=2147483647; PRAGMA journal_size_limit=67108864;",
    }
    # Django REST framework would load psycopg, 10 MB, for serializers of PostgreSQL's fields, which are not used.
    sys.modules.setdefault("django.contrib.postgres.fields", cast(ModuleType, None))
STORAGES = {
    "default": environment.file_storage(MEMORY_GATEWAY_STORAGE_URL),
    "staticfiles": {"BACKEND": "memory_gateway.static_files.StaticFilesStorage"},
}
# What one process remembers for some minutes, never shared: a bounded number of short values.
# Any backend of Django's Tasks interface may run the tasks that requests enqueue.
TASKS = {"default": {"BACKEND": "core.background.thread_backend.ThreadBackend"}}
CACHES = {
    "default": {
        "BACKEND": "django.core.cache.backends.locmem.LocMemCache",
        "TIMEOUT": 600,
        "OPTIONS": {"MAX_ENTRIES": 20_000},
    }
}
DATABASES = {"default": {**_database, "CONN_MAX_AGE": None, "CONN_HEALTH_CHECKS": True}}
if _replica:  # `core.persistence.replica` asks it before each use
    _replica["OPTIONS"] = {"connect_timeout": 2, **cast("dict[str, object]", _replica.get("OPTIONS", {}))}
    DATABASES["replica"] = {**_replica, "CONN_MAX_AGE": None, "TEST": {"MIRROR": "default"}}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator", "OPTIONS": {"min_length": 12}},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
    {"NAME": "django.contrib.auth.password_validation.NumericPasswordValidator"},
]
LOGIN_URL = "admin:login"
LOGIN_REDIRECT_URL = "admin:index"

LANGUAGE_CODE = "en"
LANGUAGES = [("en", "English"), ("zh-hans", "简体中文")]
LOCALE_PATHS = [BASE_DIR / "locale"]
TIME_ZONE = MEMORY_GATEWAY_TIME_ZONE

# Else `reverse` and redirects have the prefix that a trusted proxy names with the request.
FORCE_SCRIPT_NAME = MEMORY_GATEWAY_BASE_PATH or None
STATIC_URL = "/static/"
STATICFILES_DIRS = [BASE_DIR / "static"]
WHITENOISE_USE_FINDERS = True  # served from the packages' folders, without a collectstatic step
WHITENOISE_ALLOW_ALL_ORIGINS = False

# Form fields only: uploads are streamed to disk by the upload parser, JSON bodies have a limit per route.
DATA_UPLOAD_MAX_MEMORY_SIZE = 2 * 2**20
DATA_UPLOAD_MAX_NUMBER_FIELDS = 20_000  # a profile with hundreds of people is one form

SECURE_REFERRER_POLICY = "no-referrer"
# Cookies do not depend on the port: with Django's default names, other Django servers on the host overwrite them.
SESSION_COOKIE_NAME = "memory_gateway_sessionid"
CSRF_COOKIE_NAME = "memory_gateway_csrftoken"
SESSION_COOKIE_AGE = 3600  # of inactivity, because each page renews it; the absolute end is in `accounts.sessions`
SESSION_SAVE_EVERY_REQUEST = True
CSRF_COOKIE_HTTPONLY = True
SIGN_IN_COOKIE_NAME = "memory_gateway_sign_in"
SESSION_COOKIE_PATH = CSRF_COOKIE_PATH = LANGUAGE_COOKIE_PATH = MEMORY_GATEWAY_BASE_PATH or "/"
CSRF_FAILURE_VIEW = "memory_gateway.views.csrf_failure"
if IS_PRODUCTION:
    SECURE_SSL_REDIRECT = True
    SECURE_REDIRECT_EXEMPT = [
        rf"^{MEMORY_GATEWAY_BASE_PATH[1:]}/?mcp/?$"
    ]  # it refuses plain HTTP: a client would repeat its key at each redirect
    SECURE_HSTS_SECONDS, SECURE_HSTS_INCLUDE_SUBDOMAINS, SECURE_HSTS_PRELOAD = MEMORY_GATEWAY_HSTS
    # Other hosts of the domain are the operator's to decide about.
    SILENCED_SYSTEM_CHECKS = ["security.W004", "security.W005", "security.W021"]
    SESSION_COOKIE_SECURE = True
    CSRF_COOKIE_SECURE = True
    # Browsers take `__Host-` for the whole host only.
    cookie_prefix = "__Secure-" if MEMORY_GATEWAY_BASE_PATH else "__Host-"
    SESSION_COOKIE_NAME = f"{cookie_prefix}{SESSION_COOKIE_NAME}"
    CSRF_COOKIE_NAME = f"{cookie_prefix}{CSRF_COOKIE_NAME}"
    SIGN_IN_COOKIE_NAME = f"{cookie_prefix}{SIGN_IN_COOKIE_NAME}"

CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [SELF],
        "script-src": [SELF],
        "style-src": [SELF],
        "object-src": [NONE],
        "base-uri": [NONE],
        "form-action": [SELF],
        "frame-ancestors": [NONE],
    }
}

# Per address and process (`accounts.api.limits`).
FAILED_AUTHENTICATIONS_PER_MINUTE = 10
ANONYMOUS_REQUESTS_PER_MINUTE = 600
CLIENT_REGISTRATIONS_PER_MINUTE = 10

# Time limits for the head of an HTTP request and for an idle connection. The second is longer than that of proxies, so
# that they close first.
HTTP_HEAD_SECONDS = 15.0
HTTP_KEEP_ALIVE_SECONDS = 75

# WebSockets (`agents.rpc`): time for the handshake, interval of ticks and token checks, and requests per second and
# token.
RPC_HANDSHAKE_SECONDS = 15.0
RPC_TICK_SECONDS = 30.0
RPC_REQUESTS_PER_SECOND = 20

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": ["accounts.api.authentication.UserKeyAuthentication"],
    "DEFAULT_PERMISSION_CLASSES": ["accounts.api.permissions.HasScope"],
    "DEFAULT_PARSER_CLASSES": ["core.rest.JsonParser"],
    "DEFAULT_RENDERER_CLASSES": ["core.rest.JsonRenderer"],
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
    "EXCEPTION_HANDLER": "accounts.api.authentication.problem_response",
    "UNAUTHENTICATED_USER": None,
}
SPECTACULAR_SETTINGS = {
    "TITLE": "Memory Gateway",
    "DESCRIPTION": "A self-hosted memory service for AI agents.",
    "VERSION": "0.1.0",
    "OAS_VERSION": "3.1.0",
    "SERVERS": [{"url": MEMORY_GATEWAY_BASE_PATH}] if MEMORY_GATEWAY_BASE_PATH else [],
    "SERVE_INCLUDE_SCHEMA": False,
    "SERVE_AUTHENTICATION": [],
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
    "COMPONENT_SPLIT_REQUEST": True,
    "POSTPROCESSING_HOOKS": ["accounts.api.openapi.complete"],  # replaces the default, which extracts enums
}

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "filters": {
        # Django logs each 5xx response, which is already in the request log. Only its tracebacks are logged here.
        "tracebacks": {"()": "django.utils.log.CallbackFilter", "callback": lambda record: record.exc_info},
        "lasting_errors": {"()": "core.persistence.database_errors.PersistentErrorFilter"},
        "redact": {"()": "core.logs.RedactingFilter"},
        "request_id": {"()": "core.logs.RequestIdFilter"},
        # uvicorn logs a traceback for each WebSocket message that is not UTF-8.
        "not_utf_8": {
            "()": "django.utils.log.CallbackFilter",
            "callback": lambda record: not str(record.msg).startswith("Invalid UTF-8"),
        },
    },
    "formatters": {
        "line": {"format": "{asctime} {levelname} {name} [{request_id}] {message}", "style": "{"},
        "bare": {"format": "{message}", "style": "{"},
    },
    "handlers": {
        "console": {
            "class": "logging.StreamHandler",
            "formatter": "line",
            "filters": ["lasting_errors", "redact", "request_id"],
        },
        "api": {"class": "logging.StreamHandler", "formatter": "bare", "stream": "ext://sys.stdout"},
    },
    "root": {"handlers": ["console"], "level": "WARNING"},
    "loggers": {
        "memory_gateway": {"level": "INFO"},
        "memory_gateway.api": {"handlers": ["api"], "level": "INFO", "propagate": False},
        "django.request": {"level": "ERROR", "filters": ["tracebacks"]},
        # Client errors (a wrong host, too many fields) are in the request log, as responses with status 400.
        "django.security": {"level": "CRITICAL"},
        "python_multipart": {"level": "ERROR"},
        "uvicorn.error": {"level": "ERROR", "filters": ["not_utf_8"]},
        # Its warnings about unusual headers contain the URL, which may be presigned.
        "urllib3": {"level": "ERROR"},
    },
}
