"""An archive keeps all that facts, messages, sessions and files may carry: every answer is the same after an import."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.utils import timezone

from accounts import controls
from accounts.audit import Actor
from memories.api.schemas.facts import FactBody
from memories.api.schemas.messages import AddBody, MessageIn
from resources.api.schemas import ExternalBody, UploadFields
from store import attributes
from tests.conftest import Person
from tests.memories.calls import call, search, texts
from tests.operations.test_export_import import export, remove_all_users, run

pytestmark = pytest.mark.django_db(transaction=True)

LABELS: dict[str, Any] = {
    "tags": ["signed", "合同"],
    "metadata": {"year": 2026, "is_final": False, "client": {"name": "Ácme", "ids": [1, 2.5, None]}},
}
IN_SCOPE = {"app_id": "crm", "project_id": "north"}
FACT: dict[str, Any] = {
    "text": "The walnut supplier is in Kiel.",
    "category": "user_memory_preference",
    "importance": 0.25,
    "external_id": "crm:1",
    "created_at": "2026-01-02T03:04:05+00:00",
    "expires_at": "2999-01-01T00:00:00+00:00",
    "agent_id": "broker",
    "session_id": "chat:facts",
    **IN_SCOPE,
    **LABELS,
}
MESSAGE: dict[str, Any] = {
    "sender_id": "ann",
    "sender_name": "Ann",
    "role": "assistant",
    "timestamp": 1_781_172_177_000,
    "content": "Looking up the walnut price.",
    "tool_calls": [{"id": "call_1", "function": {"name": "price", "arguments": "{}"}}],
    "expires_at": "2999-02-01T00:00:00+00:00",
    **LABELS,
}
ANSWER: dict[str, Any] = {"role": "tool", "content": "The walnut price is 7.", "tool_call_id": "call_1"}
ADDED: dict[str, Any] = {
    "session_id": "chat:talk",
    "messages": [MESSAGE, ANSWER],
    "participants": [{"id": "ann", "name": "Ann"}],
    "agent_id": "broker",
    "timezone": "Europe/Berlin",
    "expires_at": "2999-03-01T00:00:00+00:00",
    **IN_SCOPE,
}
FILE: dict[str, Any] = {"title": "Walnut contract", "description": "Terms of 2026", **IN_SCOPE, **LABELS}
EXTERNAL: dict[str, Any] = {"filename": "walnuts.txt", "mime_type": "text/plain", "size_bytes": 20, **FILE}
LEFT_TO_OTHERS = {"user_id", "user_key", "incognito", "content_type", "sha256", "ingest_uri", "source_uri"}
"""Fields of the caller, those that no archive has, and those that only the file's bytes or addresses decide."""


@pytest.mark.parametrize(
    ("model", "given"),
    [(FactBody, FACT), (MessageIn, MESSAGE | ANSWER), (AddBody, ADDED), (UploadFields, FILE), (ExternalBody, EXTERNAL)],
)
def test_the_examples_give_every_field(model: Any, given: dict[str, Any]) -> None:
    assert model.model_fields.keys() - LEFT_TO_OTHERS <= given.keys()


def upload(person: Person) -> str:
    form = {name: value if isinstance(value, str) else json.dumps(value) for name, value in FILE.items()}
    file = SimpleUploadedFile("walnut.txt", b"Walnut clause one. " * 200, "text/plain")
    response = person.client.post("/resources", {"file": file, **form})
    assert response.json()["status"] == "extracted", response.content
    return str(response.json()["resource_id"])


