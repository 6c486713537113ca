"""The packed plugin in OpenClaw from npm, with stand-ins for the model and for Telegram, on a running gateway."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import time
import tomllib
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import requests
from stand_ins import StandIns, running_stand_ins

from tests.canaries import CANARIES, FACTS
from tests.forked import PROJECT
from tests.node import installed
from tests.server import RunningServer, free_port, running_server, wait_until

PLUGIN = PROJECT / "clients" / "openclaw"
NODE = PLUGIN / "tests" / "node"
ID = "memory-gateway"
SENDERS = range(1, 13)
BUDGET_SECONDS = 2.0
Config = dict[str, Any]


class OpenClaw:
    """An installation of OpenClaw with its own home folder. `process` is its gateway, which talks to Telegram."""

    def __init__(self, home: Path, packages: Path) -> None:
        self.home = home
        self._command = [_node(packages), str(packages / "node_modules" / "openclaw" / "openclaw.mjs")]
        kept = {name: value for name, value in os.environ.items() if not name.startswith("OPENCLAW_")}
        node_folder = str(Path(self._command[0]).parent)
        self._env = {**kept, "HOME": str(home), "PATH": f"{node_folder}{os.pathsep}{kept['PATH']}", "NO_COLOR": "1"}
        self.file = home / ".openclaw" / "openclaw.json"
        self.file.parent.mkdir(parents=True)

    def run(self, *arguments: str, config: Config | None = None) -> subprocess.CompletedProcess[str]:
        env = dict(self._env)
        if config is not None:
            file = self.home / "other.json"
            file.write_text(json.dumps(config))
            env["OPENCLAW_CONFIG_PATH"] = str(file)
        command = [*self._command, *arguments]
        return subprocess.run(command, env=env, capture_output=True, text=True, timeout=180, check=False)

    @contextlib.contextmanager
    def gateway(self) -> Iterator[None]:
        with (self.home / "gateway.log").open("a") as log:
            command = [*self._command, "gateway", "run"]
            process = subprocess.Popen(command, env=self._env, stdout=log, stderr=log, start_new_session=True)
        try:
            yield
        finally:
            os.killpg(process.pid, signal.SIGTERM)
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()


class Rig:
    """The running parts, and a user for each of `SENDERS`."""

    def __init__(self, server: RunningServer, openclaw: OpenClaw, stand_ins: StandIns, keys: dict[int, str]) -> None:
        self.server = server
        self.openclaw = openclaw
        self.stand_ins = stand_ins
        self.keys = keys
        self._senders = iter(SENDERS)

    def person(self) -> Person:
        return Person(self, next(self._senders))


class Person:
    """A Telegram user of the agent."""

    def __init__(self, rig: Rig, sender: int) -> None:
        self.sender = sender
        self._rig = rig

    def say(self, text: str) -> str:
        """Say something and return the agent's reply, once the turn is captured."""
        reply = self._rig.stand_ins.say(self.sender, text)
        if not text.startswith(("/", "CALL memory_forget")):
            wait_until(lambda: any(text == memory["text"] for memory in self.memories(limit=10)))
        return reply

    def prompt(self, text: str) -> str:
        """Say something and return the messages that the model got for it."""
        self.say(text)
        return self._rig.stand_ins.prompts[-1]

    def memories(self, limit: int = 100) -> list[dict[str, Any]]:
        """The latest memories, newest first."""
        headers = {"Authorization": f"Bearer {self._rig.keys[self.sender]}"}
        answer = requests.get(f"{self._rig.server.url}/memories?limit={limit}", headers=headers, timeout=30)
        found: list[dict[str, Any]] = answer.json()["memories"]
        return found


def _node(packages: Path) -> str:
    """OpenClaw needs a newer Node than the tests do."""
    found = sorted(packages.glob("node_modules/node-linux-*/bin/node"))
    if not found:
        pytest.skip("npm has no Node 24 for this platform")
    return str(found[0])


@pytest.fixture(scope="module")
def packages() -> Path:
    return installed(NODE)


