"""Calls of the API that tests share."""

from __future__ import annotations

from typing import Any

import orjson
from django.core.files.uploadedfile import SimpleUploadedFile

from accounts.audit import Actor
from engines.registry import attached_remote, get_engine
from resources.services import purge
from store.models import Memory, Session
from store.types import ContentItem, Message
from tests.conftest import Person

NOON_MS = 1_781_172_177_000
CONTRACT = "The payment is due within thirty days of receipt of the invoice.\n\nThe seller delivers in Hamburg.\n"


def call(person: Person, method: str, path: str, *, status: int = 200, **fields: Any) -> dict[str, Any]:
    """Send the fields as JSON, or as query for GET, and return the response body."""
    if method == "get":
        response = person.client.get(path, fields)
    else:
        response = person.client.generic(method.upper(), path, orjson.dumps(fields), "application/json")
    assert response.status_code == status, response.content
    return dict(response.json())


def id_of(text: str) -> str:
    return str(Memory.objects.values_list("memory_id", flat=True).get(text=text))


def say(person: Person, session_id: str, *texts: str, flush: bool = True) -> None:
    """Add messages of the person to a session."""
    engine = get_engine()
    messages = [
        Message(person.user_id, "user", NOON_MS + index, (ContentItem("text", text=text),))
        for index, text in enumerate(texts)
    ]
    engine.add(person.owner, session_id, messages)
    if flush:
        engine.flush(person.owner, session_id)


def upload(person: Person, name: str = "contract.txt", text: str = CONTRACT, **fields: str) -> dict[str, Any]:
    file = SimpleUploadedFile(name, text.encode(), "text/plain")
    response = person.client.post("/resources", {"file": file, **fields})
    assert response.json().get("status") == "extracted", response.content
    return dict(response.json())


def purge_resource(person: Person, resource_id: str) -> None:
    """Delete a resource and purge it at once."""
    call(person, "delete", f"/resources/{resource_id}")
    assert purge(resource_id, actor=Actor.command("tests"))


def search(person: Person, query: str = "payment", *, status: int = 200, **fields: Any) -> dict[str, Any]:
    response = person.client.post("/memories/search", {"query": query, **fields}, content_type="application/json")
    assert response.status_code == status, response.content
    return dict(response.json())


def texts(answer: dict[str, Any]) -> list[str]:
    return [result["text"] for result in answer["results"]]


def send(person: Person, session_id: str = "chat:c1") -> None:
    """Send what waits of a session to the remote, as the background task does."""
    remote = attached_remote()
    assert remote is not None
    remote.send(person.owner, Session.objects.get(user=person.user_pk, session_id=session_id))
