"""Helpers that fill a gateway by its own services and endpoints, in a process that has Django set up."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.core.files.uploadedfile import SimpleUploadedFile
from django.utils import timezone

from accounts.audit import Actor
from agents import tools
from agents.tools import Caller
from core.errors import EngineUnavailable
from core.network.language_model import client as llm_client
from engines.embedded import extraction
from memories.services.manual import add_by_hand
from resources.models import Resource
from resources.services import claims, deletion
from resources.services.deletion import IN_TRASH
from store.models import Memory
from tests.conftest import Person, make_person
from tests.memories.calls import NOON_MS, call
from tests.resources.forms import stored_resource
from tests.stub_llm import Line, StubLlm

OPERATOR = Actor.operator("olga")
_NUMBERS = itertools.count(1)
_LETTERS = str.maketrans("0123456789", "abcdefghij")  # so that the mark is one word to any tokenizer


def marked(text: str) -> str:
    """Return the text with a word that no other text has, by which a search finds it alone."""
    return f"{text} zq{str(next(_NUMBERS)).rjust(4, '0').translate(_LETTERS)}"


@dataclass
class Filled:
    """A user, and the calls that their client made: `talks` are bodies of adds, in their order."""

    person: Person
    talks: list[dict[str, Any]] = field(default_factory=list)
    _clock: Any = field(default_factory=lambda: itertools.count(NOON_MS, 60_000))

    @classmethod
    def create(cls, user_id: str) -> Filled:
        return cls(make_person(user_id))

    def call(self, method: str, path: str, *, status: int = 200, **fields: Any) -> dict[str, Any]:
        return call(self.person, method, path, status=status, **fields)

    # --- messages ---------------------------------------------------------------------------------------------------

    def talk(self, session_id: str, *texts: str, flush: bool = True, status: int = 200, **fields: Any) -> list[str]:
        """Add a message of the user for each text, `role: text` for another role; return the texts."""
        said = [marked(text) for text in texts]
        self.say(session_id, [self.message(text) for text in said], flush=flush, status=status, **fields)
        return [text.partition(": ")[2] if text.startswith("assistant: ") else text for text in said]

    def message(self, text: str, **values: Any) -> dict[str, Any]:
        sender = {"sender_id": self.person.user_id, "role": "user"}
        if text.startswith("assistant: "):
            sender, text = {"sender_id": "main", "role": "assistant"}, text.removeprefix("assistant: ")
        return {**sender, "timestamp": next(self._clock), "content": text, **values}

    def say(
        self, session_id: str, messages: list[dict[str, Any]], *, flush: bool = True, status: int = 200, **fields: Any
    ) -> None:
        body = {"session_id": session_id, "messages": messages, **fields}
        self.talks.append(body)
        self.call("post", "/memories/add", status=status, **body)
        if flush:
            scope = {name: fields[name] for name in ("app_id", "project_id") if name in fields}
            self.call("post", "/memories/flush", session_id=session_id, **scope)

    # --- facts ------------------------------------------------------------------------------------------------------

    def by_tool(self, text: str, *, agent_id: str = "main", **arguments: Any) -> str:
        caller = Caller(self.person.owner, agent_id, Actor.command("filling"))
        answer = tools.invoke(caller, "memory_store", {"text": text, **arguments})
        return str(answer["details"]["id"])

    def by_panel(self, text: str, *, agent_id: str = "", category: str = "user_memory_fact") -> str:
        stored = add_by_hand(
            self.person.owner, category=category, text=text, agent_id=agent_id, origin="panel", actor=OPERATOR
        )
        return stored.memory_id

    # --- decisions --------------------------------------------------------------------------------------------------

    def row(self, text: str) -> Memory:
        """Return the user's only memory with that text, a copy of EverOS's rather than a message."""
        rows = Memory.objects.filter(user_id=self.person.user_pk, text__contains=text)
        return rows.exclude(delivery_state="flushed").exclude(memory_type="profile").get()

    def delete(self, text: str, reason: str = "") -> str:
        memory_id = str(self.row(text).memory_id)
        self.call("delete", f"/memories/{memory_id}", **({"reason": reason} if reason else {}))
        return memory_id

    def restore(self, memory_id: str) -> None:
        self.call("post", f"/memories/{memory_id}/restore")

    def edit(self, text: str, new: str, **fields: Any) -> str:
        memory_id = str(self.row(text).memory_id)
        self.call("patch", f"/memories/{memory_id}", override_text=new, **fields)
        return memory_id

    def undo_edit(self, memory_id: str) -> None:
        self.call("delete", f"/memories/{memory_id}/override")

    def delete_session(self, session_id: str) -> None:
        self.call("delete", f"/sessions/{session_id}", reason="by its user")

    # --- files ------------------------------------------------------------------------------------------------------

    def upload(self, name: str, text: str, **fields: str) -> dict[str, Any]:
        """Upload a text of several passages."""
        file = SimpleUploadedFile(name, text.encode(), "text/plain")
        response = self.person.client.post("/resources", {"file": file, **fields})
        assert response.status_code in {200, 202}, response.content
        return dict(response.json())

    def pending_file(self, text: str) -> Resource:
        """An upload whose process ended right after the row was written."""
        return stored_resource(self.person, text)

    def interrupted_file(self, text: str) -> Resource:
        """An upload whose process ended during the ingestion."""
        claimed = claims.claim(stored_resource(self.person, text).resource_id, timezone.now())
        assert claimed is not None
        return claimed

    def purge_file_halfway(self, resource_id: str, engine: Any) -> None:
        """Purge a file while the engine is away: its cleanup stays pending."""
        self.call("delete", f"/resources/{resource_id}")
        purged = deletion.purge(resource_id, actor=OPERATOR, condition=IN_TRASH, engine=engine)
        assert purged is not None
        assert purged.cleanup_pending


class AwayEngine:
    """An engine that cannot be reached."""

    def delete(self, *_: Any) -> None:
        raise EngineUnavailable("away")


def passages(*texts: str) -> str:
    """Return the text of a file in which each given text becomes a passage."""
    return "\n\n".join(f"{text}. {'Nothing else is said of it here. ' * 30}" for text in texts)


def model_answer(*memories: dict[str, Any]) -> Callable[[list[Line]], Any]:
    """Return the answer of a language model: these memories, and a profile made of all facts."""

    def answer(lines: list[Line]) -> Any:
        if any("memory" in line for line in lines):
            return {"summary": " ".join(line["memory"] for line in lines), "traits": [{"trait": "terse"}]}
        if "new" in lines[0]:
            return {"relations": [{"number": 1, "relation": "newer"}]}
        return {"memories": list(memories)}

    return answer


def derive(llm: StubLlm, *memories: dict[str, Any]) -> None:
    """Run the pending extractions; the model answers with these memories."""
    llm.extract = model_answer(*memories)
    llm_client().endpoint.pause.end()
    assert extraction.run(20, clock=lambda: timezone.now() + timedelta(0), call_seconds=5.0)


def use_llm(llm: StubLlm | None) -> None:
    settings.MEMORY_GATEWAY_LLM_BASE_URL = llm.url if llm else ""
    settings.MEMORY_GATEWAY_LLM_MODEL = "stub" if llm else ""


def fact(text: str, *messages: int, **others: Any) -> dict[str, Any]:
    return {"kind": "fact", "text": text, "importance": 0.7, "messages": list(messages or (1,)), **others}
