"""Starts that must not happen, each ended by one sentence, and starts that must."""

from __future__ import annotations

import os
import subprocess
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path

import pytest
from django.core.exceptions import ImproperlyConfigured

from core.network.model_endpoint import ModelAddress
from memory_gateway import safety
from memory_gateway.environment import Environment, local_secret
from memory_gateway.settings import env
from tests import forked
from tests.forked import PROJECT

SECRET = "pC1yZ8QvK3nT6wBfR9dLxH2mJ5sGaE7uYoVkW4iNqX0bDtMhPsAz"
OTHER_SECRET = "T7hLw2ZxN9vQe4RkB6mYc1JpU8sDfG3aVtXoK5iWnH0qEzMrbQpc"
TOKEN = "f3Vw9KqZ1xT7mNb5RcL2pYhJ8sDgE4uA"
EVERYWHERE = "0.0.0.0"  # noqa: S104  refused, not listened on

PRODUCTION = {
    "MEMORY_GATEWAY_PROFILE": "production",
    "MEMORY_GATEWAY_SECRET_KEY": SECRET,
    "MEMORY_GATEWAY_PROVISIONING_TOKEN": TOKEN,
    "MEMORY_GATEWAY_ALLOWED_HOSTS": "memory.example.org",
    "MEMORY_GATEWAY_TRUSTED_PROXIES": "127.0.0.1",
}


def manage(tmp_path: Path, *arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
    inherited = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("MEMORY_GATEWAY_") and name not in {"DATABASE_URL", "DJANGO_SETTINGS_MODULE"}
    }
    data = {
        "MEMORY_GATEWAY_ENV_FILE": "",
        "MEMORY_GATEWAY_DB_PATH": str(tmp_path / "data" / "memory_gateway.sqlite3"),
        "MEMORY_GATEWAY_STORAGE_DIR": str(tmp_path / "data" / "storage"),
    }
    return forked.run(["manage.py", *arguments], {**inherited, **data, **env}, timeout_seconds=60)


