"""A user of a running gateway: adds messages and facts over REST or MCP, and asks over both."""

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from benchmarks.processes import call

DAY_MS: Final = 86_400_000
BEGAN_MS: Final = 1_767_607_200_000
"""The time of the first message: 5 January 2026, 10:00 UTC."""
_TOP_K: Final = 10
_LINE = re.compile(r"^\d+\. \[[^\]]*\] \S+ ", re.MULTILINE)


class Said(NamedTuple):
    """A message: text, Unix milliseconds, role, session and sender (empty: the user)."""

    text: str
    at_ms: int = BEGAN_MS
    role: str = "user"
    session: str = "one"
    sender: str = ""


@dataclass(frozen=True, slots=True)
class Asked:
    """The answers to one question: the results of `POST /memories/search`, and the lines of `memory_recall`."""

    results: list[dict[str, Any]]
    recalled: list[str]
    recall_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Person:
    """A user of the gateway at a port of this machine."""

    port: int
    user_id: str
    key: str

    @classmethod
    def create(cls, port: int, user_id: str) -> "Person":
        return cls(port, user_id, call(port, "/users", {"user_id": user_id})["user_key"])

    def say(self, messages: Iterable[Said], **options: Any) -> None:
        """Add messages to their sessions in order, with further fields of the body, and flush these."""
        sessions: dict[str, list[dict[str, Any]]] = {}
        others: dict[str, set[str]] = {}
        for said in messages:
            sender = said.sender or (self.user_id if said.role == "user" else said.role)
            if said.sender and said.role == "user":
                others.setdefault(said.session, set()).add(sender)
            message = {"sender_id": sender, "role": said.role, "timestamp": said.at_ms, "content": said.text}
            sessions.setdefault(said.session, []).append(message)
        for session, told in sessions.items():
            body: dict[str, Any] = {"session_id": f"chat:{session}", "messages": told, **options}
            if session in others:
                body["participants"] = [{"id": name} for name in sorted(others[session])]
            call(self.port, "/memories/add", body, key=self.key)
            call(self.port, "/memories/flush", {"session_id": f"chat:{session}"}, key=self.key)

    def store(self, text: str) -> None:
        """Store a fact by the tool `memory_store`."""
        self._tool("memory_store", text=text)

    def search(self, question: str, **options: Any) -> list[dict[str, Any]]:
        body = {"query": question, "scope": ["all_user_memory"], "top_k": _TOP_K, "raw": False, **options}
        results: list[dict[str, Any]] = call(self.port, "/memories/search", body, key=self.key)["results"]
        return results

    def recall(self, question: str, **arguments: Any) -> tuple[list[str], int]:
        """Return the memories that `memory_recall` lists, and the bytes of its whole answer."""
        answer = self._tool("memory_recall", query=question, **arguments)
        text = answer["result"]["content"][0]["text"]
        lines = _LINE.split(text)[1:]
        return lines, len(json.dumps(answer, ensure_ascii=False).encode())

    def ask(self, question: str, **options: Any) -> Asked:
        """Ask over REST, and over MCP with the tool's defaults, which take no `now`."""
        return Asked(self.search(question, **options), *self.recall(question))

    def _tool(self, name: str, **arguments: Any) -> dict[str, Any]:
        request = {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "tools/call",
            "params": {"name": name, "arguments": arguments},
        }
        answer: dict[str, Any] = call(
            self.port,
            "/mcp",
            request,
            key=self.key,
            headers={"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2025-06-18"},
        )
        return answer
