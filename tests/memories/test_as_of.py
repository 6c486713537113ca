"""`as_of` of searches, lists and single memories: what was current then, and nothing that was taken away since."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.utils import timezone

from accounts import controls
from accounts.audit import Actor
from core.network.model_endpoint import ModelAddress
from core.times import isoformat
from memories.services import expiry
from profiles.services import patch
from store.derived_memories import supersede
from store.models import Memory
from store.vectors import fill
from tests.agents.mcp.test_tools import Agent
from tests.conftest import Person
from tests.memories.calls import call, say, search, texts
from tests.stub_embeddings import running_embeddings
from tests.stub_upstream import StubUpstream

pytestmark = pytest.mark.django_db
BERLIN, LISBON = "I live in Berlin near the river", "I moved: I live in Lisbon near the harbour"
SECRET = "the river safe opens with the code 4711"


class Clock:
    """A clock that moves on with each time that is read from it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._moved, present = timedelta(), timezone.now
        monkeypatch.setattr(timezone, "now", lambda: present() + self._moved)

    def forward(self, **delta: float) -> None:
        self._moved += timedelta(**delta)

    def mark(self) -> str:
        """Return a time after everything so far and before everything to come."""
        self.forward(seconds=10)
        at = timezone.now()
        self.forward(seconds=10)
        return at.isoformat()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


def store(person: Person, text: str, status: int = 201, **fields: Any) -> str:
    return str(call(person, "post", "/memories", status=status, text=text, **fields)["memory"]["id"])


def found(person: Person, at: str | None, query: str = "river Lisbon Berlin safe", **fields: Any) -> set[str]:
    given = {"as_of": at} if at else {}
    return set(texts(search(person, query, scope=["all_user_memory"], **given, **fields)))


def listed(person: Person, at: str) -> set[str]:
    return {one["text"] for one in call(person, "get", "/memories", as_of=at)["memories"]}


def then(person: Person, memory_id: str, at: str, status: int = 200) -> str:
    answer = call(person, "get", f"/memories/{memory_id}", status=status, as_of=at)
    return str(answer["memory"]["text"]) if status == 200 else ""


def replace(older: str, newer: str) -> None:
    """Do what a comparison by a language model does."""
    rows = {row.memory_id: row for row in Memory.objects.filter(memory_id__in=[older, newer])}
    rows[newer].supersedes = [older]
    rows[newer].save(update_fields=["supersedes"])
    supersede([rows[older]], rows[newer], timezone.now())


def everything(person: Person, memory_id: str, at: str) -> str:
    """Return what all interfaces answer as of a time."""
    agent, said = Agent(person), []
    for tool, arguments in {
        "memory_recall": {"query": "river safe code"},
        "memory_search": {"query": "river safe code"},
        "memory_list": {},
        "memory_get": {"memory_id": memory_id},
    }.items():
        said += [str(agent.call(tool, as_of=at, **arguments)), agent.text]
    for body in ({}, {"context": 3}, {"fold": False, "min_relevance": 0}, {"include_profile": True, "explain": True}):
        said.append(str(search(person, "river safe code", scope=["all_user_memory"], as_of=at, **body)["results"]))
    said.append(str(call(person, "get", "/memories", as_of=at)))
    said.append(person.client.get(f"/memories/{memory_id}", {"as_of": at}).content.decode())
    for tool in ("memory_recall", "memory_store"):
        args = {"query": "river safe code", "text": "x y z", "as_of": at}
        said.append(str(call(person, "post", "/tools/invoke", tool=tool, args=args)))
    return "\n".join(said)


def test_a_superseded_memory_is_current_as_of_a_time_before(alice: Person, clock: Clock) -> None:
    never, older = clock.mark(), store(alice, BERLIN)
    before, newer = clock.mark(), store(alice, LISBON)
    replace(older, newer)
    after = clock.mark()
    assert [found(alice, at) for at in (never, before, after, None)] == [set(), {BERLIN}, {LISBON}, {LISBON}]
    assert [listed(alice, at) for at in (never, before, after)] == [set(), {BERLIN}, {LISBON}]
    assert then(alice, older, before) == BERLIN
    assert [then(alice, older, at, 404) for at in (never, after)] == ["", ""]
    shown = call(alice, "get", f"/memories/{older}", as_of=before)
    assert (shown["memory"]["state"], shown["memory"]["deleted_at"], shown["history"]) == ("live", None, [])


