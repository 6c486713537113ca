"""Fill a gateway with every case that an upgrade has to carry: `python -m tests.upgrade.cases embedded|everos STATE`.

It runs in a process of the gateway's environment, by the code of `tests.upgrade.fixture.COMMIT`. STATE is what the
clients know: keys, calls, and what the stand-in for EverOS holds at the end.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path
from typing import Any

import memory_gateway.django_setup  # noqa: F401  must come first: it sets up Django

# isort: split
from django.conf import settings
from django.core.management import call_command
from django.test.utils import setup_test_environment
from django.utils import timezone
from operations.moves import reingest  # type: ignore[import-not-found]
from operations.moves.plan import EngineName, Target, plan  # type: ignore[import-not-found]
from store.external import staging  # type: ignore[import-not-found]

from engines.registry import get_engine
from memories.models import Tombstone
from memories.services import decisions
from operations import bulk, erase, jobs
from operations.cleanup import purge
from operations.importers import import_from
from operations.models import UnmatchedDecision
from profiles import services as profiles
from resources.services import deletion
from store import rollups
from store.models import LeftUpstream, Memory, Session
from store.types import ContentItem, Message
from tests.stub_everos import Store
from tests.stub_llm import running_llm
from tests.stub_upstream import Fault, StubUpstream
from tests.upgrade.filling import (
    OPERATOR,
    AwayEngine,
    Filled,
    derive,
    fact,
    marked,
    passages,
    use_llm,
)

SCENARIOS = ("embedded", "everos")
MANY_USERS = 20


def main() -> None:
    setup_test_environment()  # for the host name of the test client
    parser = argparse.ArgumentParser()
    parser.add_argument("scenario", choices=SCENARIOS)
    parser.add_argument("state", type=Path)
    parser.add_argument("--memories", type=int, default=0, help="synthetic memories of more users")
    options = parser.parse_args()
    if options.scenario == "embedded":
        state = {"users": fill_embedded()}
    else:
        with StubUpstream() as stub:
            state = {"users": fill_everos(stub), "everos": dump_store(stub.store)}
    if options.memories:
        state["users"] |= fill_many(options.memories)
    rollups.settle()
    options.state.write_text(json.dumps(state, ensure_ascii=False))


def fill_many(memories: int) -> dict[str, Any]:
    """Synthetic memories of twenty users, whom the command finds by their names; every tenth is read alone too."""
    many = [Filled.create(f"many-{number:05}") for number in range(MANY_USERS)]
    call_command("seed_memories", str(memories), "--users", str(MANY_USERS))
    return {one.person.user_id: client_state(one) | {"step": 10} for one in many}


# --- the embedded engine ----------------------------------------------------------------------------------------------


def fill_embedded() -> dict[str, Any]:
    alice, bob = Filled.create("alice"), Filled.create("bob")
    fill_messages(alice)
    fill_messages(bob)  # sessions and texts of the same names
    fill_facts(alice)
    fill_files(alice)
    fill_derived(alice)
    fill_group(alice)
    fill_purged(alice)
    fill_jobs(bob)
    fill_erased()
    return {one.person.user_id: client_state(one) for one in (alice, bob)}


def fill_messages(user: Filled) -> None:
    """Chats with deleted, restored and edited messages, one in the trash, one that is open, one of another scope."""
    _, gone, back, edited, twice, was_edited, both = user.talk(
        "chat:c1",
        "I like walnut tea.",
        "Ignore the rumour of the harbour.",
        "My bicycle is red.",
        "My flat is in Hamburg.",
        "My sister lives in Rome.",
        "The train leaves at nine.",
        "The dentist is in Kiel Street.",
    )
    user.delete(gone, reason="it is private")
    user.restore(user.delete(back))
    user.edit(edited, marked("My flat is in Bremen."))
    user.edit(twice, marked("My sister lives in Milan."))
    user.edit(twice.replace("Rome", "Milan")[:23], marked("My sister lives in Turin."), category="user_memory_fact")
    user.undo_edit(user.edit(was_edited, marked("The train leaves at ten.")))
    user.edit(both, marked("The dentist is in Bonn Street."))
    user.delete("Bonn Street")
    user.talk("chat:trash", "An evening with walnut cake.", "assistant: Noted, an evening.")
    user.delete_session("chat:trash")
    deleted_alone, _ = user.talk("chat:trash-2", "A word deleted by itself.", "A word deleted with its chat.")
    user.delete(deleted_alone)
    user.delete_session("chat:trash-2")
    user.talk("chat:back", "A chat that was in the trash.")
    user.delete_session("chat:back")
    user.call("post", "/sessions/chat:back/restore")
    user.talk("chat:open", "assistant: What did the landlord say?", "The landlord comes on Friday.", flush=False)
    user.talk("chat:open-2", "The first half of a chat.")
    user.talk("chat:open-2", "The second half of a chat.", flush=False)
    user.talk("chat:c1", "The same chat in another project.", app_id="walks", project_id="p2")
    call = {"id": "call_7", "type": "function", "function": {"name": "trains", "arguments": "{}"}}
    user.say(
        "chat:tools",
        [
            user.message(marked("assistant: I look at the trains."), tool_calls=[call]),
            user.message(marked("At nine and at ten."), sender_id="main", role="tool", tool_call_id="call_7"),
            user.message(marked("You are a helpful assistant."), sender_id="main", role="system"),
            user.message("好的，我们下周去上海开会。"),
        ],
    )
    text = "Tm90ZXMgYWJvdXQgdGhlIGJvYXQuCg=="  # "Notes about the boat.\n"
    item = {"type": "doc", "name": "boat.txt", "ext": "txt", "base64": text}
    user.say("chat:files", [user.message(marked("See the notes."), content=[item])])


def fill_facts(user: Filled) -> None:
    """Facts of a tool, of the panel and of an import; some deleted, edited, of one agent."""
    user.by_tool(marked("She prefers aisle seats."), category="user_memory_preference")
    user.by_tool(marked("The coder uses tabs."), agent_id="coder", category="user_memory_fact")
    user.by_panel(marked("The office closes at six."))
    user.by_panel(marked("A private note of the planner."), agent_id="planner")
    gone, edited = marked("The old door code is 1234."), marked("The new door code is 5678.")
    user.by_panel(gone)
    user.by_panel(edited)
    user.delete(gone)
    user.edit(edited, marked("The newest door code is 9012."))
    items = [
        {"id": f"m{number}", "memory": marked(text), "created_at": "2026-06-01T10:00:00Z", "agent_id": "main"}
        for number, text in enumerate(("Imported: she plays the piano.", "Imported: she has a cat."))
    ]
    import_items(user, items)
    user.delete(items[1]["memory"])
    profiles.patch(user.person.user_pk, "user", {"interests": ["walnut pie"]}, actor=OPERATOR)
    profiles.patch(user.person.user_pk, "work", {"occupation": "gardener"}, actor=OPERATOR)


def import_items(user: Filled, items: list[dict[str, Any]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "mem0.json")
        path.write_text(json.dumps(items))
        request = import_from.Request(source="mem0", path=path, owner=user.person.owner)
        job = jobs.interrupted_or_new(import_from.KIND, request.as_json(), actor=OPERATOR, total=len(items))
        assert jobs.run_now(job).status == "done"


def fill_files(user: Filled) -> None:
    """Files of each status, and files in the trash: deleted by themselves, with their session, after a passage."""
    tea, rum, ale = marked("It speaks of tea"), marked("It speaks of rum"), marked("It speaks of ale")
    extracted = user.upload("drinks.txt", passages(tea, rum, ale), title="On drinks")
    if not get_engine().is_external:  # EverOS makes one memory of the whole file
        user.delete(rum)
        user.edit(ale, marked("It speaks of beer"))
    assert extracted["status"] == "extracted", extracted
    user.upload("blank.txt", " \n \n")
    refused = {"filename": "chart.csv", "source_uri": "minio://bucket/chart.csv", "mime_type": "text/csv"}
    user.call("post", "/resources/external", **refused)
    user.pending_file(marked("An upload that waits."))
    user.interrupted_file(marked("An upload that was interrupted."))
    for name, by_itself, by_session in (("one", True, False), ("two", False, True), ("three", True, True)):
        file = user.upload(f"trash-{name}.txt", passages(marked(f"File {name} of the trash")))
        if by_session:
            user.call("delete", f"/sessions/{file['session_id']}")
        if by_itself:
            user.call("delete", f"/resources/{file['resource_id']}")
    after_passage = user.upload("trash-four.txt", passages(marked("A deleted passage"), marked("A kept passage")))
    passage = Memory.objects.filter(session__session_id=after_passage["session_id"], delivery_state="").first()
    assert passage is not None
    user.call("delete", f"/memories/{passage.memory_id}")
    user.call("delete", f"/resources/{after_passage['resource_id']}")
    back = user.upload("back.txt", passages(marked("A file that came back")))
    user.call("delete", f"/resources/{back['resource_id']}")
    user.call("post", f"/resources/{back['resource_id']}/restore")
    waiting = user.pending_file(marked("An upload deleted before it was read."))
    user.call("delete", f"/resources/{waiting.resource_id}")
    gone = user.upload("purged.txt", passages(marked("A purged file")))
    user.call("delete", f"/resources/{gone['resource_id']}")
    assert deletion.purge(gone["resource_id"], actor=OPERATOR)
    half = user.upload("half.txt", passages(marked("A file purged half way")))
    user.purge_file_halfway(half["resource_id"], AwayEngine())


def fill_derived(user: Filled) -> None:
    """Memories of a model: superseded with and without a tombstone, hidden with a source, edited; and a profile."""
    with running_llm() as llm:
        use_llm(llm)
        _, tea = user.talk("chat:derived", "I live in Oslo for now.", "Tea for me, please.")
        first, second = marked("Lives in Oslo."), marked("Prefers tea.")
        derive(llm, fact(first, 1), fact(second, 2, kind="preference"))
        user.delete(tea)  # hides what was derived from it
        user.edit(first, marked("Lives in Oslo until May."))
        said = user.talk("chat:derived-2", "I have a boat in Bergen.")[0]
        derive(llm, fact(marked("Has a boat."), 1))
        user.edit(said, marked("I have two boats in Bergen."))
        derive(llm, fact(marked("Has two boats."), 1))
        user.talk("chat:derived-3", "I play the violin.")
        violin = marked("Plays the violin.")
        derive(llm, fact(violin, 1))
        user.delete(violin)
        for thing, is_deleted in (("garage", False), ("cellar", True)):
            older = marked(f"The {thing} is in Elm Street.")
            user.by_panel(older)
            user.by_panel(marked(f"The {thing} is in Oak Street."))
            derive(llm)
            assert user.row(older).hidden_reason == "superseded"
            if is_deleted:
                user.delete(older)
    use_llm(None)
    assert Memory.objects.filter(user_id=user.person.user_pk, memory_type="profile").exists()


def fill_group(user: Filled) -> None:
    """A group chat; one participant's messages are deleted. Agents of two names speak in another chat."""
    dan = {"sender_id": "dan", "sender_name": "Dan"}
    eve = {"sender_id": "eve", "sender_name": "Eve"}
    participants = [{"id": "dan", "name": "Dan"}, {"id": "eve", "name": "Eve"}]
    user.say(
        "chat:group",
        [
            user.message(marked("Who brings the tent?")),
            user.message(marked("I bring the tent."), **dan),
            user.message(marked("I bring the stove."), **eve),
        ],
        participants=participants,
    )
    if not get_engine().is_external:
        answer = user.call("delete", "/memories", sender_id="dan")
        assert answer["deleted_count"] == 1
    user.say(
        "chat:agents",
        [
            user.message(marked("Plan my trip.")),
            user.message(marked("The planner plans the trip."), sender_id="planner", role="assistant"),
            user.message(marked("The coder books the trip."), sender_id="coder", role="assistant"),
        ],
    )


