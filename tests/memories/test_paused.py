"""A pause: every interface answers in the shape of its contract, stores nothing, and nothing comes back later."""

from __future__ import annotations

import base64
import json
import logging
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import call_command
from django.test import Client
from django.utils import timezone

from accounts import controls, services, tokens
from accounts.audit import Actor
from accounts.models import IdempotencyKey, MemoryUser
from agents.rpc import memory_admin
from core.errors import InvalidInput
from core.times import to_ms
from engines.embedded.extraction import due_extractions
from memories.models import LoggedSearch, Tombstone
from memories.services import add as add_service
from memories.services import search_log
from operations.archives.import_ import import_archive
from resources.models import Attachment, Resource
from store import admission
from store.models import Memory, PendingEmbedding, PendingExtraction, Session
from store.vectors import fill
from tests.agents.mcp.test_tools import Agent
from tests.conftest import Person
from tests.memories.calls import call, say
from tests.memories.test_incognito import words_in_tables

pytestmark = pytest.mark.django_db(transaction=True)

ACTOR = Actor.command("tests")
WORD = "zanzibar"


def pause(person: Person, *sources: str) -> None:
    controls.set_paused(person.user_pk, sources or controls.SOURCES, actor=ACTOR)


def resume(person: Person) -> None:
    controls.set_paused(person.user_pk, (), is_loosening_allowed=True, actor=ACTOR)


def message(text: str, role: str = "user", **fields: Any) -> dict[str, Any]:
    return {"role": role, "content": text, **fields}


