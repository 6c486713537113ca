"""Memories that EverOS derives pass the person's controls before they are kept or shown."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from accounts import controls
from accounts.audit import Actor
from accounts.models import Pause
from core.times import isoformat, to_ms
from engines.attached import AttachedEngine
from remote import mirror, remote_sessions
from remote.client.client import Client
from store.admission import Derived, refused_derived
from store.models import Memory, Session, State
from tests.conftest import Person
from tests.remote.conftest import add_and_send, message_of
from tests.remote.test_search import search_hits
from tests.stub_upstream import StubUpstream

pytestmark = pytest.mark.django_db(transaction=True)
ACTOR = Actor.command("tests")


def derive(stub: StubUpstream, person: Person, session_id: str, *texts: str, at: str = "2026-06-10T08:42:18Z") -> None:
    """Let EverOS have episodes of a session."""
    stub.store.episodes += [
        {
            "id": f"{person.user_id}_ep_{session_id}_{number}",
            "user_id": person.user_id,
            "app_id": "default",
            "project_id": "default",
            "session_id": session_id,
            "timestamp": at,
            "sender_ids": [person.user_id],
            "episode": text,
            "type": "Conversation",
        }
        for number, text in enumerate(texts)
    ]


def pull(client: Client, person: Person, session_id: str = "chat:1") -> Session:
    session = remote_sessions.find(person.owner, session_id)
    assert session is not None
    mirror.pull(client, person.owner, session, client.deadline())
    return session


def shown(engine: AttachedEngine, person: Person) -> set[str]:
    return {hit.text for hit in search_hits(engine, person)}


def test_what_is_never_remembered_is_neither_kept_nor_shown(
    engine: AttachedEngine, client: Client, stub: StubUpstream, alice: Person
) -> None:
    add_and_send(engine, alice.owner, "chat:1", [message_of(alice.owner, "I drink tea.")])
    controls.set_never(alice.user_pk, words=["zanzibar"], topics=["health"], actor=ACTOR)
    derive(stub, alice, "chat:1", "Alice plans tea in Zanzibar.", "Alice is allergic to tea.", "Alice drinks tea.")
    assert not {one for one in shown(engine, alice) if "Zanzibar" in one or "allergic" in one}  # before it is copied
    session = pull(client, alice)
    rows = {row.text: row.state for row in mirror.episodes(session)}
    assert rows == {"Alice drinks tea.": State.LIVE, "": State.PURGED}
    assert mirror.episodes(session).count() == 3  # so the copy of the session is complete
    assert mirror.pull(client, alice.owner, session, client.deadline()) == 0
    assert not {one for one in shown(engine, alice) if "Zanzibar" in one or "allergic" in one}
    assert "Alice drinks tea." in shown(engine, alice)


def test_what_is_of_a_pause_is_not_kept(
    engine: AttachedEngine, client: Client, stub: StubUpstream, alice: Person
) -> None:
    add_and_send(engine, alice.owner, "chat:1", [message_of(alice.owner, "I drink tea.")])
    controls.set_paused(alice.user_pk, ["chats"], actor=ACTOR)
    began = timezone.now() - timedelta(hours=1)
    Pause.objects.update(began_at=began)
    derive(stub, alice, "chat:1", "Alice drinks tea before.", at=isoformat(began - timedelta(minutes=5)))
    pull(client, alice)
    derive(stub, alice, "chat:1", "Alice drinks tea meanwhile.", at=isoformat(began + timedelta(minutes=5)))
    stub.store.episodes[-1]["id"] += "_of_pause"
    assert "Alice drinks tea meanwhile." not in shown(engine, alice)
    session = pull(client, alice)
    assert set(mirror.episodes(session).values_list("text", flat=True)) == {"Alice drinks tea before.", ""}
    of_file = Derived("Alice drinks tea.", to_ms(began) + 1000, f"resource:{alice.user_id}:res_1")
    assert refused_derived(alice.user_pk, [of_file, of_file._replace(session_id="chat:1")]) == {1}


def test_nothing_is_kept_of_an_incognito_session(client: Client, stub: StubUpstream, alice: Person) -> None:
    until = timezone.now() + timedelta(hours=1)
    Session.objects.create(
        user_id=alice.user_pk, session_id="chat:1", engine_session_id="chat:1", kind="chat", incognito_until=until
    )
    derive(stub, alice, "chat:1", "Alice drinks tea.")
    pull(client, alice)
    assert not Memory.objects.exists()