UNSAFE_PRODUCTION = {
    "guessable metrics token": ({"MEMORY_GATEWAY_METRICS_TOKEN": "a" * 40}, "MEMORY_GATEWAY_METRICS_TOKEN"),
    "a metrics token of two uses": ({"MEMORY_GATEWAY_METRICS_TOKEN": TOKEN}, "must differ from every other secret"),
    "no secret": ({"MEMORY_GATEWAY_SECRET_KEY": ""}, "MEMORY_GATEWAY_SECRET_KEY must be set"),
    "short secret": ({"MEMORY_GATEWAY_SECRET_KEY": SECRET[:30]}, "at least 50 characters"),
    "known secret": ({"MEMORY_GATEWAY_SECRET_KEY": "django-insecure-" + SECRET}, "must be random"),
    "repeated secret": ({"MEMORY_GATEWAY_SECRET_KEY": "k3Vw9KqZ1xT7" * 5}, "must be random"),
    "weak fallback": ({"MEMORY_GATEWAY_SECRET_KEY_FALLBACKS": f"{OTHER_SECRET},old"}, "SECRET_KEY_FALLBACKS"),
    "no token": ({"MEMORY_GATEWAY_PROVISIONING_TOKEN": ""}, "PROVISIONING_TOKEN must be set"),
    "short token": ({"MEMORY_GATEWAY_PROVISIONING_TOKEN": "letmein"}, "at least 32 characters"),
    "a command as token": (
        {"MEMORY_GATEWAY_PROVISIONING_TOKEN": "$(openssl rand -base64 48) ......"},
        "must be random",
    ),
    "one secret for two": (
        {"MEMORY_GATEWAY_PROVISIONING_TOKEN": SECRET},
        "SECRET_KEY and MEMORY_GATEWAY_PROVISIONING_TOKEN must differ",
    ),
    "weak RPC token": ({"MEMORY_GATEWAY_RPC_TOKEN": "letmein"}, "RPC_TOKEN must have at least 32 characters"),
    "the RPC token for two": ({"MEMORY_GATEWAY_RPC_TOKEN": TOKEN}, "RPC_TOKEN must differ"),
    "no hosts": ({"MEMORY_GATEWAY_ALLOWED_HOSTS": ""}, "ALLOWED_HOSTS must list the host names"),
    "all hosts": ({"MEMORY_GATEWAY_ALLOWED_HOSTS": "*"}, "not a wildcard"),
    "a whole top-level domain": ({"MEMORY_GATEWAY_ALLOWED_HOSTS": ".org"}, "not a wildcard"),
    "an address for a host": (
        {"MEMORY_GATEWAY_ALLOWED_HOSTS": "https://memory.example.org"},
        "without https:// and port",
    ),
    "plain origins": ({"MEMORY_GATEWAY_ALLOWED_ORIGINS": "http://memory.example.org"}, "https:// origins"),
    "all origins": ({"MEMORY_GATEWAY_ALLOWED_ORIGINS": "https://*"}, "https:// origins"),
    "no proxy for https": ({"MEMORY_GATEWAY_TRUSTED_PROXIES": ""}, "TRUSTED_PROXIES must list the proxy"),
    "every proxy": ({"MEMORY_GATEWAY_TRUSTED_PROXIES": "0.0.0.0/0"}, "must not include every address"),
    "plain upstream": ({"MEMORY_GATEWAY_BACKEND_BASE_URL": "http://everos.internal:1995"}, "must use https"),
    "plain vision model": (
        {"MEMORY_GATEWAY_MODELS": "llm=https://models.example/v1#m,vision=http://models.internal/v1#m"},
        "MEMORY_GATEWAY_MODELS (vision) must use https, or MEMORY_GATEWAY_ALLOWED_PRIVATE_HOSTS must list its host.",
    ),
    "plain database": ({"DATABASE_URL": "postgres://a:b@db.internal:5432/memory"}, "sslmode=require"),
    "plain replica": (
        {"DATABASE_URL": "postgres:///memory", "MEMORY_GATEWAY_READ_DATABASE_URL": "postgres://a:b@db.internal/memory"},
        "READ_DATABASE_URL must end in ?sslmode=require",
    ),
    "plain Redis": ({"MEMORY_GATEWAY_REDIS_URL": "redis://redis.internal:6379"}, "REDIS_URL must use rediss"),
    "plain provider": (
        {
            "MEMORY_GATEWAY_OIDC_ISSUER": "http://id.example.org",
            "MEMORY_GATEWAY_OIDC_CLIENT_ID": "memory",
            "MEMORY_GATEWAY_OIDC_CLIENT_SECRET": OTHER_SECRET,
        },
        "OIDC_ISSUER must use https",
    ),
    "reloading": ({"MEMORY_GATEWAY_RELOAD": "true"}, "RELOAD is for development"),
}
UNSAFE_ANYWHERE = {
    "a public address without a token": ({"MEMORY_GATEWAY_HOST": EVERYWHERE}, "reachable from other machines"),
    "a short secret on a public address": (
        {
            "MEMORY_GATEWAY_HOST": EVERYWHERE,
            "MEMORY_GATEWAY_PROVISIONING_TOKEN": TOKEN,
            "MEMORY_GATEWAY_SECRET_KEY": "x",
        },
        "MEMORY_GATEWAY_SECRET_KEY must have at least 50 characters.",
    ),
    "a short former secret on a public address": (
        {
            "MEMORY_GATEWAY_HOST": EVERYWHERE,
            "MEMORY_GATEWAY_PROVISIONING_TOKEN": TOKEN,
            "MEMORY_GATEWAY_SECRET_KEY_FALLBACKS": f"{SECRET},short",
        },
        "MEMORY_GATEWAY_SECRET_KEY_FALLBACKS must have at least 50 characters.",
    ),
    "any host name without a token": ({"MEMORY_GATEWAY_ALLOWED_HOSTS": "*"}, "must not contain * without"),
    "a foreign host name without a token": (
        {"MEMORY_GATEWAY_ALLOWED_HOSTS": "localhost,evil.example"},
        "must not contain evil.example without MEMORY_GATEWAY_PROVISIONING_TOKEN",
    ),
    "a weak token": ({"MEMORY_GATEWAY_PROVISIONING_TOKEN": "a" * 40}, "must be random"),
    "a typing error": ({"MEMORY_GATEWAY_PROFIL": "production"}, "did you mean MEMORY_GATEWAY_PROFILE?"),
    "a provider without a client": (
        {"MEMORY_GATEWAY_OIDC_ISSUER": "https://id.example.org", "MEMORY_GATEWAY_OIDC_CLIENT_ID": "memory"},
        "OIDC_ISSUER requires MEMORY_GATEWAY_OIDC_CLIENT_ID and MEMORY_GATEWAY_OIDC_CLIENT_SECRET",
    ),
    "a password in the provider's address": (
        {
            "MEMORY_GATEWAY_OIDC_ISSUER": f"https://me:{TOKEN}@id.example.org",
            "MEMORY_GATEWAY_OIDC_CLIENT_ID": "memory",
            "MEMORY_GATEWAY_OIDC_CLIENT_SECRET": OTHER_SECRET,
        },
        "OIDC_ISSUER must not contain a user name or password",
    ),
    "roles without a provider": (
        {"MEMORY_GATEWAY_OIDC_ROLES": "staff=Viewer"},
        "MEMORY_GATEWAY_OIDC_ROLES requires MEMORY_GATEWAY_OIDC_ISSUER",
    ),
    "users who could sign in as operators": (
        {
            "MEMORY_GATEWAY_OIDC_ISSUER": "https://id.example.org",
            "MEMORY_GATEWAY_OIDC_CLIENT_ID": "memory",
            "MEMORY_GATEWAY_OIDC_CLIENT_SECRET": OTHER_SECRET,
            "MEMORY_GATEWAY_PORTAL_OIDC_CLAIM": "sub",
        },
        "PORTAL_OIDC_CLAIM requires MEMORY_GATEWAY_OIDC_ROLES: without it, users could sign in as operators",
    ),
    "a group without a role": ({"MEMORY_GATEWAY_OIDC_ROLES": "staff"}, "pairs such as staff=Viewer, not 'staff'"),
    "no way to sign in": (
        {"MEMORY_GATEWAY_PASSWORD_SIGN_IN": "false"},
        "PASSWORD_SIGN_IN can be false only with MEMORY_GATEWAY_OIDC_ISSUER",
    ),
    "an expiry of no category": ({"MEMORY_GATEWAY_EXPIRY": "facts=9"}, "such as full_context_user=90,tag:draft=7, not"),
    "an expiry without a tag": ({"MEMORY_GATEWAY_EXPIRY": "tag:=9"}, "must list a category or tag:name"),
    "an expiry at once": ({"MEMORY_GATEWAY_EXPIRY": "full_context_user=0"}, "with 1 to 36500 days"),
    "an unknown time zone": ({"MEMORY_GATEWAY_TIME_ZONE": "Mars/Olympus"}, "such as UTC or Europe/Berlin"),
    "an unknown profile": ({"MEMORY_GATEWAY_PROFILE": "prod"}, "must be one of local, production"),
    "a wrong truth": ({"MEMORY_GATEWAY_RELOAD": "ture"}, "must be true or false, not 'ture'"),
    "a wrong number": ({"MEMORY_GATEWAY_PORT": "80a"}, "must be a whole number"),
    "a family without a star": ({"MEMORY_GATEWAY_ALLOWED_MIME_TYPES": "image"}, "or image/*, not 'image'"),
    "a missing file of settings": ({"MEMORY_GATEWAY_ENV_FILE": "/nowhere/.env"}, "which is not a file"),
    "a forgetful database": ({"DATABASE_URL": "sqlite://:memory:"}, "lost at exit"),
    "a storage folder open by address": ({"MEMORY_GATEWAY_FILE_URI_ROOTS": "/srv, /"}, "must not overlap"),
    "an open bucket of the gateway's files": (
        {
            "MEMORY_GATEWAY_EXTERNAL_BUCKETS": "a, files",
            "MEMORY_GATEWAY_STORAGE_DIR": "",
            "MEMORY_GATEWAY_STORAGE_URL": "s3://files/gateway",
        },
        "users could read files.",
    ),
    "an open bucket of the gateway's files in capitals": (
        {
            "MEMORY_GATEWAY_EXTERNAL_BUCKETS": "Files.",
            "MEMORY_GATEWAY_STORAGE_DIR": "",
            "MEMORY_GATEWAY_STORAGE_URL": "s3://files/gateway",
        },
        "users could read Files.",
    ),
    "a bucket with a path": (
        {"MEMORY_GATEWAY_EXTERNAL_BUCKETS": "s3://documents/users"},
        "must list names of buckets, without s3:// and path, not 's3://documents/users'.",
    ),
    "a folder and a bucket": (
        {"MEMORY_GATEWAY_STORAGE_DIR": "/srv/files", "MEMORY_GATEWAY_STORAGE_URL": "s3://files/gateway"},
        "Set MEMORY_GATEWAY_STORAGE_DIR or MEMORY_GATEWAY_STORAGE_URL, not both.",
    ),
    "a bucket over http": ({"MEMORY_GATEWAY_STORAGE_URL": "http://files/gateway"}, "must begin with s3://"),
    "Redis over http": (
        {"MEMORY_GATEWAY_REDIS_URL": f"http://me:{TOKEN}@127.0.0.1:6379"},
        "must begin with redis:// or rediss:// and name a host, not be '127.0.0.1:6379'",
    ),
    "an address without an end": (
        {"MEMORY_GATEWAY_BACKEND_BASE_URL": "http://[bad"},
        "BACKEND_BASE_URL must name a valid host and port, not 'http://[bad'.",
    ),
    "a port that is too large": (
        {"MEMORY_GATEWAY_BACKEND_BASE_URL": "http://127.0.0.1:99999/v1"},
        "BACKEND_BASE_URL must name a valid host and port, not 'http://127.0.0.1:99999/v1'.",
    ),
    "a password with a number sign": (
        {"MEMORY_GATEWAY_REDIS_URL": f"redis://me:{TOKEN}#1@127.0.0.1"},
        "REDIS_URL must name a valid host and port, not '127.0.0.1'.",
    ),
    "any origin": ({"MEMORY_GATEWAY_ALLOWED_ORIGINS": "*"}, "complete http:// or https:// origins"),
    "an origin without a scheme": ({"MEMORY_GATEWAY_ALLOWED_ORIGINS": "a.example"}, "not 'a.example'."),
    "an origin with a path": (
        {"MEMORY_GATEWAY_ALLOWED_ORIGINS": "https://a.example, https://b.example/"},
        "ALLOWED_ORIGINS must list complete http:// or https:// origins without a path, not 'https://b.example/'.",
    ),
    "all origins of a domain": ({"MEMORY_GATEWAY_ALLOWED_ORIGINS": "https://*.example"}, "complete http://"),
    "an origin with a password": (
        {"MEMORY_GATEWAY_ALLOWED_ORIGINS": f"https://me:{TOKEN}@a.example"},
        "complete http:// or https:// origins without a path, not 'a.example'.",
    ),
    "a policy that is none": ({"MEMORY_GATEWAY_HSTS": "31536000"}, "HSTS must be max-age=SECONDS, optionally"),
    "preload without subdomains": ({"MEMORY_GATEWAY_HSTS": "max-age=31536000; preload"}, "HSTS must be max-age="),
    "a contact without a scheme": (
        {"MEMORY_GATEWAY_SECURITY_CONTACT": "https://a.example/x, security@a.example"},
        "addresses such as mailto:security@example.org or https://example.org/security, not 'security@a.example'.",
    ),
    "an origin of another scheme": ({"MEMORY_GATEWAY_ALLOWED_ORIGINS": "ftp://x"}, "complete http://"),
    "an origin without an end": ({"MEMORY_GATEWAY_ALLOWED_ORIGINS": "https://[bad"}, "a valid host and port"),
    "an address for a private host": (
        {"MEMORY_GATEWAY_ALLOWED_PRIVATE_HOSTS": "minio, http://[x"},
        "ALLOWED_PRIVATE_HOSTS must list host names or addresses without https:// and port, not 'http://[x'.",
    ),
    "a user name in the address of EverOS": (
        {"MEMORY_GATEWAY_BACKEND_BASE_URL": "http://ann@127.0.0.1:1995"},
        "MEMORY_GATEWAY_BACKEND_BASE_URL must not contain a user name or password.",
    ),
    "keys in the address of the bucket": (
        {"MEMORY_GATEWAY_STORAGE_DIR": "", "MEMORY_GATEWAY_STORAGE_URL": f"s3://AKIA1:{TOKEN}@files/gateway"},
        "MEMORY_GATEWAY_STORAGE_URL must not contain a user name or password.",
    ),
    "a password in the address of a model": (
        {"MEMORY_GATEWAY_MODELS": f"llm=https://me:{TOKEN}@models.example/v1#m"},
        "MEMORY_GATEWAY_MODELS (llm) must not contain a user name or password.",
    ),
    "a password with a number sign in the address of a model": (
        {"MEMORY_GATEWAY_MODELS": f"llm=https://me:{TOKEN}#1@models.example/v1#m"},
        "MEMORY_GATEWAY_MODELS must name the model of llm as in llm=https://host/v1#model.",
    ),
    "a password with a comma in the address of a model": (
        {"MEMORY_GATEWAY_MODELS": f"llm=https://me:{TOKEN},1@models.example/v1#m"},
        "MEMORY_GATEWAY_MODELS must name the model of llm as in llm=https://host/v1#model.",
    ),
    "a model without a name": (
        {"MEMORY_GATEWAY_MODELS": "embedding=https://models.example/v1"},
        "must name the model of embedding as in embedding=https://host/v1#model or embedding=https://host/v1#model?dim",
    ),
    "a model without an address": (
        {"MEMORY_GATEWAY_MODELS": "llm=m"},
        "MEMORY_GATEWAY_MODELS must name the model of llm as in llm=https://host/v1#model.",
    ),
    "a model without a scheme": (
        {"MEMORY_GATEWAY_MODELS": "llm=models.example/v1#m"},
        "MEMORY_GATEWAY_MODELS (llm) must begin with http:// or https:// and name a host, not be 'models.example",
    ),
    "a model at a port that is too large": (
        {"MEMORY_GATEWAY_MODELS": "llm=http://127.0.0.1:99999/v1#m"},
        "MEMORY_GATEWAY_MODELS (llm) must name a valid host and port",
    ),
    "a misspelt kind of model": (
        {"MEMORY_GATEWAY_MODELS": "llm=https://models.example/v1#m, Embeddings=https://models.example/v1#m"},
        "MEMORY_GATEWAY_MODELS names no kind of model before '='; did you mean embedding?",
    ),
    "an address without a kind of model": (
        {"MEMORY_GATEWAY_MODELS": f"https://me:{TOKEN}@models.example/v1#m"},
        "before '='; the kinds are embedding, llm, vision, transcription, rerank.",
    ),
    "two models of one kind": (
        {"MEMORY_GATEWAY_MODELS": "llm=https://models.example/v1#a llm=https://models.example/v1#b"},
        "MEMORY_GATEWAY_MODELS must name one model for llm, not two.",
    ),
    "an option of another kind": (
        {"MEMORY_GATEWAY_MODELS": "rerank=https://models.example/v1#m?dimensions=3"},
        "MEMORY_GATEWAY_MODELS must name the model of rerank as in rerank=https://host/v1#model.",
    ),
    "an unknown option of a model": (
        {"MEMORY_GATEWAY_MODELS": "embedding=https://models.example/v1#m?prefix=query"},
        "MEMORY_GATEWAY_MODELS must name the model of embedding as in",
    ),
    "long prefixes of a model": (
        {"MEMORY_GATEWAY_MODELS": f"embedding=https://models.example/v1#m?text_prefix={'x' * 300}"},
        "and its prefixes in at most 200 characters.",
    ),
    "a folder without a model": (
        {"MEMORY_GATEWAY_MODELS": "embedding=local:/nonexistent"},
        "MEMORY_GATEWAY_MODELS (embedding): ",
    ),
    "too many dimensions": (
        {"MEMORY_GATEWAY_MODELS": "embedding=https://models.example/v1#m?dimensions=5000"},
        "MEMORY_GATEWAY_MODELS must name the model of embedding as in",
    ),
    "a former setting of a model": (
        {"MEMORY_GATEWAY_EMBEDDING_BASE_URL": ""},
        "is not a setting of Memory Gateway; set MEMORY_GATEWAY_MODELS, such as embedding=https://host/v1#model.",
    ),
    "a file for the storage folder": (
        {"MEMORY_GATEWAY_STORAGE_DIR": "/etc/passwd"},
        "MEMORY_GATEWAY_STORAGE_DIR must be a folder: /etc/passwd is a file.",
    ),
    "a replica without a primary": (
        {"MEMORY_GATEWAY_READ_DATABASE_URL": "postgres://a@127.0.0.1/memory"},
        "READ_DATABASE_URL needs a primary: set DATABASE_URL",
    ),
    "a replica of another kind": (
        {"MEMORY_GATEWAY_READ_DATABASE_URL": "sqlite:////replica"},
        "READ_DATABASE_URL must look like postgres://",
    ),
    "no kind of database": ({"DATABASE_URL": "garbage"}, "DATABASE_URL must look like postgres://"),
    "a file on a host": ({"DATABASE_URL": "sqlite://data/own.sqlite3"}, "or sqlite:////folder/name."),
    "another kind of database": ({"DATABASE_URL": "mysql://a:b@127.0.0.1/memory"}, "sqlite:// or postgres://"),
}