def fill_purged(user: Filled) -> None:
    """A purged memory, which leaves an empty row, and a purged session."""
    gone, _ = user.talk("chat:purged-1", "A purged word.", "A word that stays.")
    user.delete(gone)
    user.talk("chat:purged-2", "A word of a purged chat.")
    user.delete_session("chat:purged-2")
    found = Tombstone.objects.filter(
        user_id=user.person.user_pk, session_id__startswith="chat:purged", undone_at__isnull=True
    )
    purge.purge_memory([one.pk for one in found], actor=OPERATOR)


def fill_jobs(user: Filled) -> None:
    """Jobs of operators that can still be undone, one of them after another decision."""
    texts = user.talk("chat:bulk", *(f"Bulk word {number}." for number in range(6)))
    rows = [user.row(text).pk for text in texts]
    bulk.start("delete", bulk.of_rows(rows[:3]), {"reason": "clean up"}, actor=OPERATOR)
    user.restore(str(Memory.objects.get(pk=rows[0]).memory_id))
    user.call("delete", f"/memories/{Memory.objects.get(pk=rows[0]).memory_id}")
    bulk.start("categorize", bulk.of_rows(rows[3:5]), {"category": "user_memory_fact"}, actor=OPERATOR)
    user.delete(texts[5])
    bulk.start("restore", bulk.of_rows(rows[5:], in_trash=True), {}, actor=OPERATOR)
    user.talk("chat:bulk-session", "A chat that an operator deleted.")
    decisions.delete_session_undoably(user.person.owner, "chat:bulk-session", actor=OPERATOR)
    file = user.upload("bulk.txt", passages(marked("A file that an operator deleted")))
    deletion.delete_as(user.person.user_pk, user.person.user_id, file["resource_id"], actor=OPERATOR)


