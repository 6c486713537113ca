"""The plugin's hooks in Node with generated events, on a running gateway. OpenClaw itself is not needed."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import requests

from tests.canaries import CANARIES, FACTS
from tests.forked import PROJECT
from tests.pauses import APPLICATION, PROVISIONING, pause, resume
from tests.server import RunningServer, running_server

PLUGIN = PROJECT / "clients" / "openclaw"
BUDGET_SECONDS = 2.0
NUMBERS = count(1)
SDK = "export const definePluginEntry = (entry) => entry;\n"
pytestmark = pytest.mark.skipif(shutil.which("node") is None, reason="needs Node")
Message = dict[str, Any]


class Agent:
    """An agent with the plugin, that talks to its senders. Each has a user of the gateway, and a history."""

    def __init__(self, folder: Path, server: RunningServer, senders: list[str]) -> None:
        self.server = server
        self.keys = {sender: self._create_user(sender) for sender in senders}
        users = {
            f"telegram:{sender}": {"userId": user_id, "apiKey": key} for sender, (user_id, key) in self.keys.items()
        }
        config = json.dumps({"url": server.url, "users": users})
        command = ["node", str(PLUGIN / "tests" / "hooks.js"), str(plugin_copy(folder)), config]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def _create_user(self, sender: str) -> tuple[str, str]:
        user_id = f"{sender}_{next(NUMBERS)}"
        answer = requests.post(f"{self.server.url}/users", json={"user_id": user_id}, headers=APPLICATION, timeout=30)
        return user_id, answer.json()["user_key"]

    def call(self, **line: Any) -> tuple[Any, float]:
        """Return the result of a hook or tool, and the seconds that it took."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(line) + "\n")
        self.process.stdin.flush()
        said = json.loads(self.process.stdout.readline())
        return said["result"], said["seconds"]

    def talk(self, sender: str) -> Talk:
        return Talk(self, sender)

    def texts(self, sender: str) -> list[str]:
        """All that the gateway has of a sender, oldest first."""
        headers = {"Authorization": f"Bearer {self.keys[sender][1]}"}
        found: list[str] = []
        query: dict[str, Any] | None = {"limit": 100}
        while query:
            page = requests.get(f"{self.server.url}/memories", params=query, headers=headers, timeout=30).json()
            found += [memory["text"] for memory in page["memories"]]
            query = page["next_cursor"] and {"limit": 100, "cursor": page["next_cursor"]}
        return found[::-1]


class Talk:
    """A session of a sender. OpenClaw passes the whole history to each hook."""

    def __init__(self, agent: Agent, sender: str) -> None:
        self.agent, self.sender, self.messages = agent, sender, list[Message]()
        self.id = f"s{next(NUMBERS)}"
        self.seconds: list[float] = []

    def turn(self, text: str, reply: str = "Understood.", *calls: Message) -> str:
        """Go through a turn; `QUOTE` in the reply is the prompt. Return what was recalled."""
        ctx = {
            "agentId": "main", "sessionId": self.id, "runId": f"r{next(NUMBERS)}", "trigger": "user",
            "channel": "telegram", "senderId": self.sender,
        }  # fmt: skip
        event = {"prompt": text, "messages": self.messages}
        result, recall = self.agent.call(hook="before_prompt_build", event=event, ctx=ctx)
        recalled: str = result["prependContext"] if result else ""
        prompt = f"{recalled}\n\n{text}" if recalled else text
        self._say("user", prompt)
        for call in calls:
            self._say("assistant", [{"type": "toolCall", "id": "c1", **call}])
            args = {"tool": call["name"], "args": call["arguments"], "ctx": {**ctx, "messageChannel": "telegram"}}
            args["ctx"]["requesterSenderId"] = self.sender
            answer, _ = self.agent.call(**args)
            self.messages.append({"role": "toolResult", "toolName": call["name"], "toolCallId": "c1", **answer,
                                  "timestamp": next(NUMBERS)})  # fmt: skip
        self._say("assistant", [{"type": "text", "text": reply.replace("QUOTE", prompt)}])
        _, capture = self.agent.call(hook="agent_end", event={"messages": self.messages, "success": True}, ctx=ctx)
        self.seconds.append(recall + capture)
        return recalled

    def _say(self, role: str, content: Any) -> None:
        self.messages.append({"role": role, "content": content, "timestamp": 1_780_000_000_000 + next(NUMBERS)})