def assert_one_sentence(result: subprocess.CompletedProcess[str], sentence: str) -> None:
    assert result.returncode != 0
    assert sentence in result.stderr
    assert result.stderr.startswith("memory-gateway: ")
    assert result.stderr.count("\n") == 1, result.stderr
    assert result.stdout == ""
    for secret in (SECRET, OTHER_SECRET, TOKEN):
        assert secret not in result.stderr


@pytest.mark.parametrize(("env", "sentence"), UNSAFE_PRODUCTION.values(), ids=UNSAFE_PRODUCTION.keys())
def test_production_refuses(tmp_path: Path, env: dict[str, str], sentence: str) -> None:
    assert_one_sentence(manage(tmp_path, "check", **{**PRODUCTION, **env}), sentence)


@pytest.mark.parametrize(("env", "sentence"), UNSAFE_ANYWHERE.values(), ids=UNSAFE_ANYWHERE.keys())
def test_every_profile_refuses(tmp_path: Path, env: dict[str, str], sentence: str) -> None:
    assert_one_sentence(manage(tmp_path, "check", **env), sentence)


def test_models_are_read_with_their_keys_and_options() -> None:
    values = {
        "MEMORY_GATEWAY_MODELS": "embedding=https://a.example/v1/#text-embedding-v4?dimensions=1024,\n llm=http://[::1]/v1#@cf/qwen3:8b",
        "MEMORY_GATEWAY_LLM_API_KEY": "sk-1",
    }
    assert Environment(values, PROJECT).models("MODELS") == {
        "embedding": ModelAddress("https://a.example/v1", "text-embedding-v4", dimensions=1024),
        "llm": ModelAddress("http://[::1]/v1", "@cf/qwen3:8b", "sk-1"),
    }
    assert Environment({}, PROJECT).models("MODELS") == {}


