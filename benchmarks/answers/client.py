"""A user of a running gateway: adds messages and facts over REST or MCP, and asks over both."""

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, Protocol

from benchmarks.processes import call, upload

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


class SystemUser(Protocol):
    """A user of the gateway or of a system compared with it."""

    def say(self, messages: Iterable[Said], **options: Any) -> None: ...
    def store(self, text: str) -> None: ...
    def upload(self, filename: str, text: str) -> None: ...
    def delete(self, word: str) -> None: ...
    def search(self, question: str, **options: Any) -> list[dict[str, Any]]: ...
    def recall(self, question: str) -> tuple[list[str], int]: ...
    def ask(self, question: str, **options: Any) -> Asked: ...


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
            if said.role == "tool":
                message["tool_call_id"] = "call_1"
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

    def upload(self, filename: str, text: str) -> None:
        upload(self.port, self.key, filename, text)

    def delete(self, word: str) -> None:
        """Delete the memories that a search for a word finds and that hold it."""
        for result in self.search(word, min_relevance=0):
            if word in result["text"]:
                call(self.port, f"/memories/{result['id']}", {}, method="DELETE", key=self.key)

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