def plugin_copy(folder: Path) -> Path:
    """The plugin's files with a stand-in for OpenClaw's SDK: the entry uses one function of it."""
    made = folder / f"plugin{next(NUMBERS)}"
    made.mkdir()
    for file in PLUGIN.glob("*.js"):
        shutil.copy(file, made)
    shutil.copy(PLUGIN / "package.json", made)
    sdk = made / "node_modules" / "openclaw"
    sdk.mkdir(parents=True)
    exports = {"./plugin-sdk/plugin-entry": "./entry.js"}
    (sdk / "package.json").write_text(json.dumps({"name": "openclaw", "type": "module", "exports": exports}))
    (sdk / "entry.js").write_text(SDK)
    return made


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    env = {"MEMORY_GATEWAY_PROVISIONING_TOKEN": PROVISIONING}
    with running_server(tmp_path_factory.mktemp("openclaw-hooks"), **env) as started:
        yield started


@pytest.fixture
def agent(server: RunningServer, tmp_path: Path) -> Iterator[Agent]:
    made = Agent(tmp_path, server, ["ann", "bob"])
    with made.process:
        yield made


@pytest.mark.parametrize("turns", [20, pytest.param(1000, marks=pytest.mark.torture)])
def test_nothing_recalled_is_captured_again(agent: Agent, turns: int) -> None:
    """The model quotes its whole prompt in each reply, with the memories in it."""
    talk = agent.talk("ann")
    for fact in FACTS:
        talk.turn(fact)
    for number in range(turns):
        talk = agent.talk("ann") if number % 5 == 0 else talk
        name = CANARIES[number % len(CANARIES)]
        recalled = talk.turn(f"What do you know of {name}, {number}?", "You wrote: QUOTE")
        assert recalled.startswith("<relevant-memories>")
    texts = agent.texts("ann")
    assert len(texts) == 2 * len(FACTS) + 2 * turns
    assert sorted(text for text in texts if "sings" in text or "[id:" in text) == FACTS


def test_what_was_said_in_a_pause_stays_away_when_it_is_sent_again(agent: Agent) -> None:
    talk, (user_id, key) = agent.talk("ann"), agent.keys["ann"]
    talk.turn("My canary sings at noon.")
    pause(agent.server.url, key)
    talk.turn("My heron is a secret.", "No word of the heron.")
    resume(agent.server.url, user_id)
    again = agent.talk("ann")  # another session begins with the whole history
    again.messages += talk.messages
    for of in (talk, again):
        event = {"messages": of.messages, "success": True}
        ctx = {"agentId": "main", "sessionId": of.id, "runId": "r", "channel": "telegram", "senderId": "ann"}
        agent.call(hook="agent_end", event=event, ctx={**ctx, "trigger": "user"})
        of.turn(f"My dog is brown, {of.id}.", "A brown dog.")
    texts = agent.texts("ann")
    assert sum("brown" in text for text in texts) == 4
    assert not [text for text in texts if "heron" in text]


def test_two_senders_never_see_each_others_memories(agent: Agent) -> None:
    agent.talk("ann").turn("My piano is in the cellar.")
    agent.talk("bob").turn("My piano is in the attic.")
    for sender, own, other in (("ann", "cellar", "attic"), ("bob", "attic", "cellar")):
        talk = agent.talk(sender)
        recalled = talk.turn(
            "Where is my piano?", "Understood.", {"name": "memory_recall", "arguments": {"query": "piano"}}
        )
        said = recalled + json.dumps(talk.messages)
        assert own in said
        assert other not in said
    assert agent.talk("carl").turn("Where is the piano?") == ""
    assert len(agent.texts("ann")) == len(agent.texts("bob")) == 4


def test_a_forgotten_fact_never_returns(agent: Agent) -> None:
    agent.talk("ann").turn("My parrot is called Otto.")
    talk = agent.talk("ann")
    forget = {"name": "memory_forget", "arguments": {"query": "My parrot is called Otto."}}
    assert "Otto" in talk.turn("Forget the name of my parrot.", "I forgot that it is called Otto.", forget)
    for number in range(5):
        assert "Otto" not in agent.talk("ann").turn(f"What is the name of my parrot, {number}?")
    assert not [text for text in agent.texts("ann") if "Otto" in text]


def test_a_gateway_that_hangs_costs_two_seconds(agent: Agent) -> None:
    talk = agent.talk("ann")
    talk.turn("My sister lives in Oslo.")
    os.killpg(agent.server.pid, signal.SIGSTOP)
    try:
        for number in range(3):
            assert talk.turn(f"And my brother, {number}?") == ""
    finally:
        os.killpg(agent.server.pid, signal.SIGCONT)
    assert max(talk.seconds[1:]) < BUDGET_SECONDS + 0.5