def test_prefixes_of_an_embedding_model_are_part_of_its_identity() -> None:
    value = "embedding=https://a.example/v1#e5?dimensions=384&query_prefix=query:%20&text_prefix=passage%3A+"
    [model] = Environment({"MEMORY_GATEWAY_MODELS": value}, PROJECT).models("MODELS").values()
    assert (model.query_prefix, model.text_prefix, model.dimensions) == ("query: ", "passage: ", 384)
    assert model.identity == "e5?query_prefix=query%3A%20&text_prefix=passage%3A%20"
    assert ModelAddress("https://a.example/v1", "e5").identity == "e5"


def test_a_setting_that_needs_an_absent_package_is_refused() -> None:
    with pytest.raises(
        ImproperlyConfigured, match=r"REDIS_URL needs the package absent: install memory-gateway\[redis\]"
    ):
        safety.require_extra("redis", "absent", setting="REDIS_URL", value="redis://127.0.0.1")


def test_several_processes_read_a_replica_only_with_redis(tmp_path: Path) -> None:
    env = {"DATABASE_URL": "postgres:///a", "MEMORY_GATEWAY_READ_DATABASE_URL": "postgres:///b"}
    result = manage(tmp_path, "serve", "--workers", "2", **env)
    assert "MEMORY_GATEWAY_READ_DATABASE_URL needs MEMORY_GATEWAY_REDIS_URL with several processes" in result.stderr
    assert result.returncode != 0


