"""Generated clients: made from the OpenAPI document with default options, strictly type-checked, and used."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import requests

from tests import node
from tests.server import RunningServer, running_server

HERE = Path(__file__).parent
TEXT = "Payment is due within 30 days."
SECONDS = 300
TYPESCRIPT = {
    "openapi_typescript": ["openapi-typescript", "schema.json", "-o", "schema.d.ts"],
    "hey_api": ["openapi-ts", "-i", "schema.json", "-o", "."],
    "swagger_typescript_api": ["swagger-typescript-api", "generate", "-p", "schema.json", "-o", ".", "-n", "api.ts"],
}
# What `tsc --init` and the bundlers' templates choose.
STRICT = ["--strict", "--noEmit", "--target", "ES2022", "--module", "ESNext", "--moduleResolution", "bundler"]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    with running_server(tmp_path_factory.mktemp("generators")) as started:
        yield started


def run(folder: Path, *command: str | Path) -> str:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=SECONDS, check=False)
    assert done.returncode == 0, f"{command}: {done.stdout[-3000:]}{done.stderr[-3000:]}"
    return done.stdout


def write_schema(server: RunningServer, folder: Path) -> None:
    answer = requests.get(f"{server.url}/openapi.json", timeout=30)
    (folder / "schema.json").write_bytes(answer.content)


def assert_main_job(output: str) -> None:
    """A user was created, a file uploaded and found, deleted and not found, restored and found."""
    assert json.loads(output.splitlines()[-1]) == [[TEXT], [], [TEXT]]


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("openapi_typescript", marks=pytest.mark.slow),
        pytest.param("hey_api", marks=pytest.mark.torture),
        pytest.param("swagger_typescript_api", marks=pytest.mark.torture),
    ],
)
def test_a_generated_typescript_client_does_the_main_job(server: RunningServer, name: str) -> None:
    packages = node.installed(HERE / "node")
    programs = packages / "node_modules" / ".bin"
    with tempfile.TemporaryDirectory(dir=packages) as made:  # Node searches modules in the folders above
        folder = Path(made)
        write_schema(server, folder)
        generator, *arguments = TYPESCRIPT[name]
        run(folder, programs / generator, *arguments)
        shutil.copy(HERE / "node" / f"{name}.ts", folder / "main.ts")
        run(folder, programs / "tsc", *STRICT, "--types", "node", "main.ts")
        bundle = ["--bundle", "--platform=node", "--format=esm", "--outfile=main.mjs", "--log-level=error"]
        run(folder, programs / "esbuild", "main.ts", *bundle)
        assert_main_job(run(folder, "node", "main.mjs", server.url))


def python_of_generator() -> Path:
    """Return the Python of an environment with the pinned generator, made once."""
    requirements = HERE / "python" / "requirements.txt"
    folder = node.CACHE / f"python-{hashlib.sha256(requirements.read_bytes()).hexdigest()[:16]}"
    python = folder / "bin" / "python"
    if not (folder / "complete").exists():
        run(HERE, sys.executable, "-m", "venv", "--clear", folder)
        run(HERE, python, "-m", "pip", "install", "--quiet", "--requirement", requirements)
        (folder / "complete").touch()
    return python


@pytest.mark.torture
def test_a_generated_python_client_does_the_main_job(server: RunningServer, tmp_path: Path) -> None:
    python = python_of_generator()
    write_schema(server, tmp_path)
    made = tmp_path / "made"
    generate = ["generate", "--path", "schema.json", "--output-path", made]
    said = run(tmp_path, "env", f"PATH={python.parent}", python.parent / "openapi-python-client", *generate)
    assert "WARNING" not in said
    shutil.copy(HERE / "python" / "main.py.txt", made / "main.py")
    run(made, python, "-m", "mypy", "--strict", "memory_gateway_client", "main.py")
    assert_main_job(run(made, python, "main.py", server.url))
