"""The client as an agent runs it, on Python's standard library alone, against a running gateway."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.server import RunningServer, running_server
from tests.skill.conftest import SCRIPT

MAX_UPLOAD_BYTES = 8 * 2**20


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    folder = tmp_path_factory.mktemp("skill")
    with running_server(folder, MEMORY_GATEWAY_MAX_UPLOAD_BYTES=str(MAX_UPLOAD_BYTES)) as started:
        yield started


class Agent:
    """Runs the script in a process of its own; `-I -S` leaves it nothing but the standard library."""

    def __init__(self, server: RunningServer, user_id: str) -> None:
        names = ("PATH", "SYSTEMROOT")
        self.environ = {name: os.environ[name] for name in names if name in os.environ}
        self.environ |= {"MEMORY_GATEWAY_BASE_URL": server.url, "MEMORY_GATEWAY_USER_ID": user_id, "LC_ALL": "C"}
        self.environ["MEMORY_GATEWAY_USER_KEY"] = self.ask("create-user")["user_key"]

    def run(self, *arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-I", "-S", str(SCRIPT), *arguments],
            env={**self.environ, **environ},
            capture_output=True,
            encoding="utf-8",
            timeout=60,
            check=False,
        )

    def ask(self, *arguments: str) -> Any:
        done = self.run(*arguments)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)


def test_a_user_uploads_a_file_finds_what_is_in_it_and_deletes_it(server: RunningServer, tmp_path: Path) -> None:
    agent = Agent(server, "uploader")
    assert agent.ask("health")["status"] == "ok"
    contract = tmp_path / "付款 合同.txt"
    contract.write_text("付款期限为收到发票后三十天内。\n", encoding="utf-8")

    uploaded = agent.ask("upload-resource", str(contract), "--title", "合同文件")
    assert uploaded["status"] == "extracted"
    [listed] = agent.ask("list-resources")["resources"]
    assert (listed["filename"], listed["title"]) == ("付款 合同.txt", "合同文件")
    assert agent.ask("get-resource", uploaded["resource_id"])["resources"] == [listed]
    [found] = agent.ask("search-memory", "发票", "--method", "keyword")["results"]
    assert found["resource_uri"] == uploaded["uri"]
    copy = tmp_path / "copy.txt"
    agent.ask("download-resource", uploaded["resource_id"], "--output", str(copy))
    assert copy.read_bytes() == contract.read_bytes()

    assert agent.ask("delete-resource", uploaded["resource_id"])["status"] == "deleted"
    assert agent.ask("list-resources") == {"resources": []}
    assert agent.ask("search-memory", "发票", "--method", "keyword")["results"] == []


def test_keys_are_issued_rotated_and_revoked(server: RunningServer) -> None:
    agent = Agent(server, "keeper")
    laptop = agent.ask("issue-key", "--label", "laptop")
    rotated = agent.ask("rotate-key", "--grace-seconds", "0")
    assert agent.run("list-keys").returncode == 3
    agent.environ["MEMORY_GATEWAY_USER_KEY"] = rotated["user_key"]
    assert agent.ask("revoke-key", laptop["key_id"])["status"] == "revoked"
    assert [key["is_live"] for key in agent.ask("list-keys")["keys"]] == [True, False, False]


def test_the_key_of_another_user_is_refused_in_one_sentence(server: RunningServer) -> None:
    agent = Agent(server, "somebody")
    for line in (["list-resources"], ["search-memory", "q"], ["upload-resource", str(SCRIPT)]):
        done = agent.run(*line, MEMORY_GATEWAY_USER_ID="somebody_else")
        assert done.returncode == 3
        assert done.stderr.startswith("error: ")
        assert done.stderr.count("\n") == 1
        assert "401" in done.stderr


def test_a_file_that_is_refused_while_it_is_sent_gets_the_gateways_answer(
    server: RunningServer, tmp_path: Path
) -> None:
    large = tmp_path / "large.txt"
    with large.open("wb") as file:
        file.truncate(MAX_UPLOAD_BYTES * 3)
    done = Agent(server, "hoarder").run("upload-resource", str(large))
    assert done.returncode == 3
    assert "(413 too_large)" in done.stderr


def test_nobody_listening_ends_with_exit_code_4(server: RunningServer) -> None:
    done = Agent(server, "lonely").run("health", MEMORY_GATEWAY_BASE_URL="http://127.0.0.1:1")
    assert (done.returncode, done.stdout) == (4, "")
