"""The contract once more, on the EverOS that the gateway document was written against."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import requests

from tests import everos
from tests.forked import PROJECT
from tests.server import free_port

VERSION = "1.0.1"
LEAST_TESTS = 100


@pytest.mark.torture
def test_the_contract_holds_on_the_first_everos() -> None:
    ports = {"UPSTREAM_PORT": str(free_port()), "STUB_PORT": str(free_port())}
    with everos.started(EVEROS_VERSION=VERSION, **ports) as service:
        health = requests.get(f"{service.url}/health", timeout=30).json()
        assert health == {"status": "ok"}  # later ones say their version
        env = {
            **os.environ,
            "RUN_BACKEND_INTEGRATION": "1",
            "RUN_BACKEND_INGEST_INTEGRATION": "1",
            "UPSTREAM_URL": service.url,
            "STUB_PORT": str(urlsplit(service.llm_url).port),
        }
        command = [
            sys.executable,
            "-m",
            "pytest",
            str(Path(__file__).parent),
            "-q",
            "-k",
            "everos",
            "-p",
            "no:cacheprovider",
        ]
        ran = subprocess.run(command, cwd=PROJECT, env=env, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout
    passed = re.search(r"(\d+) passed", ran.stdout)
    assert passed
    assert int(passed[1]) >= LEAST_TESTS, ran.stdout
