"""`compose.yaml` and the files that it mounts: names, settings, and the secrets that its first service makes."""

from __future__ import annotations

import contextlib
import json
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import boto3
import jsonschema
import pytest
import yaml

from memory_gateway import settings
from tests.forked import PROJECT

COMPOSE: dict[str, Any] = yaml.safe_load((PROJECT / "compose.yaml").read_text(encoding="utf-8"))
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]


def test_it_agrees_with_the_schema_of_compose() -> None:
    """The schema is that of https://github.com/compose-spec/compose-spec (Apache License 2.0)."""
    schema = json.loads(Path(__file__).with_name("compose-spec.json").read_text(encoding="utf-8"))
    validator = jsonschema.Draft7Validator(schema)
    assert [error.message for error in validator.iter_errors(COMPOSE)] == []
    assert list(validator.iter_errors(COMPOSE | {"services": {"gateway": {"port": 80}}}))


def test_every_setting_exists() -> None:
    for service in ("gateway", "prepare", "worker"):
        named = {name for name in SERVICES[service]["environment"] if not name.startswith("AWS_")}
        assert named <= settings.env.names | {"TMPDIR"}


def test_the_image_gets_every_package_of_the_wheel() -> None:
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))
    packages = project["tool"]["hatch"]["build"]["targets"]["wheel"]["only-include"]
    allowed = (PROJECT / ".dockerignore").read_text(encoding="utf-8").split()
    assert [one for one in packages if f"!{one}" not in allowed] == []


def test_the_gateways_trust_the_network_of_the_proxy_only() -> None:
    [network] = COMPOSE["networks"]["public"]["ipam"]["config"]
    assert SERVICES["gateway"]["environment"]["MEMORY_GATEWAY_TRUSTED_PROXIES"] == network["subnet"]


def test_the_gateways_leave_the_work_to_the_worker() -> None:
    assert SERVICES["gateway"]["command"] == ["manage", "serve", "--no-worker"]
    assert SERVICES["worker"]["command"] == ["manage", "worker"]
    for mounted in ("environment", "volumes"):
        assert SERVICES["worker"][mounted] == SERVICES["gateway"][mounted]


def test_only_the_proxy_has_ports() -> None:
    assert [name for name, service in SERVICES.items() if "ports" in service] == ["caddy"]
    assert COMPOSE["networks"]["internal"]["internal"]
    assert SERVICES["postgres"]["networks"] == ["internal"]


def test_the_gateways_run_without_rights() -> None:
    gateway = SERVICES["gateway"]
    assert gateway["read_only"]
    assert gateway["cap_drop"] == ["ALL"]
    assert "user" not in gateway  # the image's, who is not root


def test_every_mounted_file_and_volume_exists() -> None:
    for service in SERVICES.values():
        for volume in service.get("volumes", ()):
            source = volume.split(":")[0]
            assert (PROJECT / source).is_file() if source.startswith("./") else source in COMPOSE["volumes"], volume


@pytest.mark.skipif(
    not shutil.which("docker") or subprocess.run(["docker", "compose", "version"], check=False).returncode != 0,
    reason="needs docker compose",
)
def test_docker_accepts_it() -> None:
    subprocess.run(["docker", "compose", "config", "--quiet"], cwd=PROJECT, check=True)


def test_secrets_are_made_once(tmp_path: Path) -> None:
    script = (PROJECT / "deploy" / "create_secrets.sh").read_text(encoding="utf-8")
    local = script.replace("/secrets", str(tmp_path)).replace("chown 10001:10001", ": ")

    def create() -> dict[str, str]:
        subprocess.run(["sh", "-c", local], check=True)
        lines = (tmp_path / "gateway.env").read_text(encoding="ascii").splitlines()
        return dict(line.split("=", 1) for line in lines)

    made = create()
    assert made == create()
    password = (tmp_path / "postgres_password").read_text(encoding="ascii")
    assert made["DATABASE_URL"] == f"postgres://memory:{password}@postgres:5432/memory"
    [identity] = json.loads((tmp_path / "s3.json").read_text(encoding="ascii"))["identities"]
    [credentials] = identity["credentials"]
    key = made["AWS_SECRET_ACCESS_KEY"]
    assert credentials == {"accessKey": made["AWS_ACCESS_KEY_ID"], "secretKey": key}
    secrets = [made["MEMORY_GATEWAY_SECRET_KEY"], made["MEMORY_GATEWAY_PROVISIONING_TOKEN"], password, key]
    assert len({*secrets}) == 4
    assert all(re.fullmatch(r"[0-9a-f]{64}", secret) for secret in secrets)
    assert {path.stat().st_mode & 0o777 for path in tmp_path.iterdir()} == {0o600}


def test_the_bucket_is_created_once(s3_server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    names = {"ENDPOINT_URL_S3": s3_server, "ACCESS_KEY_ID": "test", "SECRET_ACCESS_KEY": "test", "REGION": "us-east-1"}
    for name, value in names.items():
        monkeypatch.setenv(f"AWS_{name}", value)
    for _ in range(2):
        subprocess.run([sys.executable, PROJECT / "deploy" / "create_bucket.py"], check=True)
    bucket = urlsplit(SERVICES["gateway"]["environment"]["MEMORY_GATEWAY_STORAGE_URL"]).netloc
    with contextlib.closing(boto3.client("s3")) as client:
        client.delete_bucket(Bucket=bucket)
