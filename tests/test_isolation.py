"""No user ever sees anything of another, whatever ids, filters and keys they send.

A random walk of four users with confusable names over every endpoint, compared with a dictionary per user. Whatever one
of them made is secret to the others: it must not stand in any body or header that they receive.
"""

from __future__ import annotations

import inspect
import io
import itertools
import re
import uuid
import zipfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.http import HttpResponseBase
from django.test import Client
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from accounts.models import MemoryUser
from tests.openapi import operations
from webhooks.services.configuration import MAX_WEBHOOKS

NAMES = ("a", "b", "A", "a.b")
RUNS = itertools.count(1)
LETTERS = str.maketrans("0123456789", "ghijklmnop")  # one word to any tokenizer
NOON_MS = 1_781_172_177_000
WORDS = re.compile(r"[A-Za-z0-9_-]+")  # ids and keys are one word each
STEPS_OF_A_PART = 200  # Hypothesis takes 300 at least before it ends a run by itself

people = st.sampled_from(NAMES)
chats = st.sampled_from(("c1", "c2"))
filenames = st.sampled_from(("contract.txt", "合同.txt"))
choices = st.integers(0, 59)
scopes = st.lists(st.sampled_from(("current_chat", "resources", "all_user_memory")), min_size=1, max_size=3)


@dataclass
class Subject:
    """A user, and all that is known to be theirs. `marker` is a word of no other user."""

    user_id: str
    user_key: str
    user_pk: uuid.UUID
    marker: str = field(default_factory=lambda: uuid.uuid4().hex.translate(LETTERS))
    resources: dict[str, str] = field(default_factory=dict)  # id → file name
    deleted: dict[str, str] = field(default_factory=dict)
    contents: dict[str, str] = field(default_factory=dict)
    registered: dict[str, str] = field(default_factory=dict)
    said: dict[str, list[str]] = field(default_factory=dict)  # session id → texts
    memories: set[str] = field(default_factory=set)
    webhooks: list[str] = field(default_factory=list)
    facts: int = 0
    is_described: bool = False
    secrets: set[str] = field(default_factory=set)  # ids and keys that only this user may see

    def __post_init__(self) -> None:
        self.secrets |= {self.marker, self.user_key}

    @property
    def said_nowhere(self) -> tuple[str, ...]:
        """Return words that must not even be inside longer ones."""
        return self.marker, self.user_key, str(self.user_pk), self.user_pk.hex

    @property
    def sessions(self) -> set[str]:
        return {f"resource:{self.user_id}:{resource_id}" for resource_id in self.resources} | set(self.said)


@dataclass
class Relay:
    """The start of each walk: Hypothesis ends a run after some hundred steps, so that a long walk is taken in parts."""

    parts: int
    steps: int = 0
    _taken: int = 0
    _subjects: dict[str, Subject] = field(default_factory=dict)

    def part(self) -> Walk:
        """The next part, with the users of the one before or with new ones."""
        if self._taken % self.parts == 0:
            self._subjects = {}
        self._taken += 1
        return Walk(self, self._subjects)


