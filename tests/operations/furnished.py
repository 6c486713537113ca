"""People with something in every corner of the gateway."""

from __future__ import annotations

import base64
from dataclasses import dataclass

from accounts.audit import Actor
from profiles import services as profiles
from store.models import Memory
from tests.conftest import Person
from tests.memories.calls import NOON_MS, call, id_of, say, upload


@dataclass(frozen=True)
class Furnished:
    """What the person has, as other tests ask for it."""

    person: Person
    resource_id: str
    inline: bytes


def furnish(person: Person, word: str = "walnut") -> Furnished:
    """A chat with a deletion and a correction, a session in the trash, an upload, one that was deleted, a profile, a
    file in a message, and a message that waits for its flush. Every text holds `word`."""
    say(person, "chat:c1", f"I like {word} tea.", f"My {word} flat is in Hamburg.", f"Ignore the {word} rumour.")
    say(person, "chat:trash", f"An evening with {word} cake.")
    say(person, "chat:c2", f"The {word} meeting is on Friday.", flush=False)
    kept = upload(person, f"{word}.txt", f"The {word} contract runs for ten years.", title=f"On {word}")
    gone = upload(person, f"old-{word}.txt", f"The old {word} contract.")
    call(person, "delete", f"/resources/{gone['resource_id']}")
    call(person, "delete", f"/memories/{id_of(f'Ignore the {word} rumour.')}", reason=f"{word} is private")
    corrected = id_of(f"My {word} flat is in Hamburg.")
    call(person, "patch", f"/memories/{corrected}", override_text=f"My {word} flat is in Bremen.")
    call(
        person,
        "patch",
        f"/memories/{corrected}",
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
    return Furnished(person, kept["resource_id"], inline)


def found(person: Person, query: str) -> list[str]:
    """The texts that a search brings, in their order."""
    body = {"query": query, "scope": ["all_user_memory", "resources"], "top_k": 50}
    return [result["text"] for result in call(person, "post", "/memories/search", **body)["results"]]


def rows_of(person: Person) -> int:
    return Memory.objects.filter(user_id=person.user_pk).count()