def test_the_newer_of_two_statements_replaces_none_before_it_was_stored(alice: Person, clock: Clock) -> None:
    store(alice, "I live in Berlin.")
    before = clock.mark()
    store(alice, "I live in Lisbon now.")
    query = "Where do I live?"
    [one] = search(alice, query, scope=["all_user_memory"], as_of=before)["results"]
    assert (one["text"], one["superseded_by"]) == ("I live in Berlin.", None)
    # A time asks for the history, even of what is replaced for certain.
    both = search(alice, query, scope=["all_user_memory"], as_of=clock.mark(), history=False)["results"]
    assert [one["text"] for one in both] == ["I live in Lisbon now.", "I live in Berlin."]
    assert len(search(alice, query, scope=["all_user_memory"], history=False)["results"]) == 1


def test_the_time_of_storing_counts_not_the_time_that_a_memory_is_about(alice: Person, clock: Clock) -> None:
    before = clock.mark()
    store(alice, BERLIN, created_at="2020-01-01T00:00:00Z")
    assert found(alice, before) == listed(alice, before) == set()
    assert found(alice, clock.mark()) == {BERLIN}


def test_a_memory_older_than_the_column_counts_by_its_own_time(alice: Person, clock: Clock) -> None:
    store(alice, BERLIN, created_at="2020-01-01T00:00:00Z")
    Memory.objects.update(stored_at_ms=None)
    assert found(alice, "2020-06-01") == listed(alice, "2020-06-01") == {BERLIN}
    assert found(alice, "2019-06-01") == set()


def test_the_former_text_of_an_update_returns_and_that_of_a_correction_does_not(alice: Person, clock: Clock) -> None:
    memory_id = store(alice, f"{BERLIN} one", external_id="a")
    first = clock.mark()
    assert store(alice, f"{BERLIN} two", 200, external_id="a") == memory_id
    second = clock.mark()
    assert store(alice, f"{LISBON} three", 200, external_id="a", category="user_memory_preference") == memory_id
    third = clock.mark()
    times, wanted = (first, second, third), (f"{BERLIN} one", f"{BERLIN} two", f"{LISBON} three")
    assert [then(alice, memory_id, at) for at in times] == list(wanted)
    assert [found(alice, at, "Lisbon") for at in times] == [{one} for one in wanted]  # by today's words
    assert [listed(alice, at) for at in times] == [{one} for one in wanted]
    history = call(alice, "get", f"/memories/{memory_id}")["history"]
    assert [one["text"] for one in history] == list(wanted)
    raw = search(alice, "Lisbon", scope=["all_user_memory"], as_of=first)["results"][0]
    assert "Lisbon" not in str(raw)
    assert raw["category"] == "user_memory_fact"

    call(alice, "patch", f"/memories/{memory_id}", override_text="I live in Rome")
    fourth = clock.mark()
    assert store(alice, "I live in Oslo", 200, external_id="a") == memory_id
    assert [then(alice, memory_id, at) for at in (*times, fourth)] == ["I live in Rome"] * 4
    assert then(alice, memory_id, clock.mark()) == "I live in Oslo"
    call(alice, "delete", f"/memories/{memory_id}/override")
    assert {then(alice, memory_id, at) for at in (*times, fourth, clock.mark())} == {wanted[0]}


def delete(person: Person, memory_id: str, _clock: Clock) -> None:
    call(person, "delete", f"/memories/{memory_id}")


def delete_session(person: Person, memory_id: str, _clock: Clock) -> None:
    session_id = call(person, "get", f"/memories/{memory_id}")["memory"]["session_id"]
    call(person, "delete", f"/sessions/{session_id}")


def correct(person: Person, memory_id: str, _clock: Clock) -> None:
    call(person, "patch", f"/memories/{memory_id}", override_text="there is a river and something safe")


def correct_and_undo_later(person: Person, memory_id: str, clock: Clock) -> None:
    call(person, "patch", f"/memories/{memory_id}", override_text="there is a river and something safe")
    clock.forward(seconds=10)
    call(person, "patch", f"/memories/{memory_id}", override_text="there is a river and a bank")


def correct_by_tool(person: Person, memory_id: str, _clock: Clock) -> None:
    Agent(person).use("memory_update", memory_id=memory_id, text="there is a river and something safe")


def expire(person: Person, memory_id: str, clock: Clock) -> None:
    at = (timezone.now() + timedelta(seconds=60)).isoformat()
    call(person, "patch", f"/memories/{memory_id}", expires_at=at)
    clock.forward(seconds=120)
    expiry.end_due(user_pk=person.user_pk)


