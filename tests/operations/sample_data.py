"""Create users with data in every table and folder."""

from __future__ import annotations

import base64
from dataclasses import dataclass

from accounts import controls
from accounts.audit import Actor
from profiles import services as profiles
from remote.models import OutboxEntry, Resend
from store.admission import Offer, admit
from store.models import Memory
from tests.conftest import Person
from tests.memories.calls import NOON_MS, call, id_of, say, upload


@dataclass(frozen=True)
class SampleData:
    """The user, an uploaded resource, and the content of a file sent in a message."""

    person: Person
    resource_id: str
    inline: bytes


def create_sample_data(person: Person, word: str = "walnut") -> SampleData:
    """Give a user data of every kind; every text contains `word`.

    These are sessions with a deleted and an overridden memory and with an unflushed message, a deleted session, two
    resources, one of them deleted, a profile, and a message with a file.
    """
    say(person, "chat:c1", f"I like {word} tea.", f"My {word} flat is in Hamburg.", f"Ignore the {word} rumour.")
    say(person, "chat:trash", f"An evening with {word} cake.")
    say(person, "chat:c2", f"The {word} meeting is on Friday.", flush=False)
    resource = upload(person, f"{word}.txt", f"The {word} contract runs for ten years.", title=f"On {word}")
    deleted = upload(person, f"old-{word}.txt", f"The old {word} contract.")
    call(person, "delete", f"/resources/{deleted['resource_id']}")
    call(person, "delete", f"/memories/{id_of(f'Ignore the {word} rumour.')}", reason=f"{word} is private")
    overridden = id_of(f"My {word} flat is in Hamburg.")
    call(person, "patch", f"/memories/{overridden}", override_text=f"My {word} flat is in Bremen.")
    call(
        person,
        "patch",
        f"/memories/{overridden}",
        override_text=f"My {word} flat is in Kiel.",
        category="user_memory_fact",
    )
    call(person, "delete", "/sessions/chat:trash", reason=f"no more {word}")
    for name in (f"{word} pie", f"{word} bread"):
        actor = Actor.command("tests")
        profiles.patch(person.user_pk, "user", {"interests": [name]}, actor=actor)
    inline = f"Notes about {word}.".encode()
    item = {"type": "doc", "name": f"{word}-notes.txt", "ext": "txt", "base64": base64.b64encode(inline).decode()}
    message = {"sender_id": person.user_id, "role": "user", "timestamp": NOON_MS + 9000, "content": [item]}
    call(person, "post", "/memories/add", session_id="chat:c3", messages=[message])
    call(person, "post", "/memories/flush", session_id="chat:c3")
    pause_for_a_message(person, f"Between you and me: {word} fudge.")
    return SampleData(person, resource["resource_id"], inline)


def pause_for_a_message(person: Person, text: str) -> None:
    """Pause conversations, offer a message, which is refused, and resume them."""
    actor = Actor.command("tests")
    controls.set_paused(person.user_pk, ["chats"], actor=actor)
    assert admit(person.user_pk, [Offer("chats", text, "user")]).refused
    controls.set_paused(person.user_pk, [], is_loosening_allowed=True, actor=actor)


def add_sent_message(person: Person, text: str) -> None:
    """Note that a stored message was sent to a remote."""
    row = Memory.objects.get(memory_id=id_of(text))
    assert row.session_id is not None
    message = {"sender_id": person.user_id, "role": "user", "timestamp_ms": NOON_MS, "content": [{"text": text}]}
    OutboxEntry.objects.create(
        user_id=person.user_pk, app_id=row.app_id, project_id=row.project_id, session_id=row.session_id,
        base_url="http://everos.invalid", message_id="msg_1", memory_ids=[row.memory_id], message=message,
        time_ms=NOON_MS, state=OutboxEntry.State.BUFFERED,
    )  # fmt: skip
    Resend.objects.create(
        user_id=person.user_pk, session_id=row.session_id, base_url="http://everos.invalid", former_ids=["chat:former"]
    )


def search_texts(person: Person, query: str) -> list[str]:
    """Return the texts of the hits, best first, without profiles."""
    scope = ["all_user_memory", "resources"]
    body = {"query": query, "scope": scope, "top_k": 50, "include_profile": False}
    return [result["text"] for result in call(person, "post", "/memories/search", **body)["results"]]