def fill_erased() -> None:
    """A user who was erased."""
    carol = Filled.create("carol")
    carol.delete(carol.talk("chat:c1", "A word of an erased user.")[0])
    carol.talk("chat:open", "An open word of an erased user.", flush=False)
    carol.upload("carol.txt", passages(marked("A file of an erased user")))
    erase.erase(carol.person.user_pk, actor=OPERATOR)


# --- EverOS -----------------------------------------------------------------------------------------------------------


def fill_everos(stub: StubUpstream) -> dict[str, Any]:
    """A gateway that began with the embedded engine, and has had EverOS since."""
    alice, bob, frank = (Filled.create(name) for name in ("alice", "bob", "frank"))
    fill_messages(frank)  # stays embedded, except what is moved below
    fill_files(frank)
    use_everos(stub)
    fill_remote_messages(alice, stub)
    fill_remote_messages(bob, stub)
    fill_facts(alice)
    fill_files(alice)
    fill_group(alice)
    fill_remote_purged(alice)
    fill_remote_jobs(bob)
    stub.store.profiles.append(profile_of(alice))
    fill_moved(frank, stub)
    fill_unmatched(bob, stub)
    fill_erased()
    assert LeftUpstream.objects.exists()
    return {one.person.user_id: client_state(one) for one in (alice, bob, frank)}


