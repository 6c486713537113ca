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
    """Runs the script in its own process; `-I -S` leaves it nothing but the standard library."""

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
    [deleted] = agent.ask("list-resources", "--deleted")["resources"]
    assert agent.ask("restore-resource", deleted["resource_id"]) == uploaded
    assert len(agent.ask("search-memory", "发票", "--method", "keyword")["results"]) == 1


def test_what_was_remembered_is_corrected_deleted_and_restored(server: RunningServer, tmp_path: Path) -> None:
    agent = Agent(server, "corrector")
    (tmp_path / "note.txt").write_text("会议在星期二举行。", encoding="utf-8")
    session_id = agent.ask("upload-resource", str(tmp_path / "note.txt"))["session_id"]
    [found] = agent.ask("search-memory", "会议", "--method", "keyword")["results"]
    memory = (found["id"], "--session-id", session_id)

    assert agent.ask("update-memory", *memory, "--text", "会议在星期四举行。")["status"] == "active"
    [found] = agent.ask("search-memory", "星期四", "--method", "keyword")["results"]
    assert (found["id"], found["text"]) == (memory[0], "会议在星期四举行。")
    assert agent.ask("get-memory", memory[0])["memory"]["text"] == "会议在星期四举行。"
    assert agent.ask("remove-override", memory[0])["status"] == "undone"

    assert agent.ask("delete-memory", *memory, "--reason", "过时")["status"] == "deleted"
    assert agent.ask("search-memory", "会议", "--method", "keyword")["results"] == []
    assert [item["reason"] for item in agent.ask("list-trash")["trash"]] == ["过时"]
    assert agent.ask("restore-memory", *memory)["status"] == "restored"
    assert [item["text"] for item in agent.ask("list-memories", "--session-id", session_id)["memories"]] == [
        "会议在星期二举行。"
    ]


def test_what_was_said_is_added_flushed_found_corrected_and_deleted(server: RunningServer, tmp_path: Path) -> None:
    agent = Agent(server, "talker")
    (tmp_path / "钟.wav").write_bytes(b"RIFF\x24\x00\x00\x00WAVEfmt ")
    chat = ("search-memory", "--method", "keyword", "--conversation-id", "c_1")

    said = ("add-memory", "chat:c_1", "--timestamp", "1781172177000", "--text", "记住:我偏好简洁的中文说明")
    assert agent.ask(*said, "--attach", str(tmp_path / "钟.wav"))["session_id"] == "chat:c_1"
    agent.ask("add-memory", "chat:c_1", "--role", "assistant", "--sender-id", "helper", "--text", "好的,我会简洁。")
    assert agent.ask("flush-memory", "chat:c_1")["session_id"] == "chat:c_1"

    found = {item["text"]: item for item in agent.ask(*chat, "中文说明")["results"]}
    [text] = [text for text in found if "偏好简洁的中文说明" in text]
    memory = (found[text]["id"], "--session-id", "chat:c_1")
    agent.ask("update-memory", *memory, "--text", "用户偏好详细的英文说明")
    [corrected] = [item for item in agent.ask(*chat, "英文说明")["results"] if item["id"] == memory[0]]
    assert corrected["text"] == "用户偏好详细的英文说明"

    agent.ask("delete-memory", *memory)
    assert memory[0] not in [item["id"] for item in agent.ask(*chat, "英文说明")["results"]]
    assert [item["session_id"] for item in agent.ask("list-sessions")["sessions"]] == ["chat:c_1"]
    assert agent.ask("delete-session", "chat:c_1")["status"] == "deleted"
    assert agent.ask(*chat, "简洁")["results"] == []
    assert agent.ask("restore-session", "chat:c_1")["status"] == "restored"
    assert agent.ask(*chat, "简洁")["results"]


def test_keys_are_issued_rotated_and_revoked(server: RunningServer) -> None:
    agent = Agent(server, "keeper")
    laptop = agent.ask("issue-key", "--label", "laptop")
    rotated = agent.ask("rotate-key", "--grace-seconds", "0")
    assert agent.run("list-keys").returncode == 3
    agent.environ["MEMORY_GATEWAY_USER_KEY"] = rotated["user_key"]
    assert agent.ask("revoke-key", laptop["key_id"])["status"] == "revoked"
    assert [key["is_live"] for key in agent.ask("list-keys")["keys"]] == [True, False, False]


