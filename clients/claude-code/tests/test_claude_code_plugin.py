"""The hooks of the Claude Code plugin with inputs as Claude Code 2.1.197 gives them, on a running gateway."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import time
import tomllib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
import requests

from tests.canaries import CANARIES, FACTS
from tests.forked import PROJECT
from tests.node import installed
from tests.pauses import APPLICATION, PROVISIONING, pause, resume
from tests.server import RunningServer, free_port, running_server

PLUGIN = PROJECT / "clients" / "claude-code"
START = datetime(2026, 6, 1, 10, tzinfo=UTC)
BUDGET_SECONDS = 2.0
NUMBERS = count(1)
pytestmark = pytest.mark.skipif(shutil.which("node") is None, reason="needs Node")


class Session:
    """A session of Claude Code: its transcript grows, and hooks run."""

    def __init__(self, person: Person) -> None:
        self.person = person
        self.id = str(uuid4())
        self.transcript = person.folder / f"{self.id}.jsonl"
        self._minutes = count()

    def write(self, kind: str, content: Any, **fields: Any) -> None:
        """Append an entry to the transcript."""
        at = START + timedelta(minutes=next(self._minutes), days=next(NUMBERS))
        entry = {
            "parentUuid": str(uuid4()), "isSidechain": False, "type": kind, "uuid": str(uuid4()),
            "message": {"role": kind, "content": content}, "timestamp": at.isoformat().replace("+00:00", ".000Z"),
            "userType": "external", "cwd": "/project", "sessionId": self.id, "version": "2.1.197", **fields,
        }  # fmt: skip
        with self.transcript.open("a", encoding="utf-8") as file:
            file.write(json.dumps(entry) + "\n")

    def hook(self, event: str, **fields: Any) -> str:
        """Run a hook as Claude Code does and return the additional context."""
        common = {"session_id": self.id, "transcript_path": str(self.transcript), "cwd": "/project"}
        done = run_node("hook.js", self.person.env, stdin=json.dumps(common | {"hook_event_name": event} | fields))
        assert done.returncode == 0, done.stderr
        if done.stderr:
            self.person.errors.append(done.stderr)
        if not done.stdout:
            return ""
        output = json.loads(done.stdout)["hookSpecificOutput"]
        assert output["hookEventName"] == event
        context: str = output["additionalContext"]
        return context

    def start(self, source: str = "startup") -> str:
        return self.hook("SessionStart", source=source)

    def prompt(self, text: str) -> str:
        """Submit a prompt and return what is added to it. The transcript has both, the context as an attachment."""
        context = self.hook("UserPromptSubmit", permission_mode="default", prompt=text, prompt_id=str(uuid4()))
        self.write("user", text, promptSource="sdk")
        if context:
            attached = {"type": "hook_additional_context", "content": [context], "hookName": "UserPromptSubmit"}
            self.write("attachment", "", attachment=attached)
        return context

    def reply(self, *blocks: dict[str, Any] | str) -> None:
        """Answer, with text and calls of tools, and end the turn."""
        content = [{"type": "text", "text": one} if isinstance(one, str) else one for one in blocks]
        self.write("assistant", content)
        said = [one["text"] for one in content if one["type"] == "text"]
        self.stop(said[-1] if said else "")

    def stop(self, last: str) -> None:
        self.hook("Stop", permission_mode="default", stop_hook_active=False, last_assistant_message=last)

    def turn(self, text: str, reply: str = "Understood.") -> str:
        context = self.prompt(text)
        self.reply(reply)
        return context


class Person:
    """A user of the gateway with their own Claude Code."""

    def __init__(self, server: RunningServer, folder: Path) -> None:
        user_id = f"user_{next(NUMBERS)}"
        answer = requests.post(f"{server.url}/users", json={"user_id": user_id}, headers=APPLICATION, timeout=30)
        self.headers = {"Authorization": f"Bearer {answer.json()['user_key']}"}
        self.url = server.url
        self.errors: list[str] = []
        self.folder = folder / user_id
        self.folder.mkdir()
        self.env = {
            "MEMORY_GATEWAY_BASE_URL": server.url,
            "MEMORY_GATEWAY_USER_ID": user_id,
            "MEMORY_GATEWAY_USER_KEY": answer.json()["user_key"],
            "CLAUDE_PLUGIN_DATA": str(self.folder / "data"),
        }

    def session(self) -> Session:
        return Session(self)

    def memories(self) -> list[dict[str, Any]]:
        answer = requests.get(f"{self.url}/memories?limit=100", headers=self.headers, timeout=30)
        found: list[dict[str, Any]] = answer.json()["memories"]
        return found

    def texts(self) -> list[str]:
        return [memory["text"] for memory in reversed(self.memories())]


def run_node(script: str, env: dict[str, str], stdin: str = "") -> subprocess.CompletedProcess[str]:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("MEMORY_GATEWAY_")}
    command = ["node", str(PLUGIN / script)]
    return subprocess.run(
        command, input=stdin, env=inherited | env, capture_output=True, text=True, timeout=60, check=False
    )


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    env = {"MEMORY_GATEWAY_PROVISIONING_TOKEN": PROVISIONING}
    with running_server(tmp_path_factory.mktemp("claude-code"), **env) as started:
        yield started


@pytest.fixture
def ann(server: RunningServer, tmp_path: Path) -> Person:
    return Person(server, tmp_path)


@pytest.fixture
def bob(server: RunningServer, tmp_path: Path) -> Person:
    return Person(server, tmp_path)


def test_a_fact_of_one_session_is_in_the_context_of_the_next(ann: Person) -> None:
    assert ann.session().turn("My bicycle is blue.") == ""
    context = ann.session().prompt("Which color has my bicycle?")
    assert context.startswith("<relevant-memories>")
    assert context.endswith("</relevant-memories>")
    assert "My bicycle is blue." in context
    assert "untrusted" in context


def test_a_session_starts_with_the_profile_and_the_facts(ann: Person) -> None:
    assert ann.session().start() == ""
    changes = {"content": {"occupation": "architect"}}
    requests.patch(f"{ann.url}/api/v1/memories/user", json=changes, headers=ann.headers, timeout=30)
    args = {"text": "We decided to write <b>tests</b> first.", "category": "user_memory_decision"}
    requests.post(
        f"{ann.url}/tools/invoke", json={"tool": "memory_store", "args": args}, headers=ann.headers, timeout=30
    )
    context = ann.session().start("compact")
    assert "architect" in context
    assert "We decided to write &lt;b&gt;tests&lt;/b&gt; first." in context
    assert "untrusted" in context


def test_a_turn_is_captured_once(ann: Person) -> None:
    session = ann.session()
    session.turn("My cat is gray.")
    session.stop("Understood.")
    session.hook("PreCompact", trigger="auto", custom_instructions="")
    session.hook("SessionEnd", reason="other")
    shutil.rmtree(ann.folder / "data")  # also by another installation
    session.stop("Understood.")
    assert ann.texts() == ["My cat is gray.", "Understood."]
    assert {memory["session_id"] for memory in ann.memories()} == {f"session:{session.id}"}


def test_what_was_said_in_a_pause_stays_away_when_it_is_sent_again(ann: Person) -> None:
    session = ann.session()
    session.turn("My cat is gray.")
    pause(ann.url, ann.env["MEMORY_GATEWAY_USER_KEY"])
    session.turn("My heron is a secret.", "No word of the heron.")
    resume(ann.url, ann.env["MEMORY_GATEWAY_USER_ID"])
    shutil.rmtree(ann.folder / "data")  # another installation sends the whole transcript
    session.stop("No word of the heron.")
    session.hook("SessionEnd", reason="other")
    session.turn("My dog is brown.", "A brown dog.")
    assert ann.texts() == ["My cat is gray.", "Understood.", "My dog is brown.", "A brown dog."]


def test_what_claude_code_writes_itself_is_not_captured(ann: Person) -> None:
    session = ann.session()
    session.prompt("Read the notes.")
    session.write("user", "Caveat: made by the harness.", isMeta=True)
    session.write("user", "<command-name>/cost</command-name>")
    session.write("user", "This session continues another one.", isCompactSummary=True)
    session.write("assistant", [{"type": "text", "text": "A subagent speaks."}], isSidechain=True)
    session.write("assistant", [{"type": "thinking", "thinking": "Hm."}, {"type": "text", "text": "I look."}])
    session.write("assistant", [{"type": "tool_use", "id": "toolu_1", "name": "Read", "input": {"file_path": "a"}}])
    session.write("user", [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "The notes."}])
    session.reply("They are short.")
    assert ann.texts() == ["Read the notes.", "I look.", "They are short."]


def test_tools_are_captured_if_asked_for_except_those_of_the_memory(ann: Person) -> None:
    ann.env["MEMORY_GATEWAY_FULL_CONTEXT"] = "1"
    session = ann.session()
    session.prompt("Read the notes.")
    session.write("assistant", [{"type": "tool_use", "id": "toolu_1", "name": "Read", "input": {"file_path": "a"}}])
    session.write(
        "user", [{"type": "tool_result", "tool_use_id": "toolu_1", "content": [{"type": "text", "text": "Tea."}]}]
    )
    recall = {
        "type": "tool_use",
        "id": "toolu_2",
        "name": "mcp__plugin_memory-gateway_memory__memory_search",
        "input": {},
    }
    session.write("assistant", [recall])
    session.write("user", [{"type": "tool_result", "tool_use_id": "toolu_2", "content": "RECALLED"}])
    session.reply("They are short.")
    assert ann.texts() == ["Read the notes.", 'Read {"file_path":"a"}', "Read: Tea.", "They are short."]


@pytest.mark.parametrize("turns", [12, pytest.param(1000, marks=pytest.mark.torture)])
@pytest.mark.slow
def test_nothing_recalled_is_captured_again(ann: Person, turns: int) -> None:
    """The model quotes what was added to its prompt in each reply. On a busy machine a hook may run out of time."""
    session = ann.session()
    for fact in FACTS:
        session.turn(fact)
    recalled = 0
    for number in range(turns):
        is_new = number % 5 == 0
        name = CANARIES[number % len(CANARIES)]
        session = ann.session() if is_new else session
        context = session.start() if is_new else ""
        context += session.prompt(f"What do you know of {name}, {number}?")
        recalled += "<relevant-memories>" in context
        session.reply(f"You wrote: {context}")
    assert recalled > 0.9 * turns, ann.errors
    found: list[str] = []
    query: dict[str, Any] | None = {"limit": 100}
    while query:
        page = requests.get(f"{ann.url}/memories", params=query, headers=ann.headers, timeout=30).json()
        found += [memory["text"] for memory in page["memories"]]
        query = page["next_cursor"] and {"limit": 100, "cursor": page["next_cursor"]}
    assert sorted(text for text in found if "sings" in text or "[id:" in text) == FACTS
    assert len(found) > 0.9 * 2 * turns, ann.errors


def test_without_a_gateway_nothing_is_added(ann: Person) -> None:
    ann.env["MEMORY_GATEWAY_BASE_URL"] = f"http://127.0.0.1:{free_port()}"
    session = ann.session()
    assert session.start() == session.turn("Hello.") == ""


@pytest.mark.slow
def test_a_gateway_that_hangs_costs_two_seconds_and_no_turn(ann: Person, server: RunningServer) -> None:
    session = ann.session()
    session.turn("My sister lives in Oslo.")
    os.killpg(server.pid, signal.SIGSTOP)
    try:
        for run in (
            session.start,
            lambda: session.prompt("Where does my sister work?"),
            lambda: session.reply("Where?"),
        ):
            began = time.monotonic()
            assert not run()
            assert time.monotonic() - began < BUDGET_SECONDS + 1.0  # to start Node on a busy machine
    finally:
        os.killpg(server.pid, signal.SIGCONT)
    session.turn("She sells maps.")
    assert ann.texts()[2:] == ["Where does my sister work?", "Where?", "She sells maps.", "Understood."]


def test_an_answer_that_stops_halfway_costs_two_seconds(ann: Person) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener, ThreadPoolExecutor() as pool:
        ann.env["MEMORY_GATEWAY_BASE_URL"] = f"http://127.0.0.1:{listener.getsockname()[1]}"
        accepted = pool.submit(listener.accept)
        began = time.monotonic()
        running = pool.submit(ann.session().prompt, "Where does my sister work?")
        with accepted.result(timeout=30)[0] as connection:
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{}")
            assert running.result(timeout=30) == ""
    assert time.monotonic() - began < BUDGET_SECONDS + 1.0


def test_two_keys_never_see_each_other(ann: Person, bob: Person) -> None:
    ann.session().turn("My piano is in the cellar.")
    bob.session().turn("My piano is in the attic.")
    for person, own, other in ((ann, "cellar", "attic"), (bob, "attic", "cellar")):
        context = person.session().prompt("Where is my piano?")
        assert own in context
        assert other not in context


def test_what_was_forgotten_does_not_return(ann: Person) -> None:
    session = ann.session()
    session.turn("My parrot is called Otto.")
    [memory, _] = reversed(ann.memories())
    session.prompt("Forget the name of my parrot.")
    forget = {"type": "tool_use", "id": "toolu_1", "name": "mcp__memory__memory_forget", "input": {"memoryId": "m"}}
    session.write("assistant", [forget])
    session.write("user", [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "Forgotten: called Otto."}])
    requests.delete(f"{ann.url}/memories/{memory['id']}", json={}, headers=ann.headers, timeout=30)
    session.reply("I forgot that it is called Otto.")
    shutil.rmtree(ann.folder / "data")
    session.hook("SessionEnd", reason="clear")
    assert "Otto" not in ann.session().prompt("What is the name of my parrot?")
    assert "Otto" not in json.dumps(ann.memories())


def test_a_damaged_input_is_no_error_of_claude_code(ann: Person) -> None:
    for stdin in (
        "",
        "no JSON",
        "{}",
        json.dumps({"hook_event_name": "Stop", "session_id": "x", "transcript_path": "/no"}),
    ):
        done = run_node("hook.js", ann.env, stdin=stdin)
        assert (done.returncode, done.stdout) == (0, "")
        assert done.stderr.startswith("memory-gateway: ")


@pytest.mark.parametrize(
    ("change", "finding"),
    [
        ({"MEMORY_GATEWAY_BASE_URL": ""}, "missing URL: "),
        ({"MEMORY_GATEWAY_BASE_URL": "127.0.0.1:8010"}, "wrong URL: "),
        ({"MEMORY_GATEWAY_BASE_URL": "http://memory.example.org"}, "http on a remote host: memory.example.org "),
        ({"MEMORY_GATEWAY_BASE_URL": "http://127.0.0.1:1"}, "gateway away: "),
        ({"MEMORY_GATEWAY_USER_ID": ""}, "missing user: "),
        ({"MEMORY_GATEWAY_USER_ID": "u_other"}, "wrong key: "),
        ({"MEMORY_GATEWAY_USER_KEY": ""}, "missing key: "),
        ({"MEMORY_GATEWAY_USER_KEY": "uk_wrong"}, "wrong key: "),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_the_doctor_names_a_misconfiguration(ann: Person, change: dict[str, str], finding: str) -> None:
    done = run_node("doctor.js", ann.env | change)
    assert done.stdout.startswith(finding), done.stdout + done.stderr
    assert done.returncode == 1
    if "remote" in finding:
        ann.env |= change
        assert ann.session().prompt("Hello.") == ""  # the key stays here


def test_the_doctor_finds_nothing_wrong(ann: Person) -> None:
    done = run_node("doctor.js", ann.env)
    assert (done.returncode, done.stdout) == (0, "Memory Gateway works.\n")


@pytest.mark.parametrize("content", ["../openclaw/gateway.js", None])
def test_a_checkout_without_symbolic_links_is_named(ann: Person, tmp_path: Path, content: str | None) -> None:
    """Git writes the target of a link as text where it makes no links; `npm pack` leaves links out."""
    folder = tmp_path / "plugin"
    shutil.copytree(PLUGIN, folder, ignore=shutil.ignore_patterns("tests"))
    for name in ("gateway.js", "transcript.js"):
        (folder / name).unlink()
        if content:
            (folder / name).write_text(content)
    done = run_node(str(folder / "doctor.js"), ann.env)
    assert (done.returncode, done.stdout.startswith("missing links: ")) == (1, True), done.stdout + done.stderr
    done = run_node(str(folder / "hook.js"), ann.env, stdin="{}")
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr.startswith("memory-gateway: missing links: ")


@pytest.mark.slow
def test_the_types_are_strict() -> None:
    packages = installed(PROJECT / "clients" / "typescript") / "node_modules"
    command = [str(packages / ".bin" / "tsc"), "--typeRoots", str(packages / "@types")]
    done = subprocess.run(command, cwd=PLUGIN, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout


def test_the_manifests_agree() -> None:
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    manifest = json.loads((PLUGIN / ".claude-plugin" / "plugin.json").read_text(encoding="utf-8"))
    assert manifest["version"] == project["version"]
    marketplace = json.loads((PROJECT / ".claude-plugin" / "marketplace.json").read_text(encoding="utf-8"))
    assert [one["name"] for one in marketplace["plugins"]] == [manifest["name"]]
    assert (PROJECT / marketplace["plugins"][0]["source"]).resolve() == PLUGIN
    hooks = json.loads((PLUGIN / "hooks" / "hooks.json").read_text(encoding="utf-8"))["hooks"]
    assert set(hooks) == {"SessionStart", "UserPromptSubmit", "Stop", "PreCompact", "SessionEnd"}
    [memory] = json.loads((PLUGIN / ".mcp.json").read_text(encoding="utf-8"))["mcpServers"].values()
    assert memory["url"] == "${MEMORY_GATEWAY_BASE_URL}/mcp"
