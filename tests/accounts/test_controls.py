"""Control over remembering: who can tighten and loosen it, and what is kept of a pause."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from accounts import controls
from accounts.audit import Actor
from accounts.models import AuditEvent, Controls, MemoryUser, Pause, RefusedMessage
from core.errors import InvalidInput
from core.times import to_ms
from operations import tables
from store.admission import Offer, admit
from tests.conftest import Person

pytestmark = pytest.mark.django_db

APPLICATION, PERSON = Actor.command("application"), Actor.system("person")


def pause(person: Person, *sources: str) -> None:
    controls.set_paused(person.user_pk, sources or controls.SOURCES, actor=APPLICATION)


def resume(person: Person) -> None:
    controls.set_paused(person.user_pk, (), is_loosening_allowed=True, actor=PERSON)


def said(text: str, role: str = "user", at_ms: int | None = None) -> Offer:
    return Offer("chats", text, role, at_ms)


def refused(person: Person, *offers: Offer) -> list[int]:
    return sorted(admit(person.user_pk, offers).refused)


def test_a_pause_names_who_began_it_and_is_in_the_trail(alice: Person) -> None:
    pause(alice, "chats")
    (found,) = controls.pauses_of(alice.user_pk).values()
    assert (found.source, found.actor_kind, found.actor) == ("chats", "command", "application")
    pause(alice, "chats", "files")
    assert controls.pauses_of(alice.user_pk)["chats"].began_at == found.began_at
    resume(alice)
    events = AuditEvent.objects.filter(action__startswith="controls.").order_by("pk")
    assert [(event.action, event.detail["sources"]) for event in events] == [
        ("controls.pause", ["chats"]),
        ("controls.pause", ["files"]),
        ("controls.resume", ["chats", "files"]),
    ]


def test_only_the_person_resumes(alice: Person) -> None:
    pause(alice)
    for sources in ((), ("chats",), ("chats", "files")):
        with pytest.raises(controls.LooseningRefused):
            controls.set_paused(alice.user_pk, sources, actor=APPLICATION)
    assert list(controls.pauses_of(alice.user_pk)) == list(controls.SOURCES)
    with pytest.raises(InvalidInput):
        controls.set_paused(alice.user_pk, ("thoughts",), is_loosening_allowed=True, actor=PERSON)


def test_everything_of_a_paused_source_is_refused(alice: Person, bob: Person) -> None:
    assert refused(alice, said("I like tea.")) == []
    pause(alice, "chats")
    answer = admit(alice.user_pk, [said("I like tea."), Offer("agents", "Likes tea."), said("So do I.", "assistant")])
    assert (sorted(answer.refused), answer.counts, answer.is_paused) == ([0, 2], {"paused": 2}, True)
    assert refused(bob, said("I like tea.")) == []


def test_a_resent_transcript_brings_nothing_of_the_pause_back(alice: Person) -> None:
    pause(alice, "chats")
    began = to_ms(timezone.now())
    assert refused(alice, said("My sister is called\n Ann."), said("I see.", "assistant")) == [0, 1]
    resume(alice)
    later = to_ms(timezone.now()) + 60_000
    for at_ms in (began, later, None):
        again = (said("My sister is called Ann.", at_ms=at_ms), said("I see.", "assistant", at_ms))
        assert refused(alice, *again) == [0, 1]
    new = [said("Something new.", at_ms=later), said("I see.", at_ms=later), said("Before it.", at_ms=began - 60_000)]
    assert refused(alice, *new) == []
    assert refused(alice, said("Never sent during the pause.", at_ms=began)) == [0]
    assert not admit(alice.user_pk, new).is_paused


def test_digests_are_salted_hold_no_text_and_are_kept_for_30_days(alice: Person, bob: Person) -> None:
    for person in (alice, bob):
        pause(person, "chats")
        refused(person, said("Walnut."))
    digests = set(RefusedMessage.objects.values_list("digest", flat=True))
    assert len(digests) == 2
    assert all(len(digest) == 64 for digest in digests)
    resume(alice)
    RefusedMessage.objects.update(refused_at=timezone.now() - timedelta(days=30))
    assert refused(alice, said("Walnut.")) == []
    assert controls.forget_old(timezone.now()) == 2


def test_users_without_controls_cost_one_statement(
    alice: Person, django_assert_num_queries: pytest.FixtureRequest
) -> None:
    with django_assert_num_queries(1):  # type: ignore[operator]
        admit(alice.user_pk, [said("I like tea.")])


def test_controls_are_removed_with_their_user(alice: Person) -> None:
    pause(alice)
    refused(alice, said("Walnut."))
    tables.remove_rows(MemoryUser.objects.get(pk=alice.user_pk))
    assert not any(model.objects.exists() for model in (Controls, Pause, RefusedMessage))


@pytest.mark.parametrize("is_paused_here", [True, False])
def test_of_two_states_the_stricter_one_stays(alice: Person, *, is_paused_here: bool) -> None:
    user = MemoryUser.objects.get(pk=alice.user_pk)
    pause(alice, "chats")
    refused(alice, said("Walnut."))
    open_state = controls.FormerControls.of(user)
    resume(alice)
    ended_state = controls.FormerControls.of(user)
    for model in (Controls, Pause, RefusedMessage):
        model.objects.all().delete()
    here, archived = (open_state, ended_state) if is_paused_here else (ended_state, open_state)
    archived.add_to(user)
    here.add_to(user)
    assert controls.is_paused(user.pk, "chats")
    assert Pause.objects.count() == 1
    resume(alice)
    assert refused(alice, said("Walnut.")) == [0]