def use_everos(stub: StubUpstream | None) -> None:
    settings.MEMORY_GATEWAY_BACKEND_BASE_URL = stub.url if stub else ""


def fill_remote_messages(user: Filled, stub: StubUpstream) -> None:
    """Chats whose episodes are deleted, restored, edited; open, unconfirmed, and with a flush of unknown outcome."""
    user.talk("chat:c1", "I like walnut tea.", "assistant: Noted, walnut tea.")
    for session_id, text in (("chat:gone", "the harbour"), ("chat:back", "the bicycle"), ("chat:edit", "the flat")):
        user.talk(session_id, f"A story of {text}.")
    user.delete("story of the harbour", reason="it is private")
    user.restore(user.delete("story of the bicycle"))
    user.edit("story of the flat", marked("A story of two flats."))
    user.talk("chat:edit-2", "The train leaves at nine.")
    user.undo_edit(user.edit("train leaves at nine", marked("The train leaves at ten.")))
    user.talk("chat:both", "The dentist is in Kiel Street.")
    user.edit("dentist is in Kiel", marked("The dentist is in Bonn Street."))
    user.delete("dentist is in Bonn")
    user.talk("chat:trash", "An evening with walnut cake.")
    user.delete_session("chat:trash")
    user.talk("chat:open", "The landlord comes on Friday.", "assistant: On Friday.", flush=False)
    user.talk("chat:open-2", "The first half of a chat.")
    user.talk("chat:open-2", "The second half of a chat.", flush=False)
    user.talk("chat:c1", "The same chat in another project.", app_id="walks", project_id="p2")
    stub.fault("add", Fault(reset=True), times=4)
    user.talk("chat:unconfirmed", "A message of unknown outcome.", flush=False, status=503)
    stub.heal("add")
    stub.fault("add", Fault(reset=True, acts=True), times=4)
    user.talk("chat:unconfirmed-2", "A message that arrived without an answer.", flush=False, status=503)
    stub.heal("add")
    user.talk("chat:flushing", "A flush of unknown outcome.", flush=False)
    stub.fault("flush", Fault(reset=True, acts=True), times=4)
    stub.fault("get", Fault(status=503), times=40)
    user.call("post", "/memories/flush", status=503, session_id="chat:flushing")
    stub.heal("flush")
    stub.heal("get")
    user.say(
        "chat:tools",
        [
            user.message(marked("assistant: I look at the trains.")),
            user.message(marked("You are a helpful assistant."), sender_id="main", role="system"),
            user.message("好的，我们下周去上海开会。"),
        ],
    )
    settings.MEMORY_GATEWAY_FULL_CONTEXT_MEMORY = False
    user.talk("chat:cleared", "A chat without a transcript.")
    settings.MEMORY_GATEWAY_FULL_CONTEXT_MEMORY = True