@pytest.mark.parametrize(
    "take_away", [delete, delete_session, correct, correct_and_undo_later, correct_by_tool, expire]
)
@pytest.mark.parametrize("is_updated", [False, True])
def test_no_interface_brings_back_what_was_taken_away(
    alice: Person, clock: Clock, take_away: Callable[[Person, str, Clock], None], is_updated: bool
) -> None:
    memory_id = store(alice, SECRET, external_id="s")
    before = clock.mark()
    if is_updated:
        store(alice, f"{SECRET} and 4711 again", 200, external_id="s")
    between = clock.mark()
    assert "4711" in everything(alice, memory_id, between)
    take_away(alice, memory_id, clock)
    for at in (before, between, clock.mark()):
        assert "4711" not in everything(alice, memory_id, at)


@pytest.mark.parametrize("take_away", [delete, correct, expire])
def test_a_former_text_that_another_memory_lost_does_not_come_back(
    alice: Person, clock: Clock, take_away: Callable[[Person, str, Clock], None]
) -> None:
    memory_id = store(alice, SECRET, external_id="s")
    copy_id = store(alice, SECRET, external_id="t", agent_id="other")
    before = clock.mark()
    store(alice, "the river is long", 200, external_id="s")
    assert then(alice, memory_id, before) == SECRET
    take_away(alice, copy_id, clock)
    assert then(alice, memory_id, before) == "the river is long"
    assert "4711" not in everything(alice, memory_id, before)


def test_a_former_text_does_not_come_back_that_is_of_a_deleted_session_or_never_remembered(
    alice: Person, clock: Clock
) -> None:
    memory_id, other_id = store(alice, SECRET, external_id="s"), store(alice, "My insulin is blue", external_id="t")
    store(alice, SECRET, session_id="chat:c1", agent_id="other")
    before = clock.mark()
    store(alice, "the river is long", 200, external_id="s")
    store(alice, "My pen is blue", 200, external_id="t")
    assert (then(alice, memory_id, before), then(alice, other_id, before)) == (SECRET, "My insulin is blue")
    call(alice, "delete", "/sessions/chat:c1")
    controls.set_never(alice.user_pk, words=["insulin"], actor=Actor.command("tests"))
    assert "4711" not in everything(alice, memory_id, before)
    assert "insulin" not in everything(alice, other_id, before)


def test_a_superseded_copy_is_deleted_with_a_memory_and_restored_with_it(alice: Person, clock: Clock) -> None:
    first, second = store(alice, SECRET, external_id="s"), store(alice, SECRET, external_id="t")
    before = clock.mark()
    replace(first, second)
    assert call(alice, "delete", f"/memories/{second}?copies=true")["copies"] == [first]
    assert "4711" not in everything(alice, first, before)
    call(alice, "post", f"/memories/{second}/restore")
    assert listed(alice, before) == {SECRET}
    assert Memory.objects.get(memory_id=first).state == "superseded"


def test_what_was_restored_was_not_there_in_between(alice: Person, clock: Clock) -> None:
    memory_id = store(alice, BERLIN)
    before = clock.mark()
    call(alice, "delete", f"/memories/{memory_id}")
    between = clock.mark()
    call(alice, "post", f"/memories/{memory_id}/restore")
    times = (before, between, clock.mark())
    assert [listed(alice, at) for at in times] == [found(alice, at) for at in times] == [{BERLIN}, set(), {BERLIN}]


def test_neighbors_are_those_of_the_time_in_their_words(alice: Person, clock: Clock) -> None:
    say(alice, "chat:c1", "the river is long", "the second", "the third")
    before = clock.mark()
    say(alice, "chat:c1", "the river is long", "the second", "the third", "the fourth")
    call(alice, "patch", f"/memories/{Memory.objects.get(text='the third').memory_id}", override_text="corrected")
    call(alice, "delete", f"/memories/{Memory.objects.get(text='the second').memory_id}")
    [one] = search(alice, "river", scope=["all_user_memory"], as_of=before, context=3)["results"]
    assert [near["text"] for near in one["context"]["after"]] == ["corrected"]
    [one] = search(alice, "river", scope=["all_user_memory"], as_of=clock.mark(), context=3)["results"]
    assert [near["text"] for near in one["context"]["after"]] == ["corrected", "the fourth"]


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("method", ["vector", "hybrid"])
def test_a_search_by_meaning_is_of_the_time_too(alice: Person, clock: Clock, settings: Any, method: str) -> None:
    with running_embeddings() as endpoint:
        settings.MEMORY_GATEWAY_MODELS = {"embedding": ModelAddress(endpoint.url, "stub")}
        older = store(alice, "The shoemaker is kind")
        gone = store(alice, "Another shoemaker is rude")
        before = clock.mark()
        newer = store(alice, "My shoemaker has retired")
        fill.fill(10.0)
        assert found(alice, before, "cobbler", method=method) == {"The shoemaker is kind", "Another shoemaker is rude"}
        replace(older, newer)
        call(alice, "delete", f"/memories/{gone}")
        assert found(alice, before, "cobbler", method=method) == {"The shoemaker is kind"}
        assert found(alice, None, "cobbler", method=method) == {"My shoemaker has retired"}