class Walk(RuleBasedStateMachine):
    def __init__(self, relay: Relay, subjects: dict[str, Subject]) -> None:
        super().__init__()
        self.relay = relay
        self.client = Client()
        self.subjects = subjects
        if not subjects:
            run = next(RUNS)  # separate names: what an earlier walk left must not be seen either
            subjects |= {name: self._create(f"{run}{name}") for name in NAMES}

    @invariant()
    def count(self) -> None:
        self.relay.steps += 1

    def _create(self, user_id: str) -> Subject:
        response = self._send("post", "/users", {}, data={"user_id": user_id}, content_type="application/json")
        return Subject(user_id, response.json()["user_key"], MemoryUser.objects.get(user_id=user_id).pk)

    def _send(self, method: str, path: str, headers: dict[str, str], **request: Any) -> Any:
        return getattr(self.client, method)(path, headers=headers, **request)

    def call(self, name: str, method: str, path: str, *ids: str, expect: int = 200, **request: Any) -> Any:
        """Calls as that user, and looks for others' secrets in the whole answer."""
        subject = self.subjects[name]
        for identifier in ids:
            path = path.replace(path[path.index("{") : path.index("}") + 1], identifier, 1)
        response = self._send(method, path, {"Authorization": f"Bearer {subject.user_key}"}, **request)
        self._look_for_leaks(name, response)
        assert response.status_code == expect, (method, path, response.status_code, _body(response))
        return response.json() if "json" in response.headers["Content-Type"] else _body(response)

    def _look_for_leaks(self, name: str, response: HttpResponseBase) -> None:
        answer = f"{response.headers} {_body(response)}"
        words = set(WORDS.findall(answer))
        for other, subject in self.subjects.items():
            if other != name:
                assert not subject.secrets & words, f"{name} sees {other}: {answer}"
                assert not [secret for secret in subject.said_nowhere if secret in answer], f"{name} sees {other}"

    # --- what users have ---------------------------------------------------------------------------------------------

    @rule(name=people, filename=filenames, is_shared=st.booleans())
    def upload(self, name: str, filename: str, is_shared: bool) -> None:
        """Either what everybody has, or what only this user has."""
        subject = self.subjects[name]
        text = f"the payment of {filename} {'' if is_shared else subject.marker}"
        answer = self.call(name, "post", "/resources", data={"file": _file(filename, text)})
        assert answer["status"] == "extracted"
        assert answer["session_id"] == f"resource:{subject.user_id}:{answer['resource_id']}"
        subject.resources[answer["resource_id"]] = filename
        subject.contents[answer["resource_id"]] = text
        subject.secrets.add(answer["resource_id"])

    @rule(name=people, filename=filenames)
    def register(self, name: str, filename: str) -> None:
        """A file of the same address and digest for all users, which no worker can read: so it is never found."""
        body = {"filename": filename, "source_uri": f"minio://bucket/{filename}", "sha256": "0" * 64}
        answer = self.call(name, "post", "/resources/external", data=body, content_type="application/json")
        subject = self.subjects[name]
        assert answer["session_id"] == f"resource:{subject.user_id}:{answer['resource_id']}"
        subject.registered[answer["resource_id"]] = filename
        subject.secrets.add(answer["resource_id"])

    @rule(name=people, chat=chats, is_shared=st.booleans(), has_file=st.booleans())
    def chat(self, name: str, chat: str, is_shared: bool, has_file: bool) -> None:
        """Everybody speaks in conversations of the same names, of files of the same name and content."""
        subject = self.subjects[name]
        texts = subject.said.setdefault(f"chat:{chat}", [])
        texts.append(f"the payment number {len(texts)} {'' if is_shared else subject.marker}".strip())
        content: list[dict[str, str]] = [{"type": "text", "text": f"{texts[-1]} in picture.png"}]
        if has_file:
            content.append({"type": "image", "base64": "QUJD", "ext": "png", "name": "picture.png"})
        message = {"sender_id": subject.user_id, "role": "user", "timestamp": NOON_MS + len(texts), "content": content}
        body = {"session_id": f"chat:{chat}", "messages": [message]}
        as_json = {"content_type": "application/json"}
        self.call(name, "post", "/memories/add", data=body, **as_json)
        self.call(name, "post", "/memories/flush", data={"session_id": f"chat:{chat}"}, **as_json)
        subject.secrets.add(str(subject.user_pk))  # part of where files lie

    @rule(name=people, owner=people)
    def speak_for_another(self, name: str, owner: str) -> None:
        """Neither in another's name nor in a session that bears it."""
        subject, other = self.subjects[name], self.subjects[owner]
        message = {"sender_id": other.user_id, "role": "user", "timestamp": NOON_MS, "content": "a forged payment"}
        sent = [{"session_id": "chat:forged", "messages": [message]}]
        sent.append({"session_id": f"memory_edit:{other.user_id}", "messages": [{**message, "role": "assistant"}]})
        for body, refusal in zip(sent, (422, 404), strict=True):
            expect = 200 if name == owner else refusal
            self.call(name, "post", "/memories/add", data=body, content_type="application/json", expect=expect)
            if expect == 200:
                subject.said.setdefault(str(body["session_id"]), []).append("a forged payment")
        body = {"session_id": f"memory_edit:{other.user_id}"}
        expect = 200 if name == owner else 404
        self.call(name, "post", "/memories/flush", data=body, content_type="application/json", expect=expect)

    @rule(name=people, owner=people, chat=chats, is_deleted=st.booleans())
    def record_a_group_chat(self, name: str, owner: str, chat: str, is_deleted: bool) -> None:
        """Another user's id as a participant's: the words are the recorder's, and so is their deletion."""
        subject, other = self.subjects[name], self.subjects[owner]
        texts = subject.said.setdefault(f"chat:{chat}", [])
        texts.append(f"the payment number {len(texts)} {subject.marker}")
        messages = [
            {"sender_id": sender, "role": "user", "timestamp": NOON_MS + len(texts), "content": texts[-1]}
            for sender in (subject.user_id, other.user_id)
        ]
        body = {"session_id": f"chat:{chat}", "messages": messages, "participants": [{"id": other.user_id}]}
        self.call(name, "post", "/memories/add", data=body, content_type="application/json")
        if is_deleted and owner != name:
            answer = self.call(
                name, "delete", "/memories", data={"sender_id": other.user_id}, content_type="application/json"
            )
            assert answer["deleted_count"]
        elif owner != name:
            texts.append(texts[-1])
        subject.memories = {memory["id"] for memory in self._all(name, "get", "/memories", "memories")}

    @rule(name=people, is_shared=st.booleans(), is_bulk=st.booleans())
    def store_a_fact(self, name: str, is_shared: bool, is_bulk: bool) -> None:
        """Everybody gives the same external ids, tags and keys to facts, which stay apart."""
        subject = self.subjects[name]
        texts = subject.said.setdefault(f"memory_edit:{subject.user_id}", [])
        subject.facts += 1
        texts.append(f"the payment note {subject.facts} {'' if is_shared else subject.marker}".strip())
        fact = {"text": texts[-1], "external_id": f"e{subject.facts}", "tags": ["all"], "metadata": {"of": name}}
        fact["metadata"]["marker"] = subject.marker  # type: ignore[index]
        as_json = {"content_type": "application/json"}
        if is_bulk:
            [result] = self.call(name, "post", "/memories/bulk", data={"memories": [fact]}, **as_json)["results"]
            assert result["action"] == "created"
            memory_id = result["id"]
        else:
            memory_id = self.call(name, "post", "/memories", data=fact, expect=201, **as_json)["memory"]["id"]
        assert self.call(name, "post", "/memories", data=fact, **as_json)["action"] == "unchanged"
        subject.memories.add(memory_id)
        subject.secrets.add(memory_id)

    # --- resources ---------------------------------------------------------------------------------------------------

    @rule(name=people)
    def list_resources(self, name: str) -> None:
        listed = self.call(name, "get", "/resources")["resources"]
        subject = self.subjects[name]
        assert {row["resource_id"]: row["filename"] for row in listed} == subject.resources | subject.registered

    @rule(name=people, owner=people, choice=choices)
    def read_resource(self, name: str, owner: str, choice: int) -> None:
        """One's own is there; another's looks like none."""
        resource_id = self._any_resource(owner, choice)
        is_own = resource_id in self.subjects[name].resources
        detail = self.call(name, "get", "/resources/{resource_id}", resource_id)
        assert [row["resource_id"] for row in detail["resources"]] == ([resource_id] if is_own else [])
        self.call(name, "get", "/resources/{resource_id}/content", resource_id, expect=200 if is_own else 404)
        labels = {"data": {"tags": [name]}, "content_type": "application/json"}
        self.call(name, "patch", "/resources/{resource_id}", resource_id, expect=200 if is_own else 404, **labels)

    @rule(name=people, owner=people, choice=choices)
    def delete_resource(self, name: str, owner: str, choice: int) -> None:
        resource_id = self._any_resource(owner, choice)
        subject = self.subjects[name]
        is_own = resource_id in subject.resources
        self.call(name, "delete", "/resources/{resource_id}", resource_id, expect=200 if is_own else 404)
        if is_own:
            subject.deleted[resource_id] = subject.resources.pop(resource_id)
            subject.memories = {memory["id"] for memory in self._all(name, "get", "/memories", "memories")}

    @rule(name=people, owner=people, choice=choices)
    def restore_resource(self, name: str, owner: str, choice: int) -> None:
        """One's own returns, unless the same bytes were uploaded again; another's looks like none."""
        subject, known = self.subjects[name], sorted(self.subjects[owner].deleted)
        resource_id = known[choice % len(known)] if known else "r_00000000000000000000000000000000"
        expect = 404
        if resource_id in subject.deleted:
            held = {subject.contents[other] for other in subject.resources}
            expect = 409 if subject.contents[resource_id] in held else 200
        as_json = {"content_type": "application/json", "expect": expect}
        self.call(name, "post", "/resources/{resource_id}/restore", resource_id, **as_json)
        if expect == 200:
            subject.resources[resource_id] = subject.deleted.pop(resource_id)
        listed = self.call(name, "get", "/resources?deleted=true")["resources"]
        assert {row["resource_id"] for row in listed} == subject.deleted.keys()

    def _any_resource(self, owner: str, choice: int) -> str:
        known = sorted(self.subjects[owner].resources)
        return known[choice % len(known)] if known else "r_00000000000000000000000000000000"

    # --- search ------------------------------------------------------------------------------------------------------

    @rule(name=people, owner=people, chat=chats, scope=scopes, choice=choices)
    def search(self, name: str, owner: str, chat: str, scope: list[str], choice: int) -> None:
        """Finds what is one's own and nothing else, even by filters that name another's sessions."""
        subject, other = self.subjects[name], self.subjects[owner]
        sessions = [f"resource:{other.user_id}:{self._any_resource(owner, choice)}", f"chat:{chat}"]
        senders = [other.user_id, subject.user_id]
        filters = (
            None,
            {"session_id": sessions[0]},
            {"session_id": {"in": sessions}},
            {"sender_id": other.user_id},
            {"OR": [{"sender_id": {"in": senders}}, {"session_id": {"ne": "chat:c9"}}]},
            {"tags": "all", "metadata.of": owner},
            {"NOT": {"metadata.marker": other.marker}},
        )[choice % 7]
        body = {
            "query": "payment",
            "conversation_id": chat,
            "scope": scope,
            "top_k": 100,
            "filters": filters,
            "fold": False,
        }
        answer = self.call(name, "post", "/memories/search", data=body, content_type="application/json")
        found = {result["session_id"] for result in answer["results"] if not result["id"].startswith("profile:")}
        expected = self._searchable(subject, chat, scope)
        is_whole = filters is None and len(subject.resources) + sum(map(len, subject.said.values())) <= 100
        assert found == expected if is_whole else found <= expected

    def _searchable(self, subject: Subject, chat: str, scope: list[str]) -> set[str]:
        in_scope = {
            "current_chat": {f"chat:{chat}"},
            "resources": {session for session in subject.sessions if session.startswith("resource:")},
            "all_user_memory": subject.sessions,
        }
        return subject.sessions & set().union(*(in_scope[word] for word in scope))

    @rule(name=people, owner=people, chat=chats)
    def search_for_what_another_said(self, name: str, owner: str, chat: str) -> None:
        body = {"query": self.subjects[owner].marker, "conversation_id": chat, "scope": ["all_user_memory"]}
        answer = self.call(name, "post", "/memories/search", data=body, content_type="application/json")
        assert name == owner or answer["results"] == []

    @rule(name=people, owner=people)
    def recall_what_another_said(self, name: str, owner: str) -> None:
        body = {"tool": "memory_recall", "args": {"query": self.subjects[owner].marker}}
        answer = self.call(name, "post", "/tools/invoke", data=body, content_type="application/json")
        assert name == owner or answer["result"]["details"] == {"count": 0}

    @rule(name=people, owner=people)
    def make_the_context_for_what_another_said(self, name: str, owner: str) -> None:
        body = {"query": self.subjects[owner].marker}
        self.call(name, "post", "/memories/context", data=body, content_type="application/json")

    # --- what users decide -------------------------------------------------------------------------------------------

    @rule(name=people)
    def list_memories(self, name: str) -> None:
        """All memories of all sessions that are not deleted, and none else."""
        subject = self.subjects[name]
        memories = self._all(name, "get", "/memories", "memories")
        subject.secrets |= {memory["id"] for memory in memories}
        assert {memory["session_id"] for memory in memories} == subject.sessions
        subject.memories = {memory["id"] for memory in memories}
        listed = self._all(name, "get", "/sessions", "sessions")
        assert {session["session_id"] for session in listed} == subject.sessions

    @rule(name=people, owner=people, choice=choices)
    def decide_about_a_memory(self, name: str, owner: str, choice: int) -> None:
        """Corrects, deletes and restores one's own; another's memory looks like none."""
        known = sorted(self.subjects[owner].memories)
        memory_id = known[choice % len(known)] if known else "nothing"
        expect = 200 if memory_id in self.subjects[name].memories else 404
        text = f"the payment, corrected {self.subjects[name].marker}"
        as_json = {"content_type": "application/json", "expect": expect}
        self.call(name, "get", "/memories/{memory_id}", memory_id, expect=expect)
        self.call(name, "patch", "/memories/{memory_id}", memory_id, data={"override_text": text}, **as_json)
        self.call(name, "delete", "/memories/{memory_id}", memory_id, expect=expect)
        self.call(name, "get", "/memories/trash")
        self.call(name, "post", "/memories/{memory_id}/restore", memory_id, data={}, **as_json)
        self.call(name, "delete", "/memories/{memory_id}/override", memory_id, expect=expect)

    @rule(name=people, owner=people)
    def forget_what_another_said(self, name: str, owner: str) -> None:
        """The preview of another's words is empty."""
        body = {"words": self.subjects[owner].marker, "dry_run": True}
        answer = self.call(name, "post", "/memories/forget", data=body, content_type="application/json")
        assert name == owner or (answer["count"], answer["memories"]) == (0, [])

    @rule(name=people, owner=people)
    def delete_by_a_filter(self, name: str, owner: str) -> None:
        """Delete one's own memories of a time and restore them; another's deletion looks like none."""
        as_json: dict[str, Any] = {"content_type": "application/json"}
        before = {memory["id"] for memory in self._all(name, "get", "/memories", "memories")}
        body = {"filters": {"timestamp": {"gte": 0}}}
        count = self.call(name, "post", "/memories/delete", data={**body, "dry_run": True}, **as_json)["count"]
        assert count == len(before)
        done = self.call(name, "post", "/memories/delete", data={**body, "expected_count": count}, **as_json)
        self.subjects[name].secrets.add(done["deletion_id"])
        assert self._all(name, "get", "/memories", "memories") == []
        if owner != name:
            for method, path in (("get", "/memories/delete/{id}"), ("post", "/memories/delete/{id}/undo")):
                self.call(owner, method, path, done["deletion_id"], data={}, expect=404, **as_json)
        self.call(name, "get", "/memories/delete/{deletion_id}", done["deletion_id"])
        self.call(name, "post", "/memories/delete/{deletion_id}/undo", done["deletion_id"], data={}, **as_json)
        assert {memory["id"] for memory in self._all(name, "get", "/memories", "memories")} == before

    @rule(name=people)
    def read_all_of_oneself(self, name: str) -> None:
        """Read the export and the audit trail: both hold nothing of others."""
        subject = self.subjects[name]
        response = self._send("get", "/users/me/export", {"Authorization": f"Bearer {subject.user_key}"})
        assert response.status_code == 200
        with zipfile.ZipFile(io.BytesIO(b"".join(response.streaming_content))) as archive:
            held = "".join(archive.read(part).decode(errors="replace") for part in archive.namelist())
        for other, person in self.subjects.items():
            assert other == name or not [secret for secret in person.said_nowhere if secret in held]
        self.call(name, "get", "/users/me/audit", data={"limit": 100})

    @rule(name=people, days=st.integers(1, 36_500))
    def set_defaults_of_expiry(self, name: str, days: int) -> None:
        """Set and read what is one's own: others' stay, and nothing expires within the test."""
        others = {
            other: self.call(other, "get", "/users/me/expiry")["days"] for other in self.subjects if other != name
        }
        self.call(name, "put", "/users/me/expiry", data={"days": {"tag:draft": days}}, content_type="application/json")
        for other, former in others.items():
            assert self.call(other, "get", "/users/me/expiry")["days"] == former

    @rule(name=people, owner=people, choice=choices)
    def decide_about_a_session(self, name: str, owner: str, choice: int) -> None:
        known = sorted(self.subjects[owner].sessions)
        session_id = known[choice % len(known)] if known else "nothing"
        expect = 200 if session_id in self.subjects[name].sessions else 404
        self.call(name, "get", "/sessions/{session_id}", session_id, expect=expect)
        self.call(name, "delete", "/sessions/{session_id}", session_id, expect=expect)
        if expect == 200:
            assert session_id not in {row["session_id"] for row in self._all(name, "get", "/memories", "memories")}
        as_json = {"data": {}, "content_type": "application/json", "expect": expect}
        self.call(name, "post", "/sessions/{session_id}/restore", session_id, **as_json)

    def _all(self, name: str, method: str, path: str, rows: str) -> list[dict[str, Any]]:
        """Every page of a list."""
        found: list[dict[str, Any]] = []
        query: dict[str, Any] = {"limit": 100}
        while True:
            answer = self.call(name, method, path, data=query)
            found += answer[rows]
            if answer["next_cursor"] is None:
                return found
            query["cursor"] = answer["next_cursor"]

    # --- who users are -----------------------------------------------------------------------------------------------

    @rule(name=people)
    def describe_oneself(self, name: str) -> None:
        subject = self.subjects[name]
        person = {"name": subject.marker, "notes": f"is {name}"}
        as_json = {"content_type": "application/json"}
        patch = {"content": {"people": [person]}, "merge_lists": True}
        self.call(name, "patch", "/api/v1/memories/user", data=patch, **as_json)
        self.call(name, "put", "/api/v1/memories/work", data={"content": {"work_rules": [subject.marker]}}, **as_json)
        self.call(name, "put", "/api/v1/memories/user", data={"content": {"people": [person]}}, **as_json)
        self.call(name, "patch", "/api/v1/memories/work", data={"content": {"occupation": name}}, **as_json)
        subject.is_described = True

    @rule(name=people, choice=choices)
    def read_about_oneself(self, name: str, choice: int) -> None:
        """A user's own is there, also after others wrote; no version is another user's."""
        subject = self.subjects[name]
        both = self.call(name, "get", "/api/v1/memories/")
        assert both["user_memory"] == self.call(name, "get", "/api/v1/memories/user")
        assert both["work_memory"] == self.call(name, "get", "/api/v1/memories/work")
        own = [subject.marker] if subject.is_described else []
        assert [person["name"] for person in both["user_memory"]["people"]] == own
        assert both["work_memory"]["work_rules"] == own
        prompt = self.call(name, "get", "/api/v1/memories/prompt", data={"agent": ("router", "worker")[choice % 2]})
        assert (subject.marker in prompt["prompt"]) == subject.is_described
        self.call(name, "get", "/api/v1/memories/schema/{kind}", "user")
        changes = self.call(name, "get", "/api/v1/memories/{kind}/history", "user")["changes"]
        assert bool(changes) == subject.is_described
        expect = 200 if subject.is_described else 404
        self.call(name, "get", "/api/v1/memories/{kind}/history/{version}", "user", "1", expect=expect)
        as_json = {"data": {}, "content_type": "application/json", "expect": expect}
        self.call(name, "post", "/api/v1/memories/{kind}/restore/{version}", "user", "1", **as_json)

    @rule(name=people)
    def read_controls(self, name: str) -> None:
        """A key without the scope reads and changes no controls."""
        self.call(name, "get", "/users/me/controls", expect=403)
        self.call(name, "put", "/users/me/controls", data={}, content_type="application/json", expect=403)

    # --- keys and names ----------------------------------------------------------------------------------------------

    @rule(name=people, owner=people)
    def claim_to_be_another(self, name: str, owner: str) -> None:
        """A key proves its own user only."""
        expect = 200 if name == owner else 403
        claim = {"user_id": self.subjects[owner].user_id}
        body = {"query": "payment", **claim}
        self.call(name, "post", "/memories/search", data=body, content_type="application/json", expect=expect)
        self.call(name, "get", "/resources", data=claim, expect=expect)
        self.call(name, "get", "/users/me/keys", data=claim, expect=expect)
        without_header = self._send("get", "/resources", {}, data={**claim, "user_key": self.subjects[name].user_key})
        self._look_for_leaks(name, without_header)
        assert without_header.status_code == (200 if name == owner else 401)

    @rule(name=people, owner=people)
    def make_a_link_to_the_pages_of_a_person(self, name: str, owner: str) -> None:
        """The pages show their person alone."""
        body = {"user_id": self.subjects[owner].user_id}
        as_json = {"content_type": "application/json", "expect": 200 if name == owner else 403}
        made = self.call(name, "post", "/browser-keys", data=body | {"scopes": ["search"]}, **as_json)
        if name == owner:
            self.subjects[name].secrets |= {made["key_id"], made["user_key"]}
        made = self.call(name, "post", "/portal-links", data=body, **as_json)
        if name != owner:
            return
        self.subjects[name].secrets.add(made["url"].rpartition("/")[2])
        browser = Client()
        assert browser.post(made["url"]).status_code == 302
        for page in ("", "files", "conversations", "connections", "looks?all=1", "trash", "profile"):
            answer = browser.get(f"/portal/{page}")
            assert answer.status_code == 200
            self._look_for_leaks(name, answer)

    @rule(name=people)
    def issue_and_list_keys(self, name: str) -> None:
        subject = self.subjects[name]
        issued = self.call(name, "post", "/users/me/keys", data={}, content_type="application/json")
        subject.secrets |= {issued["key_id"], issued["user_key"]}
        listed = self.call(name, "get", "/users/me/keys")["keys"]
        assert issued["key_id"] in {key["key_id"] for key in listed}
        subject.secrets |= {key["key_id"] for key in listed}
        self.call(name, "delete", "/users/me/keys/{key_id}", issued["key_id"])

    @rule(name=people)
    def rotate_key(self, name: str) -> None:
        subject = self.subjects[name]
        rotated = self.call(
            name, "post", "/users/me/keys/rotate", data={"grace_seconds": 0}, content_type="application/json"
        )
        subject.user_key = rotated["user_key"]
        subject.secrets |= {rotated["key_id"], rotated["user_key"]}

    @rule(name=people, owner=people)
    def revoke_another_users_key(self, name: str, owner: str) -> None:
        if name != owner:
            (key_id, *_) = (key["key_id"] for key in self.call(owner, "get", "/users/me/keys")["keys"])
            self.call(name, "delete", "/users/me/keys/{key_id}", key_id, expect=404)

    @rule(name=people)
    def create_and_list_webhooks(self, name: str) -> None:
        """Each address says whose it is, and so do the events that it gets."""
        subject, as_json = self.subjects[name], {"content_type": "application/json"}
        if len(subject.webhooks) < MAX_WEBHOOKS:
            body = {"url": f"https://{subject.marker}.example.com/"}
            created = self.call(name, "post", "/webhooks", data=body, **as_json)
            subject.webhooks.append(created["webhook_id"])
            subject.secrets.add(created["webhook_id"])
        listed = self.call(name, "get", "/webhooks")["webhooks"]
        assert {one["webhook_id"] for one in listed} == set(subject.webhooks)

    @rule(name=people, owner=people, choice=choices)
    def use_webhook(self, name: str, owner: str, choice: int) -> None:
        """One's own, or another's, which looks like none."""
        subject, known = self.subjects[name], self.subjects[owner].webhooks
        webhook_id = known[choice % len(known)] if known else str(uuid.UUID(int=choice))
        expect = 200 if webhook_id in subject.webhooks else 404
        as_json = {"content_type": "application/json", "expect": expect}
        self.call(name, "get", "/webhooks/{webhook_id}", webhook_id, expect=expect)
        self.call(name, "post", "/webhooks/{webhook_id}/test", webhook_id, **as_json)
        found = self.call(name, "get", "/webhooks/{webhook_id}/deliveries", webhook_id, expect=expect)
        subject.secrets |= {one["delivery_id"] for one in found.get("deliveries", ())}
        body = {"events": ["memory.deleted"]}
        self.call(name, "patch", "/webhooks/{webhook_id}", webhook_id, data=body, **as_json)
        self.call(name, "post", "/webhooks/{webhook_id}/rotate-secret", webhook_id, **as_json)
        if choice % 3 == 0:
            self.call(name, "delete", "/webhooks/{webhook_id}", webhook_id, expect=expect)
            if expect == 200:
                subject.webhooks.remove(webhook_id)

    @rule(name=people, owner=people)
    def erase_another(self, name: str, owner: str) -> None:
        """Whatever they confirm."""
        if name != owner:
            other = self.subjects[owner].user_id
            known = {"user_id": other, "notes": "Known to operators."}
            self.call(name, "patch", "/users", data=known, content_type="application/json")
            self.call(name, "delete", "/users/{user_id}", f"{other}?confirm=erase:{other}", expect=404)
            self.call(
                name, "delete", "/users", query_params={"user_id": other, "confirm": f"erase:{other}"}, expect=403
            )