def test_serving_is_refused_with_the_same_sentence(tmp_path: Path) -> None:
    result = manage(tmp_path, "serve", **{**PRODUCTION, "MEMORY_GATEWAY_SECRET_KEY": ""})
    assert_one_sentence(result, "MEMORY_GATEWAY_SECRET_KEY must be set under the production profile.")


def test_a_simple_secret_is_allowed_on_loopback_without_a_token(tmp_path: Path) -> None:
    started = manage(tmp_path, "check", MEMORY_GATEWAY_SECRET_KEY="x", MEMORY_GATEWAY_SECRET_KEY_FALLBACKS="y")
    assert started.returncode == 0, started.stderr


def test_a_storage_folder_around_the_database_is_refused(tmp_path: Path) -> None:
    result = manage(tmp_path, "check", MEMORY_GATEWAY_STORAGE_DIR=str(tmp_path / "data"))
    assert_one_sentence(result, "must be a separate folder")


@pytest.mark.parametrize("name", ["storage", "memory_gateway.sqlite3"])
def test_production_refuses_data_that_everybody_can_read(tmp_path: Path, name: str) -> None:
    path = tmp_path / "data" / name
    if name == "storage":
        path.mkdir(parents=True, mode=0o755)
    else:
        path.parent.mkdir()
        path.touch(mode=0o644)
    path.chmod(0o755 if path.is_dir() else 0o644)
    assert_one_sentence(
        manage(tmp_path, "check", **PRODUCTION), "is accessible to all users of this machine. Run `chmod "
    )