@pytest.fixture(scope="module")
def rig(packages: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    folder = tmp_path_factory.mktemp("openclaw")
    openclaw, port = OpenClaw(folder / "home", packages), free_port()
    with running_server(folder) as server, running_stand_ins(port) as stand_ins:
        keys = {sender: _create_user(server, f"u_{sender}") for sender in SENDERS}
        openclaw.file.write_text(json.dumps(_config(folder, server.url, keys, port)))
        _install(openclaw, folder)
        with openclaw.gateway():
            rig = Rig(server, openclaw, stand_ins, keys)
            stand_ins.say(max(SENDERS), "Hello.")  # the first reply takes up to minutes
            yield rig


def _create_user(server: RunningServer, user_id: str) -> str:
    answer = requests.post(f"{server.url}/users", json={"user_id": user_id}, timeout=30)
    key: str = answer.json()["user_key"]
    return key


def _install(openclaw: OpenClaw, folder: Path) -> None:
    """Pack the plugin and install it as a user does."""
    command = ["npm", "pack", "--silent", "--pack-destination", str(folder)]
    packed = subprocess.run(command, cwd=PLUGIN, capture_output=True, text=True, check=True).stdout.split()[-1]
    done = openclaw.run("plugins", "install", f"npm-pack:{folder / packed}", "--force", "--accept-capabilities")
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads(openclaw.file.read_text())["plugins"]["slots"]["memory"] == ID


def _config(folder: Path, url: str, keys: dict[int, str], port: int) -> Config:
    model = {"id": "m", "name": "m", "reasoning": False, "input": ["text"], "contextWindow": 200_000, "maxTokens": 1024}
    provider = {"baseUrl": f"http://127.0.0.1:{port}/v1", "apiKey": "k", "api": "openai-completions", "models": [model]}
    users = {f"telegram:{sender}": {"userId": f"u_{sender}", "apiKey": key} for sender, key in keys.items()}
    users["*"] = users["telegram:1"]
    entry = {"hooks": {"allowConversationAccess": True}, "config": {"url": url, "users": users}}
    telegram = {"botToken": "4096:t", "apiRoot": f"http://127.0.0.1:{port}", "streaming": {"mode": "off"}}
    return {
        "gateway": {"mode": "local", "port": free_port(), "auth": {"mode": "token", "token": "t"}},
        "agents": {
            "defaults": {"model": {"primary": "stub/m"}, "workspace": str(folder / "workspace"), "skipBootstrap": True}
        },
        "session": {"dmScope": "per-channel-peer"},
        "models": {"mode": "merge", "providers": {"stub": provider}},
        "channels": {"telegram": {"enabled": True, **telegram, "dmPolicy": "open", "allowFrom": ["*"]}},
        "plugins": {"entries": {ID: entry}},
    }


@pytest.mark.skipif(shutil.which("node") is None, reason="needs Node")
def test_the_parts_work() -> None:
    tests = [str(file) for file in (PLUGIN / "tests").glob("*.test.js")]
    done = subprocess.run(["node", "--test", *tests], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout


def test_the_version_is_that_of_the_gateway() -> None:
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert json.loads((PLUGIN / "package.json").read_text(encoding="utf-8"))["version"] == project["version"]


@pytest.fixture
def plugin(packages: Path, tmp_path: Path) -> Path:
    """A copy of the plugin beside the packages."""
    folder = tmp_path / "plugin"
    shutil.copytree(PLUGIN, folder, ignore=shutil.ignore_patterns("node", "*.py", "__pycache__"))
    (folder / "node_modules").symlink_to(packages / "node_modules")
    return folder


@pytest.mark.torture
@pytest.mark.parametrize("command", [["node_modules/typescript/bin/tsc"], ["--test", "tests/entry.js"]])
def test_the_plugin_fits_the_sdk(packages: Path, plugin: Path, command: list[str]) -> None:
    """Check the types, and run the hooks."""
    done = subprocess.run([_node(packages), *command], cwd=plugin, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


@pytest.mark.torture
def test_a_fact_of_one_session_is_in_the_prompt_of_the_next(rig: Rig) -> None:
    ann = rig.person()
    assert "relevant-memories>" not in ann.prompt("My bicycle is blue.")
    ann.say("/new")
    prompt = ann.prompt("Which color has my bicycle?")
    assert "My bicycle is blue." in prompt.partition("<relevant-memories>")[2].partition("</relevant-memories>")[0]
    turns = [memory["category"] for memory in ann.memories()]
    assert sorted(turns) == ["full_context_assistant"] * 2 + ["full_context_user"] * 2
    batches = rig.server.rows("SELECT COUNT(*) FROM store_memory WHERE batch_id <> '' GROUP BY batch_id")
    assert (2,) in batches


@pytest.mark.torture
def test_senders_never_see_each_others_memories(rig: Rig) -> None:
    ann, bob = rig.person(), rig.person()
    ann.say("My piano is in the cellar.")
    bob.say("My piano is in the attic.")
    for person, own, other in ((ann, "cellar", "attic"), (bob, "attic", "cellar")):
        person.say("/new")
        prompt = person.prompt("Where is my piano?")
        recalled = person.prompt('CALL memory_recall {"query": "piano"}')
        assert own in prompt
        assert own in recalled
        assert other not in prompt + recalled
    unknown = max(SENDERS) + 1
    known = sum(len(Person(rig, sender).memories()) for sender in SENDERS)
    rig.stand_ins.say(unknown, "Where is the piano?")
    rig.stand_ins.say(unknown, "And the cellar?")
    assert "relevant-memories>" not in rig.stand_ins.prompts[-1]
    assert sum(len(Person(rig, sender).memories()) for sender in SENDERS) == known


@pytest.mark.torture
def test_a_forgotten_fact_does_not_return(rig: Rig) -> None:
    ann = rig.person()
    ann.say("My parrot is called Otto.")
    ann.say("/new")
    assert "Otto" in ann.prompt("What is the name of my parrot?")
    ann.say('CALL memory_forget {"query": "My parrot is called Otto."}')
    assert "forgotten" in rig.stand_ins.prompts[-1].casefold()
    ann.say("/new")
    assert "Otto" not in ann.prompt("Tell me the name of the parrot.")
    assert [memory for memory in ann.memories() if "Otto" in memory["text"]] == []


@pytest.mark.torture
@pytest.mark.parametrize("turns", [20, 1000])
def test_nothing_recalled_is_captured_again(rig: Rig, turns: int) -> None:
    """The model quotes its whole prompt in each reply, with the memories in it."""
    ann = rig.person()
    for fact in FACTS:
        ann.say(fact)
    recalled = 0
    for number in range(turns):
        if number % 5 == 0:
            ann.say("/new")
        name = CANARIES[number % len(CANARIES)]
        recalled += "<relevant-memories>" in ann.prompt(f"QUOTE what you know of {name}, {number}.")
    assert recalled == turns
    mine = f"JOIN accounts_memoryuser u ON u.id = m.user_id AND u.user_id = 'u_{ann.sender}'"
    rows = rig.server.rows(
        f"SELECT m.text FROM store_memory m {mine} WHERE (m.text LIKE '%know of%' OR m.text LIKE '%canary%')"
    )
    assert len([text for (text,) in rows if text.startswith("You wrote")]) == turns
    assert sorted(text for (text,) in rows if "sings" in text or "[id:" in text) == FACTS


@pytest.mark.torture
def test_the_agent_answers_without_the_gateway(rig: Rig) -> None:
    ann = rig.person()
    ann.say("My sister lives in Oslo.")

    def seconds_of(text: str) -> float:
        start = time.monotonic()
        assert rig.stand_ins.say(ann.sender, text) == "Understood."
        return time.monotonic() - start

    usual = max(seconds_of(f"Where does my sister live, {number}?") for number in range(3))
    os.killpg(rig.server.pid, signal.SIGSTOP)
    try:
        without = [seconds_of(f"And my sister, {number}?") for number in range(3)]
    finally:
        os.killpg(rig.server.pid, signal.SIGCONT)
    assert max(without) < usual + BUDGET_SECONDS + 1.0
    assert "And my sister" not in json.dumps(ann.memories())
    said = count()

    def is_captured() -> bool:
        rig.stand_ins.say(ann.sender, f"Are you there, {next(said)}?")
        time.sleep(1)
        return sum("And my sister" in memory["text"] for memory in ann.memories()) == 3

    wait_until(is_captured, seconds=90)


@pytest.mark.torture
def test_the_doctor_names_each_misconfiguration(rig: Rig) -> None:
    config = json.loads(rig.openclaw.file.read_text())
    entry = config["plugins"]["entries"][ID]
    del entry["hooks"]["allowConversationAccess"]
    del config["session"]["dmScope"]
    del entry["config"]["users"]["*"]
    entry["config"]["users"]["telegram:1"]["apiKey"] = "uk_wrong"
    done = rig.openclaw.run(ID, "doctor", config=config)
    for finding in (
        "missing conversation access: ",
        "shared session: ",
        "missing key: agent main ",
        'wrong key: the gateway refuses users["telegram:1"] (401: ',
    ):
        assert f"\n{finding}" in f"\n{done.stdout}", done.stdout + done.stderr
    assert "telegram:2" not in done.stdout
    assert done.returncode == 1


@pytest.mark.torture
def test_the_doctor_names_a_gateway_that_is_away(rig: Rig) -> None:
    config = json.loads(rig.openclaw.file.read_text())
    config["plugins"]["entries"][ID]["config"]["url"] = f"http://127.0.0.1:{free_port()}"
    done = rig.openclaw.run(ID, "doctor", config=config)
    assert done.stdout.startswith("gateway away: "), done.stdout + done.stderr
    assert done.returncode == 1


@pytest.mark.torture
def test_openclaw_names_a_missing_slot(rig: Rig) -> None:
    """OpenClaw does not load the plugin without the slot, so the plugin has no command then."""
    config = json.loads(rig.openclaw.file.read_text())
    config["plugins"]["slots"]["memory"] = "memory-core"
    done = rig.openclaw.run("plugins", "doctor", config=config)
    assert f'{ID}: plugin disabled (memory slot set to "memory-core")' in done.stdout


@pytest.mark.torture
def test_the_doctor_finds_nothing_wrong(rig: Rig) -> None:
    done = rig.openclaw.run(ID, "doctor")
    assert f"Memory Gateway works. The memory panel is at {rig.server.url}/plugins/memory" in done.stdout
    assert done.returncode == 0
