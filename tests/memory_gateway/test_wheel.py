"""The gateway as the wheel installs it: all apps below one package, with its data in the user's folder.

`make release` builds, installs and starts the real wheel.
"""

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import requests
from django.apps import apps

from tests.forked import PROJECT
from tests.server import START_SECONDS, free_port, wait_until

pytestmark = pytest.mark.slow

SETTINGS = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))
WHEEL = SETTINGS["tool"]["hatch"]["build"]["targets"]["wheel"]


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    """An environment in which the package is importable, laid out as the wheel's configuration says."""
    package = tmp_path / "site" / WHEEL["sources"][""]
    package.mkdir(parents=True)
    for name in WHEEL["only-include"]:
        (package / name).symlink_to(PROJECT / name)
    for source, target in WHEEL["force-include"].items():
        (package / target).write_bytes((PROJECT / source).read_bytes())
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("MEMORY_GATEWAY_", "DATABASE_"))}
    kept["DJANGO_SETTINGS_MODULE"] = "of_another_project.settings"
    return {**kept, "PYTHONPATH": str(tmp_path / "site"), "XDG_DATA_HOME": str(tmp_path / "share")}


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", WHEEL["sources"][""], *arguments]


def test_the_wheel_holds_every_app_of_the_project() -> None:
    paths = [Path(app.path) for app in apps.get_app_configs()]
    own = {path.name for path in paths if path.parent == PROJECT}
    assert own
    assert own <= {*WHEEL["only-include"]}


def test_it_starts_on_an_empty_home_and_runs_commands_there(tmp_path: Path, env: dict[str, str]) -> None:
    port = free_port()
    started = env | {"MEMORY_GATEWAY_PORT": str(port)}
    with subprocess.Popen(command(), cwd=tmp_path, env=started, stdout=subprocess.PIPE, text=True) as gateway:

        def is_up() -> bool:
            assert gateway.poll() is None
            try:
                return requests.get(f"http://127.0.0.1:{port}/health", timeout=5).ok
            except requests.ConnectionError:
                return False

        try:
            wait_until(is_up, START_SECONDS)
            assert requests.post(f"http://127.0.0.1:{port}/users", json={"user_id": "ann"}, timeout=10).ok
        finally:
            gateway.terminate()
        said = gateway.communicate(timeout=30)[0]
    assert "password" in said
    assert "/admin/memory/" in said
    home = tmp_path / "share" / "memory-gateway"
    assert (home / "data" / "memory_gateway.sqlite3").is_file()
    doctor = subprocess.run(
        command("manage", "doctor"), cwd=tmp_path, env=env, capture_output=True, text=True, check=False
    )
    assert doctor.returncode == 0, doctor.stderr
    assert str(home) in doctor.stdout


@pytest.mark.parametrize("arguments", [["--version"], ["start", "--version"]])
def test_it_says_its_version(tmp_path: Path, env: dict[str, str], arguments: list[str]) -> None:
    said = subprocess.run(command(*arguments), cwd=tmp_path, env=env, capture_output=True, text=True, check=True)
    assert said.stdout == f"{SETTINGS['project']['version']}\n"


def test_messages_name_the_command_of_the_wheel(tmp_path: Path, env: dict[str, str]) -> None:
    refused = subprocess.run(
        command("manage", "serve"), cwd=tmp_path, env=env, capture_output=True, text=True, check=False
    )
    assert refused.stderr.endswith("Run `memory-gateway manage migrate`.\n")