def add(person: Person, *messages: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return dict(call(person, "post", "/memories/add", session_id="chat:c1", messages=list(messages), **fields))


def texts() -> list[str]:
    return list(Memory.objects.order_by("pk").values_list("text", flat=True))


def upload(person: Person, text: str) -> Any:
    return person.client.post("/resources", {"file": SimpleUploadedFile("notes.txt", text.encode())})


def mcp(person: Person, tool: str, **arguments: Any) -> dict[str, Any]:
    return Agent(person).call(tool, **arguments)


def test_every_interface_answers_in_its_shape_and_stores_nothing(
    alice: Person, tmp_path: Path, caplog: pytest.LogCaptureFixture, settings: Any
) -> None:
    caplog.set_level(logging.INFO)
    api_log = StringIO()
    handler = logging.StreamHandler(api_log)
    logging.getLogger("memory_gateway.api").addHandler(handler)
    settings.MEMORY_GATEWAY_LOG_BODIES = True
    pause(alice)
    said = f"I live in {WORD}."
    added = add(alice, message(said), message("I see.", "assistant"))
    assert (added["stored"], added["paused"], added["refused"]) == (0, True, {"paused": 2})
    assert added["backend"]["data"]["message_count"] == 2
    flushed = call(alice, "post", "/memories/flush", session_id="chat:c1")
    assert (flushed["stored"], flushed["paused"]) == (0, True)
    assert flushed["backend"]["data"] == {"status": "no_extraction", "memory_count": 0, "searchable_at": None}
    for key in ("one", "one", "two"):
        fact = alice.client.post("/memories", {"text": said}, "application/json", headers={"idempotency-key": key})
        assert fact.status_code == 200
        assert fact.json() == {
            "memory": None, "action": "refused", "similar": [], "replaces": [], "stored": 0, "paused": True,
            "refused": {"paused": 1},
        }  # fmt: skip
    bulk = call(alice, "post", "/memories/bulk", memories=[{"text": said}, {"text": "Also."}])
    assert (bulk["stored"], bulk["paused"]) == (0, True)
    assert [one["action"] for one in bulk["results"]] == ["refused", "refused"]
    answer = upload(alice, said)
    assert (answer.status_code, answer.json()["code"]) == (403, "paused")
    external = {"source_uri": "https://example.com/a.txt", "filename": f"{WORD}.txt"}
    answer = alice.client.post("/resources/external", external, "application/json")
    assert (answer.status_code, answer.json()["code"]) == (403, "paused")
    tool = {"tool": "memory_store", "args": {"text": said}}
    details = call(alice, "post", "/tools/invoke", **tool)["result"]["details"]
    assert (details["stored"], details["paused"], details["action"]) == (0, True, "refused")
    stored = mcp(alice, "memory_store", text=said)
    assert (stored["stored"], stored["paused"], stored["refused"]) == (0, True, {"paused": 1})
    assert WORD not in str(stored)
    session = mcp(alice, "session_add", session_id="chat:c1", messages=[{"role": "user", "content": said}], flush=True)
    assert (session["stored"], session["paused"], session["status"]) == (0, True, "no_extraction")
    profile = mcp(alice, "profile_update", kind="user", content={"interests": [WORD]})
    assert profile["error"] == "not_kept"
    user = MemoryUser.objects.get(pk=alice.user_pk)
    principal = tokens.authenticate(tokens.issue("t", user=user, actor=ACTOR).plaintext)
    row = memory_admin.add(principal, {"agentId": "main", "text": said, "category": "user_memory_fact"})
    assert (row["id"], row["stored"], row["paused"]) == (None, 0, True)
    source = tmp_path / "mem0.json"
    source.write_text(json.dumps({"results": [{"id": "1", "memory": said}]}))
    with pytest.raises(Exception, match="paused"):
        call_command("import_from", "mem0", str(source), "--user", alice.user_id, "--apply", stdout=StringIO())
    logging.getLogger("memory_gateway.api").removeHandler(handler)
    assert texts() == []
    assert not Session.objects.exists()
    assert not Resource.objects.exists()
    logged = api_log.getvalue() + caplog.text
    assert "/memories/add" in logged
    assert WORD not in logged
    assert WORD not in str(list(IdempotencyKey.objects.values_list("result", flat=True)))


def test_a_resent_transcript_stays_refused(alice: Person) -> None:
    before, during, after = f"Before {WORD}, quite long.", f"During {WORD}, quite long.", f"After {WORD}, quite long."
    add(alice, message(before))
    pause(alice, "chats")
    began = to_ms(timezone.now())
    add(alice, message(during), message("So be it, says the agent.", "assistant"))
    resume(alice)
    add(alice, message(after))
    fresh = to_ms(timezone.now()) + 60_000
    for at_ms in (None, began, fresh):
        times = [{} if at_ms is None else {"timestamp": at_ms + number} for number in range(2)]
        answer = add(alice, message(during, **times[0]), message("So be it, says the agent.", "assistant", **times[1]))
        assert (answer["stored"], answer["refused"], "paused" in answer) == (0, {"paused": 2}, False)
    mcp(alice, "session_add", session_id="chat:c2", messages=[{"role": "user", "content": during}])
    assert texts() == [before, after]
    assert add(alice, message("Something else, quite new.", timestamp=fresh))["stored"] == 1


def test_files_alone_can_be_paused(alice: Person) -> None:
    pause(alice, "files")
    data = base64.b64encode(WORD.encode()).decode()
    file = {"type": "doc", "name": "a.txt", "ext": "txt", "base64": data}
    answer = add(
        alice,
        {"role": "user", "content": [{"type": "text", "text": "Look at this."}, file]},
        {"role": "user", "content": [file]},
    )
    assert (answer["stored"], answer["refused"], answer["paused"]) == (1, {"paused": 2}, True)
    assert texts() == ["Look at this."]
    assert not Attachment.objects.exists()
    assert upload(alice, WORD).status_code == 403


def test_corrections_and_deletions_work_during_a_pause(alice: Person) -> None:
    say(alice, "chat:c1", "I like tea.", "I like coffee.")
    pause(alice)
    tea, coffee = Memory.objects.order_by("pk").values_list("memory_id", flat=True)
    call(alice, "patch", f"/memories/{tea}", override_text="I like green tea.")
    call(alice, "delete", f"/memories/{coffee}")
    assert sorted(Memory.objects.filter(state="live").values_list("text", flat=True)) == ["I like green tea."]
    assert alice.client.get("/users/me/export").status_code == 200


def test_nothing_goes_to_models_during_a_pause(alice: Person, bob: Person, settings: Any) -> None:
    settings.MEMORY_GATEWAY_MODELS = {}
    for person in (alice, bob):
        say(person, "chat:c1", "I like tea.")
        session = Session.objects.get(user=person.user_pk)
        PendingExtraction.objects.create(
            user_id=person.user_pk, app_id="default", project_id="default", session=session, batch_id="b", after_seq=-1,
            until_seq=0,
        )  # fmt: skip
    mark_pending()
    everyone = {alice.user_pk, bob.user_pk}
    assert held() == everyone
    pause(alice, "files", "agents")
    assert held() == everyone
    pause(alice)
    assert held() == {bob.user_pk}
    resume(alice)
    assert held() == everyone


def mark_pending() -> None:
    PendingEmbedding.objects.bulk_create(PendingEmbedding(memory=memory) for memory in Memory.objects.all())


def held() -> set[Any]:
    """The users of whom something would go to a model now."""
    to_extract = set(due_extractions(timezone.now()).values_list("user", flat=True))
    assert to_extract == set(fill.pending().values_list("memory__user", flat=True))
    return to_extract


def test_the_search_log_has_no_words_of_a_pause(alice: Person, settings: Any) -> None:
    settings.MEMORY_GATEWAY_LOG_QUERIES = True
    pause(alice, "chats")
    call(alice, "post", "/memories/search", query=f"What about {WORD}?", scope=["all_user_memory"])
    search_log.write()
    assert list(LoggedSearch.objects.values_list("query", flat=True)) == [""]


def test_a_search_of_a_pause_is_logged_without_words_after_its_end(alice: Person, settings: Any) -> None:
    settings.MEMORY_GATEWAY_LOG_QUERIES = True
    pause(alice, "chats")
    call(alice, "post", "/memories/search", query=f"What about {WORD}?", scope=["all_user_memory"])
    resume(alice)
    search_log.write()
    call(alice, "post", "/memories/search", query="tea", scope=["all_user_memory"])
    search_log.write()
    assert list(LoggedSearch.objects.order_by("pk").values_list("query", flat=True)) == ["", "tea"]


def test_imports_leave_out_what_was_said_during_a_pause(alice: Person, tmp_path: Path) -> None:
    pause(alice)
    at = timezone.now().isoformat()
    resume(alice)
    rows = [("1", f"Of {WORD}.", at), ("2", "Of old times.", "2020-01-01T00:00:00Z")]
    source = tmp_path / "mem0.json"
    source.write_text(
        json.dumps({"results": [{"id": one, "memory": text, "created_at": at} for one, text, at in rows]})
    )
    call_command("import_from", "mem0", str(source), "--user", alice.user_id, "--apply", stdout=StringIO())
    assert texts() == ["Of old times."]


def test_archives_of_a_paused_user_are_refused(alice: Person, tmp_path: Path) -> None:
    archive = tmp_path / "alice.tar"
    say(alice, "chat:c1", "I like tea.")
    call_command("export_memory", str(archive), "--all", stdout=StringIO(), stderr=StringIO())
    pause(alice, "chats")
    with pytest.raises(InvalidInput, match="paused"):
        import_archive(archive, on_conflict="replace", actor=ACTOR)
    assert controls.is_paused(alice.user_pk, "chats")


def test_keys_of_applications_only_tighten(alice: Person) -> None:
    key = services.issue_key(alice.user_pk, granted=["controls"], actor=ACTOR).plaintext
    client = Client(headers={"authorization": f"Bearer {key}"})
    assert alice.client.get("/users/me/controls").status_code == 403
    answer = client.put("/users/me/controls", {"paused": ["chats"]}, "application/json")
    assert answer.json()["paused"] == ["chats"]
    assert [(one["source"], one["by"]) for one in answer.json()["pauses"]] == [("chats", "key")]
    assert client.put("/users/me/controls", {}, "application/json").json()["paused"] == ["chats"]
    for paused in ([], ["files"], ["agents", "files"]):
        refused = client.put("/users/me/controls", {"paused": paused}, "application/json")
        assert (refused.status_code, refused.json()["code"]) == (403, "loosening_refused")
        assert "provisioning token" in refused.json()["detail"]
    assert client.get("/users/me/controls").json()["paused"] == ["chats"]
    assert client.put("/users/me/controls", {"paused": ["thoughts"]}, "application/json").status_code == 422


def test_a_key_of_an_agent_writes_nothing_new_by_a_correction(alice: Person) -> None:
    memory_id = call(alice, "post", "/memories", status=201, text="Likes tea")["memory"]["id"]
    pause(alice)
    key = services.issue_key(alice.user_pk, actor=ACTOR, granted=["search", "decide"], agent_id="helper").plaintext
    client = Client(headers={"Authorization": f"Bearer {key}"})
    refused = client.patch(f"/memories/{memory_id}", {"override_text": f"Lives in {WORD}"}, "application/json")
    assert (refused.status_code, refused.json()["paused"]) == (403, True), refused.content
    assert texts() == ["Likes tea"]
    call(alice, "patch", f"/memories/{memory_id}", override_text="Likes coffee")
    assert texts() == ["Likes coffee"]


def test_a_pause_between_admission_and_storing_refuses(alice: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    said = message(f"I live in {WORD}.")

    def pausing(service: Any) -> Any:
        asked = service.admit

        def admit(*args: Any, **options: Any) -> Any:
            admission = asked(*args, **options)
            pause(alice)
            return admission

        return admit

    for service in (add_service, admission):
        with monkeypatch.context() as patched:
            patched.setattr(service, "admit", pausing(service))
            if service is add_service:
                answer = add(alice, said)
            else:
                answer = call(alice, "post", "/memories", text=said["content"])
        assert (answer["stored"], answer["paused"], answer["refused"]) == (0, True, {"paused": 1})
        resume(alice)
        assert add(alice, said)["refused"] == {"paused": 1}, "its digest is known"
        assert texts() == []


@pytest.mark.parametrize("granted", [["search", "decide"], None])
def test_the_person_edits_a_profile_during_a_pause_and_an_agent_does_not(alice: Person, granted: Any) -> None:
    call(alice, "put", "/api/v1/memories/user", content={"occupation": "Gardener"})
    pause(alice)
    key = services.issue_key(alice.user_pk, actor=ACTOR, granted=granted).plaintext
    client = Client(headers={"Authorization": f"Bearer {key}"})
    change = client.patch("/api/v1/memories/user", {"content": {"occupation": WORD}}, "application/json")
    same = client.put("/api/v1/memories/user", {"content": {"occupation": WORD}}, "application/json")
    assert {change.status_code, same.status_code} == {403 if granted else 200}
    occupation = alice.client.get("/api/v1/memories/user").json()["occupation"]
    assert (occupation == WORD) is (granted is None)
    restored = client.post("/api/v1/memories/user/restore/1", {}, "application/json")
    assert restored.status_code == 200, restored.content  # for an agent it has nothing new


def test_reasons_of_keys_are_not_kept_during_a_pause(alice: Person) -> None:
    say(alice, "chat:c1", "I like tea.", "I like coffee.", "I like cocoa.")
    pause(alice)
    tea, *_others = Memory.objects.order_by("pk").values_list("memory_id", flat=True)
    call(alice, "delete", f"/memories/{tea}", reason=f"Lives in {WORD}.")
    call(alice, "delete", "/sessions/chat:c1", reason=f"Lives in {WORD}.")
    assert WORD not in str(list(Tombstone.objects.values_list("reason", flat=True)))
    resume(alice)
    say(alice, "chat:c2", "I like water.")
    pause(alice)
    chosen = {"filters": {"session_id": "chat:c2"}, "reason": f"Lives in {WORD}."}
    count = call(alice, "post", "/memories/delete", **chosen, dry_run=True)["count"]
    call(alice, "post", "/memories/delete", **chosen, expected_count=count)
    assert WORD not in words_in_tables()