def answers(person: Person, times: list[str]) -> dict[str, Any]:
    """Return what the API answers about everything of a user, without the numbers that depend on its rows."""
    found: dict[str, Any] = {}
    for path in ("/memories", "/memories/trash", "/sessions", "/resources", "/users/me/expiry"):
        fields = {} if path.startswith("/users") or path == "/resources" else {"limit": 100}
        scope = {} if path.startswith(("/users", "/resources")) else IN_SCOPE
        found[path] = call(person, "get", path, **fields, **scope)
    for memory in found["/memories"]["memories"]:
        found[memory["id"]] = call(person, "get", f"/memories/{memory['id']}")
    found["never"] = controls.never_of(person.user_pk)
    for one in [*times, None]:
        as_of = {"as_of": one} if one else {}
        found[f"as of {one}"] = call(person, "get", "/memories", limit=100, **IN_SCOPE, **as_of)
        for filters in (
            {},
            {"tags": {"all": LABELS["tags"]}},
            {"metadata.client.name": "Ácme", "importance": {"lt": 0.3}},
            {"OR": [{"agent_id": "broker"}, {"metadata.year": {"gte": 2026}}]},
            {"role": "tool"},
        ):
            body = {"scope": ["all_user_memory", "resources"], "filters": filters, **as_of, **IN_SCOPE}
            results = search(person, "walnut", top_k=50, fold=False, **body)["results"]
            found[f"{one} {filters}"] = [{**result, "score": None, "raw": None} for result in results]
    return found


def test_every_answer_is_the_same_after_an_import(alice: Person, storage: Path, tmp_path: Path, settings: Any) -> None:
    delivery = tmp_path / "walnuts.txt"
    delivery.write_text("Walnut delivery one.")
    settings.MEMORY_GATEWAY_FILE_URI_ROOTS = [tmp_path]
    call(alice, "put", "/users/me/expiry", days={"tag:draft": 30, "user_memory_fact": 4000})
    controls.set_never(alice.user_pk, words=["insulin"], actor=Actor.command("tests"))
    fact = call(alice, "post", "/memories", status=201, **FACT)["memory"]
    assert {name: fact[name] for name in ("tags", "metadata", "external_id", "importance", "expires_at")} == {
        name: FACT[name] for name in ("tags", "metadata", "external_id", "importance", "expires_at")
    }
    gone = call(alice, "post", "/memories", status=201, **FACT | {"external_id": "crm:2", "text": "A walnut rumour."})
    call(alice, "delete", f"/memories/{gone['memory']['id']}", reason="wrong")
    call(alice, "post", "/memories", status=201, **IN_SCOPE, text="A walnut draft.", tags=["draft"])
    call(alice, "post", "/memories/add", **ADDED)
    before_update = timezone.now().isoformat()
    changed = {**FACT, "text": "The walnut supplier is in Rostock."}
    assert call(alice, "post", "/memories", **changed)["action"] == "updated"
    resource_id = upload(alice)
    call(alice, "patch", f"/resources/{resource_id}", tags=[*LABELS["tags"], "paid"])
    external = call(alice, "post", "/resources/external", **EXTERNAL, source_uri=delivery.as_uri())
    assert external["status"] == "extracted", external
    times = [before_update, timezone.now().isoformat()]
    before = answers(alice, times)
    assert len(before["/memories"]["memories"]) > 6
    assert sum(one.get("tags") is not None for one in before["/resources"]["resources"]) == 2

    first = export(tmp_path / "first.tar", "--all", "--with-keys")
    remove_all_users(storage)
    run("import_memory", str(tmp_path / "first.tar"))
    after = answers(alice, times)
    assert after.keys() == before.keys()
    for name, answer in before.items():
        assert after[name] == answer, name
    assert list(attributes.differences([alice.owner])) == []
    assert export(tmp_path / "second.tar", "--all", "--with-keys") == first

    assert call(alice, "post", "/memories", **changed)["action"] == "unchanged"
    refused = call(alice, "post", "/memories", status=409, **FACT | {"external_id": "crm:2", "text": "Again."})
    assert refused["code"] == "deleted_by_person"
    assert "A walnut rumour." not in texts(search(alice, "walnut rumour", scope=["all_user_memory"], **IN_SCOPE))