def test_brief_results_have_texts_and_sources_alone(server: RunningServer, tmp_path: Path) -> None:
    agent = Agent(server, "brief")
    (tmp_path / "note.txt").write_text("会议在星期二举行。", encoding="utf-8")
    uploaded = agent.ask("upload-resource", str(tmp_path / "note.txt"))
    agent.ask("add-memory", "chat:c_1", "--text", "I prefer meetings on Tuesday.", "--timestamp", "1780300800000")
    for line in (
        ["search-memory", "会议", "--brief"],
        ["list-memories", "--session-id", uploaded["session_id"], "--brief"],
    ):
        [found] = next(iter(agent.ask(*line).values()))
        assert found.keys() <= {
            "id",
            "session_id",
            "text",
            "resource_uri",
            "files",
            "category",
            "sender_id",
            "timestamp_ms",
        }
        assert found["text"] == "会议在星期二举行。"
    [said] = agent.ask("search-memory", "meetings Tuesday", "--brief")["results"]
    assert (said["session_id"], said["text"]) == ("chat:c_1", "I prefer meetings on Tuesday.")


# --- keys in files ----------------------------------------------------------------------------------------------------


def saved_key(path: Path) -> str:
    assert path.stat().st_mode & 0o777 == 0o600
    assert [name.name for name in path.parent.iterdir()] == [path.name]
    return path.read_text(encoding="ascii").strip()


@pytest.mark.slow
def test_a_rotated_key_is_in_its_file_before_the_old_one_ends(server: RunningServer, tmp_path: Path) -> None:
    agent = Agent(server, "saver")
    path = tmp_path / "key"
    old = agent.environ["MEMORY_GATEWAY_USER_KEY"]
    for _ in range(2):
        rotated = agent.run("rotate-key", "--save", str(path), "--grace-seconds", "0")
        assert rotated.returncode == 0, rotated.stderr
        assert "uk_" not in rotated.stdout + rotated.stderr
        assert agent.run("list-keys").returncode == 3
        agent.environ["MEMORY_GATEWAY_USER_KEY"] = saved_key(path)
        assert agent.run("list-keys").returncode == 0
    assert saved_key(path) != old


def test_other_new_keys_are_saved_too(server: RunningServer, tmp_path: Path) -> None:
    agent = Agent(server, "issuer")
    path = tmp_path / "key"
    for line in (["issue-key", "--label", "laptop"], ["create-user", "issuer.2"]):
        answer = agent.ask(*line, "--save", str(path))
        assert "user_key" not in answer
        user_id = answer.get("user_id", "issuer")
        environ = {"MEMORY_GATEWAY_USER_KEY": saved_key(path), "MEMORY_GATEWAY_USER_ID": user_id}
        assert agent.run("list-keys", **environ).returncode == 0


@pytest.mark.slow
def test_a_file_that_cannot_be_written_leaves_the_old_key(server: RunningServer, tmp_path: Path) -> None:
    agent = Agent(server, "careful")
    (tmp_path / "folder").mkdir()
    for path in (tmp_path / "absent" / "key", tmp_path / "folder", Path("/dev/full/key")):
        done = agent.run("rotate-key", "--save", str(path), "--grace-seconds", "0")
        assert done.returncode == 2
        assert "cannot be written" in done.stderr
        assert agent.run("list-keys").returncode == 0
    assert agent.ask("rotate-key", "--save", str(tmp_path / "key"))["saved_to"] == str(tmp_path / "key")
    assert agent.run("list-keys").returncode == 0  # for a day


def test_the_key_of_another_user_is_refused_in_one_sentence(server: RunningServer) -> None:
    agent = Agent(server, "somebody")
    for line in (["list-resources"], ["search-memory", "q"], ["upload-resource", str(SCRIPT)]):
        done = agent.run(*line, MEMORY_GATEWAY_USER_ID="somebody_else")
        assert done.returncode == 3
        assert done.stderr.startswith("error: ")
        assert done.stderr.count("\n") == 1
        assert "403" in done.stderr


def test_a_file_that_is_refused_while_it_is_sent_gets_the_gateways_answer(
    server: RunningServer, tmp_path: Path
) -> None:
    large = tmp_path / "large.txt"
    with large.open("wb") as file:
        file.truncate(MAX_UPLOAD_BYTES * 3)
    done = Agent(server, "hoarder").run("upload-resource", str(large))
    assert done.returncode == 3
    assert "(413 too_large)" in done.stderr


def test_a_closed_port_ends_with_exit_code_4(server: RunningServer) -> None:
    done = Agent(server, "lonely").run("health", MEMORY_GATEWAY_BASE_URL="http://127.0.0.1:1")
    assert (done.returncode, done.stdout) == (4, "")