def fill_remote_purged(user: Filled) -> None:
    """A purged episode, whose messages are cleared, and a purged session."""
    user.talk("chat:purged-1", "A purged word.")
    user.talk("chat:purged-1", "A word that stays.")
    user.delete("purged word")
    user.talk("chat:purged-2", "A word of a purged chat.")
    user.delete_session("chat:purged-2")
    found = Tombstone.objects.filter(
        user_id=user.person.user_pk, session_id__startswith="chat:purged", undone_at__isnull=True
    )
    purge.purge_memory([one.pk for one in found], actor=OPERATOR)


def fill_remote_jobs(user: Filled) -> None:
    for number in range(4):
        user.talk(f"chat:bulk-{number}", f"Bulk word {number}.")
    rows = [user.row(f"Bulk word {number}.").pk for number in range(4)]
    bulk.start("delete", bulk.of_rows(rows[:2]), {"reason": "clean up"}, actor=OPERATOR)
    bulk.start("categorize", bulk.of_rows(rows[2:]), {"category": "user_memory_fact"}, actor=OPERATOR)


def fill_moved(user: Filled, stub: StubUpstream) -> None:
    """One chat with decisions that a move sent to EverOS, and one whose move was interrupted after it was sent."""
    move(user, "chat:c1", "upstream")
    session = Session.objects.get(user_id=user.person.user_pk, session_id="chat:back")
    rows = Memory.objects.filter(session=session).order_by("seq")
    waiting = staging.staging_session(user.person.owner, session, timezone.now())
    get_engine().stage(user.person.owner, waiting, plain_messages(rows), [])  # type: ignore[attr-defined]
    assert stub.calls("flush")


def plain_messages(rows: Any) -> list[Any]:
    return [Message(row.sender_id, "user", row.created_at_ms, (ContentItem("text", text=row.text),)) for row in rows]


def fill_unmatched(user: Filled, stub: StubUpstream) -> None:
    """A deletion that a move out of EverOS could not match, which hides a similar memory."""
    user.talk("chat:unmatched", "my aunt has green tea with milk every day", "Rome is far away")
    user.talk("chat:unmatched", "the house is old")
    replayed = "green tea with milk was what the lady of the house would always take at five in the afternoon"
    aunt = user.row("my aunt has green tea")
    [episode] = [one for one in stub.store.episodes if one["id"] == aunt.memory_id]
    episode["episode"] = replayed
    Memory.objects.filter(pk=aunt.pk).update(text=replayed, original_text=replayed)
    Memory.objects.filter(session=aunt.session, memory_type="episode").update(batch_id="")
    user.delete("lady of the house")
    move(user, "chat:unmatched", "embedded")
    assert UnmatchedDecision.objects.get().hides


def move(user: Filled, session_id: str, into: EngineName) -> None:
    session = Session.objects.get(user_id=user.person.user_pk, session_id=session_id, app_id="default")
    outcome = reingest.run(plan(Target(session_pk=session.pk), into), actor=OPERATOR, workers=1)
    assert not outcome.failures


def profile_of(user: Filled) -> dict[str, Any]:
    user_id = user.person.user_id
    data = {"summary": marked("Likes walnut tea."), "explicit_info": [], "implicit_traits": []}
    return {
        "id": user_id,
        "user_id": user_id,
        "app_id": "default",
        "project_id": "default",
        "profile_data": data,
        "score": None,
    }


# --- state ------------------------------------------------------------------------------------------------------------


def client_state(user: Filled) -> dict[str, Any]:
    return {"key": user.person.user_key, "talks": user.talks}


_LISTS = ("episodes", "profiles", "agent_cases", "agent_skills")


def dump_store(store: Store) -> dict[str, Any]:
    """Return what the stand-in for EverOS holds as plain JSON."""
    buffers = [[list(place), messages] for place, messages in store.buffers.items() if messages]
    return {"buffers": buffers, "counter": store.counter, **{name: getattr(store, name) for name in _LISTS}}


if __name__ == "__main__":
    main()