def _file(filename: str, text: str) -> SimpleUploadedFile:
    return SimpleUploadedFile(filename, text.encode(), "text/plain")


def _body(response: Any) -> str:
    data = b"".join(response.streaming_content) if response.streaming else response.content
    if response.streaming:
        response.streaming_content = [data]
    return str(data.decode())


def walk(walks: int, steps: int) -> None:
    relay = Relay(parts=-(-steps // STEPS_OF_A_PART))
    run_state_machine_as_test(  # type: ignore[no-untyped-call]
        relay.part,
        settings=settings(
            max_examples=walks * relay.parts,
            stateful_step_count=min(steps, STEPS_OF_A_PART),
            deadline=None,
            database=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        ),
    )
    assert relay.steps >= walks * steps / 2  # Hypothesis may end a walk early


@pytest.mark.django_db(transaction=True)
def test_no_user_sees_anything_of_another(storage: Path) -> None:
    walk(walks=8, steps=40)


@pytest.mark.torture
@pytest.mark.django_db(transaction=True)
def test_no_user_sees_anything_of_another_on_long_walks(storage: Path) -> None:
    walk(walks=200, steps=2000)


def test_the_walk_takes_in_every_endpoint() -> None:
    """A new endpoint without a step here fails."""
    steps = re.sub(r"\s+", " ", inspect.getsource(Walk))
    missing = {(method, path) for method, path in operations() if f'"{method}", "{path}"' not in steps}
    assert missing == {("get", "/health")}