def test_production_refuses_an_env_file_that_everybody_can_read(tmp_path: Path) -> None:
    env_file = tmp_path / ".env"
    env_file.write_text("".join(f"{name}={value}\n" for name, value in PRODUCTION.items()))
    env_file.chmod(0o644)
    refused = manage(tmp_path, "check", MEMORY_GATEWAY_ENV_FILE=str(env_file))
    assert_one_sentence(refused, f"{env_file} is accessible to all users")
    env_file.chmod(0o600)
    assert manage(tmp_path, "check", MEMORY_GATEWAY_ENV_FILE=str(env_file)).returncode == 0


def test_a_safe_production_passes_the_deployment_check_without_a_warning(tmp_path: Path) -> None:
    result = manage(tmp_path, "check", "--deploy", "--fail-level", "WARNING", **PRODUCTION)
    assert result.returncode == 0, result.stderr
    assert "no issues" in result.stdout


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
def test_a_file_of_settings_may_begin_with_a_byte_order_mark(tmp_path: Path, encoding: str) -> None:
    env_file = tmp_path / ".env"
    env_file.write_text("MEMORY_GATEWAY_PORT=9000\nMEMORY_GATEWAY_PROVISIONING_TOKEN=\n", encoding=encoding)
    code = "from django.conf import settings; print(settings.MEMORY_GATEWAY_PORT)"
    shown = manage(tmp_path, "shell", "--no-imports", "--command", code, MEMORY_GATEWAY_ENV_FILE=str(env_file))
    assert shown.stdout.strip() == "9000", shown.stderr


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-be-sig", "utf-32"])
def test_a_file_of_settings_in_another_encoding_is_refused(tmp_path: Path, encoding: str) -> None:
    env_file, content = tmp_path / ".env", "MEMORY_GATEWAY_PORT=9000\n"
    is_big = encoding == "utf-16-be-sig"
    env_file.write_bytes(("\ufeff" + content).encode("utf-16-be") if is_big else content.encode(encoding))
    refused = manage(tmp_path, "check", MEMORY_GATEWAY_ENV_FILE=str(env_file))
    assert_one_sentence(refused, f"{env_file} is UTF-16 or UTF-32 text. Save it as UTF-8.")