def test_other_users_and_scopes_are_apart(alice: Person, bob: Person, clock: Clock) -> None:
    memory_id = store(alice, BERLIN, app_id="one")
    at = clock.mark()
    assert found(alice, at) == listed(alice, at) == found(bob, at) == listed(bob, at) == set()
    assert found(alice, at, app_id="one") == {BERLIN}
    call(bob, "get", f"/memories/{memory_id}", status=404, as_of=at)


def test_an_attached_remote_is_not_asked_for_a_former_time(alice: Person, clock: Clock, settings: Any) -> None:
    store(alice, BERLIN)
    at = clock.mark()
    with StubUpstream() as stub:
        settings.MEMORY_GATEWAY_BACKEND_BASE_URL = stub.url
        assert found(alice, at) == listed(alice, at) == {BERLIN}
        assert not [one for one in stub.requests if one.path.endswith("/search")]


@pytest.mark.parametrize(
    ("given", "remedy"),
    [
        ("2999-01-01", "leave it out"),
        ("9999-12-31T23:59:59Z", "leave it out"),
        ("tomorrow", "leave it out"),
        ("soon", "must be a date"),
        ("2026-13-01", "must be a date"),
        ("", ""),
        ("x" * 65, ""),
    ],
)
def test_a_wrong_time_is_refused_with_the_remedy(alice: Person, given: str, remedy: str) -> None:
    memory_id = store(alice, BERLIN)
    answers = [
        search(alice, status=422, as_of=given),
        call(alice, "get", "/memories", status=422, as_of=given),
        call(alice, "get", f"/memories/{memory_id}", status=422, as_of=given),
    ]
    for answer in answers:
        [problem] = answer["errors"]
        assert problem["field"] == "as_of"
        assert remedy in problem["message"]
    if given:
        assert Agent(alice).refused("memory_recall", query="river", as_of=given) == "invalid_input"


@pytest.mark.parametrize("given", ["0001-01-01T00:00:00+14:00", "1850-01-01", "last year", "yesterday"])
def test_times_before_everything_find_nothing(alice: Person, given: str) -> None:
    store(alice, BERLIN)
    assert found(alice, given) == listed(alice, given) == set()


def test_a_day_means_its_end_where_the_user_is(alice: Person) -> None:
    memory_id = store(alice, BERLIN)
    at = int(datetime.fromisoformat("2026-06-01T20:00:00Z").timestamp() * 1000)
    Memory.objects.filter(memory_id=memory_id).update(stored_at_ms=at)
    assert [found(alice, day) for day in ("2026-05-31", "2026-06-01", "2026-06-01T19:59:59Z", "today")] == [
        set(), {BERLIN}, set(), {BERLIN},
    ]  # fmt: skip
    assert found(alice, "2026-06-01", timezone="Asia/Shanghai") == set()  # it was the second there
    assert found(alice, "2026-06-02", timezone="Asia/Shanghai") == {BERLIN}


def test_the_answer_says_that_todays_texts_were_searched(alice: Person, clock: Clock) -> None:
    store(alice, BERLIN)
    at = clock.mark()
    meta = search(alice, "river", scope=["all_user_memory"], as_of=at)["meta"]
    assert meta["as_of"] == isoformat(datetime.fromisoformat(at))
    assert "today's texts" in meta["hint"]
    assert "as_of" not in search(alice, "river", scope=["all_user_memory"])["meta"]


def test_no_profile_of_today_is_in_an_answer_of_a_former_time(alice: Person, clock: Clock) -> None:
    patch(alice.user_pk, "user", {"occupation": "Carpenter at the river"}, actor=Actor.command("tests"))
    store(alice, BERLIN)
    at = clock.mark()
    query = "What is my occupation at the river?"
    assert "Carpenter" in str(search(alice, query, scope=["all_user_memory"])["results"])
    assert found(alice, at, query) == {BERLIN}
    assert "Carpenter" not in str(Agent(alice).call("memory_recall", query="What do you know about me?", as_of=at))
    Memory.objects.filter(text=BERLIN).update(memory_type="profile")
    assert found(alice, at) == listed(alice, at) == set()