def test_what_we_write_is_ours_alone(tmp_path: Path) -> None:
    assert manage(tmp_path, "migrate", "--verbosity", "0").returncode == 0
    for path in (tmp_path / "data").iterdir():
        assert path.stat().st_mode & 0o077 == 0, path
    assert (tmp_path / "data" / "secret_key").stat().st_mode & 0o777 == 0o600


def test_the_clients_own_variables_do_not_disturb_the_start(tmp_path: Path) -> None:
    env = {"MEMORY_GATEWAY_BASE_URL": "http://127.0.0.1:8010", "MEMORY_GATEWAY_USER_ID": "a"}
    assert manage(tmp_path, "check", MEMORY_GATEWAY_USER_KEY="uk_x", **env).returncode == 0


def test_the_file_of_settings_stays_out_of_the_environment_of_child_processes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    env_file = tmp_path / ".env"
    env_file.write_text("# a comment\n\nMEMORY_GATEWAY_PORT='9000'\nMEMORY_GATEWAY_HOST=127.0.0.2\n")
    monkeypatch.setenv("MEMORY_GATEWAY_ENV_FILE", str(env_file))
    monkeypatch.setenv("MEMORY_GATEWAY_HOST", "127.0.0.3")
    environment = Environment.load(tmp_path)
    assert environment.integer("PORT", 8010) == 9000
    assert environment.text("HOST") == "127.0.0.3", "the environment goes before the file"
    assert "MEMORY_GATEWAY_PORT" not in os.environ


def test_the_sdk_of_aws_finds_its_variables_of_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".env").write_text("AWS_REGION=eu-west-1\nAWS_ACCESS_KEY_ID=of-the-file\n")
    monkeypatch.setenv("MEMORY_GATEWAY_ENV_FILE", str(tmp_path / ".env"))
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "of-the-process")
    monkeypatch.setenv("AWS_REGION", "")
    monkeypatch.delenv("AWS_REGION")
    Environment.load(tmp_path)
    assert (os.environ["AWS_REGION"], os.environ["AWS_ACCESS_KEY_ID"]) == ("eu-west-1", "of-the-process")


@pytest.mark.parametrize(
    "line", ["MEMORY_GATEWAY_PROFILE = production", "MEMORY_GATEWAY_PROFILE: production", "production"]
)
def test_a_line_that_says_nothing_stops_the_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str) -> None:
    env_file = tmp_path / ".env"
    env_file.write_text(f"MEMORY_GATEWAY_PORT=9000\n{line}\n")
    monkeypatch.setenv("MEMORY_GATEWAY_ENV_FILE", str(env_file))
    with pytest.raises(ImproperlyConfigured, match="Line 2"):
        Environment.load(tmp_path)


def test_a_file_of_settings_that_is_no_text_stops_the_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    env_file = tmp_path / ".env"
    env_file.write_bytes(b"MEMORY_GATEWAY_HOST=\xff\xfe\n")
    monkeypatch.setenv("MEMORY_GATEWAY_ENV_FILE", str(env_file))
    with pytest.raises(ImproperlyConfigured, match="UTF-8"):
        Environment.load(tmp_path)


def test_settings_file_and_relative_paths_are_in_the_home_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".env").write_text("MEMORY_GATEWAY_PORT=9000\nMEMORY_GATEWAY_FOLDER=files\n")
    monkeypatch.delenv("MEMORY_GATEWAY_ENV_FILE", raising=False)
    monkeypatch.setenv("MEMORY_GATEWAY_HOME", str(tmp_path))
    environment = Environment.load(PROJECT)
    assert environment.integer("PORT", 8010) == 9000
    assert environment.path("FOLDER", ".") == tmp_path / "files"


def test_first_starts_at_once_end_with_one_secret(tmp_path: Path) -> None:
    path = tmp_path / "data" / "secret_key"
    with ThreadPoolExecutor(8) as pool:
        found = set(pool.map(lambda _: local_secret(path), range(40)))
    assert len(found) == 1
    assert len(found.pop()) >= 80
    assert [item.name for item in path.parent.iterdir()] == ["secret_key"]


def test_a_local_secret_that_everybody_can_read_is_refused(tmp_path: Path) -> None:
    local_secret(path := tmp_path / "secret_key")
    path.chmod(0o644)
    with pytest.raises(ImproperlyConfigured, match="chmod 600"):
        local_secret(path)


def test_an_empty_local_secret_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "secret_key"
    path.touch(mode=0o600)
    with pytest.raises(ImproperlyConfigured, match="is empty"):
        local_secret(path)


@pytest.mark.parametrize("name", ["with space", "50%", "a#b?c", "数据"])
def test_a_database_path_may_hold_any_character(tmp_path: Path, name: str) -> None:
    path = tmp_path / name / "memory_gateway.sqlite3"
    assert Environment({}, tmp_path).database(path)["NAME"] == str(path)
    assert path.parent.is_dir()


def test_a_relative_database_is_relative_to_the_project(tmp_path: Path) -> None:
    environment = Environment({"DATABASE_URL": "sqlite:///data/own.sqlite3"}, tmp_path)
    assert environment.database(tmp_path / "x")["NAME"] == str(tmp_path / "data" / "own.sqlite3")


def test_origins_and_private_hosts_are_taken_as_they_are(tmp_path: Path) -> None:
    values = {
        "MEMORY_GATEWAY_ORIGINS": "https://a.example, http://localhost:3000,https://[::1]:8443",
        "MEMORY_GATEWAY_HOSTS": "minio, 10.0.0.1,::1, Files.Internal.",
    }
    environment = Environment(values, tmp_path)
    assert environment.origins("ORIGINS") == ["https://a.example", "http://localhost:3000", "https://[::1]:8443"]
    assert environment.hosts("HOSTS") == ["minio", "10.0.0.1", "::1", "Files.Internal."]


def test_what_openssl_prints_is_random_enough() -> None:
    for _ in range(200):
        safety.require_random(os.urandom(16).hex(), "PROVISIONING_TOKEN", minimum=32)


@pytest.mark.parametrize(
    ("host", "is_loopback"),
    [
        *[(host, True) for host in ("127.0.0.1", "127.8.8.8", "::1", "localhost")],
        *[(host, False) for host in (EVERYWHERE, "::", "10.0.0.1", "gateway", "")],
    ],
)
def test_loopback_differs_from_the_rest(host: str, is_loopback: bool) -> None:
    assert safety.is_loopback(host) is is_loopback


@pytest.mark.parametrize(
    ("url", "private_hosts"),
    [
        ("postgres://a:b@db.internal/memory?sslmode=verify-full", []),
        ("postgres://a:b@db/memory", ["db"]),
        ("postgres://a:b@127.0.0.1/memory", []),
        ("postgres:///memory", []),
    ],
)
def test_a_database_is_reached_safely(tmp_path: Path, url: str, private_hosts: list[str]) -> None:
    database = Environment({"DATABASE_URL": url}, tmp_path).database(tmp_path / "x")
    safety.require_safe_database("DATABASE_URL", database, private_hosts)


# --- the example of the settings --------------------------------------------------------------------------------------

# Not for people: set by `serve` for its workers, or read before any file is.
UNLISTED = {"MEMORY_GATEWAY_NO_WORKER", "MEMORY_GATEWAY_WORKER", "MEMORY_GATEWAY_ENV_FILE", "MEMORY_GATEWAY_HOME"}
CLIENT = {"MEMORY_GATEWAY_BASE_URL", "MEMORY_GATEWAY_USER_ID", "MEMORY_GATEWAY_USER_KEY"}
SETTINGS = (env.names | {"DATABASE_URL"}) - UNLISTED - CLIENT


def test_the_example_names_every_setting_once_with_a_comment() -> None:
    lines = (PROJECT / ".env.example").read_text(encoding="utf-8").splitlines()
    named = [line.partition("=")[0] for line in lines if line and not line.startswith("#")]
    assert sorted(named) == sorted(SETTINGS)
    for before, line in pairwise(lines):
        if line and not line.startswith("#"):
            assert before.startswith("# "), f"{line} has no comment"


def test_copying_the_example_changes_nothing(tmp_path: Path) -> None:
    code = (
        "from django.conf import settings; "
        "print(sorted((n, str(getattr(settings, n))) for n in dir(settings) if n.startswith('MEMORY_')))"
    )
    without = manage(tmp_path, "shell", "--no-imports", "--command", code)
    copied = manage(
        tmp_path, "shell", "--no-imports", "--command", code, MEMORY_GATEWAY_ENV_FILE=str(PROJECT / ".env.example")
    )
    assert "MEMORY_GATEWAY_PORT" in without.stdout
    assert copied.stdout == without.stdout
