"""Reading, writing, merging, restoring and disabling documents; versions, provenance and audit."""

from __future__ import annotations

import uuid
from typing import Any

import pytest
from pytest_django import DjangoAssertNumQueries

from accounts.audit import Actor
from accounts.models import AuditEvent, MemoryUser
from core.errors import Conflict, InvalidInput, NotFound, PreconditionFailed, TooLarge
from profiles import services
from profiles.models import ProfileMemory, ProfileRevision
from profiles.schemas import MODELS, Kind
from tests.conftest import Person
from tests.profiles.documents import FULL

APP = Actor("key", "k1")
OPERATOR = Actor.operator("olga")
COMMAND = Actor.command("import_archive")

pytestmark = pytest.mark.django_db


def content_of(person: Person, kind: Kind = "user") -> dict[str, Any]:
    return services.read(person.user_pk, kind).content.model_dump(exclude_defaults=True)


def only_meta(person: Person) -> dict[str, Any]:
    [entry] = services.read(person.user_pk, "user").content.model_dump()["people"]
    meta: dict[str, Any] = entry["meta"]
    return meta


@pytest.mark.parametrize("kind", ["user", "work"])
def test_every_user_has_the_default_documents(alice: Person, kind: Kind) -> None:
    document = services.read(alice.user_pk, kind)
    assert (document.content, document.version) == (MODELS[kind](), 0)
    assert not ProfileMemory.objects.exists()


def test_reads_take_one_statement(alice: Person, django_assert_num_queries: DjangoAssertNumQueries) -> None:
    services.write(alice.user_pk, "user", FULL["user"], actor=APP)
    with django_assert_num_queries(1):
        services.read(alice.user_pk, "user")
    with django_assert_num_queries(1):
        assert services.read_both(alice.user_pk)["user"].version == 1
    with django_assert_num_queries(1):
        services.make_prompt(alice.user_pk, "router")
    with django_assert_num_queries(1):
        services.history(alice.user_pk, "user")


@pytest.mark.parametrize("kind", ["user", "work"])
def test_a_complete_document_is_read_as_written(alice: Person, bob: Person, kind: Kind) -> None:
    services.write(alice.user_pk, kind, FULL[kind], actor=APP)
    assert services.read(alice.user_pk, kind).content.model_dump() == FULL[kind]
    assert services.read(bob.user_pk, kind).version == 0


def test_only_changes_create_versions(alice: Person) -> None:
    first = services.write(alice.user_pk, "user", {"occupation": "architect"}, actor=APP)
    second = services.patch(alice.user_pk, "user", {"timezone": "UTC"}, actor=APP)
    assert (first.etag, second.etag) == ('"user-1"', '"user-2"')
    again = services.patch(alice.user_pk, "user", {"timezone": "UTC"}, actor=APP)
    assert again == second
    assert ProfileRevision.objects.count() == 2


def test_only_a_stale_etag_is_refused(alice: Person) -> None:
    original = services.read(alice.user_pk, "user").etag
    services.patch(alice.user_pk, "user", {"timezone": "UTC"}, actor=APP, if_match={original})
    for change in (
        lambda etags: services.patch(alice.user_pk, "user", {"timezone": "x"}, actor=APP, if_match=etags),
        lambda etags: services.write(alice.user_pk, "user", {}, actor=APP, if_match=etags),
        lambda etags: services.restore(alice.user_pk, "user", 1, actor=APP, if_match=etags),
    ):
        for etags in ({original}, set()):
            with pytest.raises(PreconditionFailed):
                change(etags)
    services.patch(alice.user_pk, "user", {"timezone": "x"}, actor=APP, if_match={"*"})
    services.patch(alice.user_pk, "user", {"timezone": "y"}, actor=APP, if_match={original, '"user-2"'})
    assert content_of(alice) == {"timezone": "y"}


@pytest.mark.parametrize(
    ("actor", "agent_id", "source", "confidence"),
    [
        (APP, "", "user_stated", 1.0),
        (APP, "main", "agent_inferred", 0.7),
        (OPERATOR, "", "operator", 1.0),
        (COMMAND, "", "import", 1.0),
    ],
)
def test_a_new_entry_has_the_provenance_of_its_writer(
    alice: Person, actor: Actor, agent_id: str, source: str, confidence: float
) -> None:
    person = {"name": "Ana"}
    document = services.write(alice.user_pk, "user", {"people": [person]}, actor=actor, agent_id=agent_id)
    assert document.updated_at is not None
    meta = only_meta(alice)
    assert (meta["source"], meta["confidence"]) == (source, confidence)
    assert meta["last_updated_at"][:16] == document.updated_at.isoformat()[:16]


def test_an_unchanged_entry_keeps_its_provenance(alice: Person) -> None:
    services.write(alice.user_pk, "user", {"people": [{"name": "Ana", "role": "engineer"}]}, actor=OPERATOR)
    original = only_meta(alice)
    services.write(alice.user_pk, "user", {"people": [{"name": "Ana", "role": "engineer"}]}, actor=APP)
    services.patch(alice.user_pk, "user", {"people": [{"name": "Ana"}]}, merge_lists=True, actor=APP)
    assert only_meta(alice) == original
    services.patch(alice.user_pk, "user", {"people": [{"name": "Ana", "role": "chief"}]}, merge_lists=True, actor=APP)
    assert only_meta(alice)["source"] == "user_stated"


def test_given_provenance_is_kept(alice: Person) -> None:
    meta = {"source": "import", "confidence": 0.25, "last_updated_at": "2020-01-01T00:00:00Z"}
    services.write(alice.user_pk, "user", {"people": [{"name": "Ana", "meta": meta}]}, actor=APP)
    assert only_meta(alice) == meta
    services.write(alice.user_pk, "user", {"people": [{"name": "Ana", "meta": {}}]}, actor=APP)
    assert set(only_meta(alice).values()) == {None}


def test_the_history_lists_changes_and_versions_can_be_restored(alice: Person, bob: Person) -> None:
    services.write(alice.user_pk, "user", {"people": [{"name": "Ana"}]}, actor=APP)
    original = services.read(alice.user_pk, "user").content
    services.patch(alice.user_pk, "user", {"people": []}, actor=OPERATOR)
    services.restore(alice.user_pk, "user", 1, actor=OPERATOR)
    assert services.read(alice.user_pk, "user").content == original
    changes = services.history(alice.user_pk, "user")
    assert [(change.version, change.action, change.actor) for change in changes] == [
        (3, "restore", "olga"),
        (2, "patch", "olga"),
        (1, "write", "k1"),
    ]
    assert [change.version for change in services.history(alice.user_pk, "user", before=3, limit=1)] == [2]
    assert services.revision(alice.user_pk, "user", 2).content.model_dump()["people"] == []
    assert services.history(bob.user_pk, "user") == services.history(alice.user_pk, "work") == []
    for user_pk, kind, version in ((bob.user_pk, "user", 1), (alice.user_pk, "work", 1), (alice.user_pk, "user", 9)):
        with pytest.raises(NotFound):
            services.restore(user_pk, kind, version, actor=APP)


def test_only_the_newest_versions_are_kept(alice: Person) -> None:
    for number in range(services.KEPT_REVISIONS + 2):
        services.patch(alice.user_pk, "user", {"timezone": str(number)}, actor=APP)
    versions = list(ProfileRevision.objects.order_by("version").values_list("version", flat=True))
    assert versions == list(range(3, services.KEPT_REVISIONS + 3))


def test_a_disabled_document_is_not_readable_and_cannot_be_written(alice: Person) -> None:
    services.write(alice.user_pk, "user", FULL["user"], actor=APP)
    disabled = services.set_disabled(alice.user_pk, "user", True, actor=OPERATOR)
    assert (disabled.readable, disabled.version) == (None, 2)
    assert services.set_disabled(alice.user_pk, "user", True, actor=OPERATOR).version == 2
    assert services.make_prompt(alice.user_pk, "router").text == ""
    assert services.revision(alice.user_pk, "user", 1).readable is None
    for change in (
        lambda: services.write(alice.user_pk, "user", {}, actor=APP),
        lambda: services.patch(alice.user_pk, "user", {}, actor=APP),
        lambda: services.restore(alice.user_pk, "user", 1, actor=APP),
    ):
        with pytest.raises(Conflict):
            change()
    enabled = services.set_disabled(alice.user_pk, "user", False, actor=OPERATOR)
    assert enabled.readable is not None
    assert enabled.readable.model_dump() == FULL["user"]


def test_a_default_document_can_be_disabled(alice: Person) -> None:
    services.set_disabled(alice.user_pk, "work", True, actor=OPERATOR)
    assert services.read(alice.user_pk, "work").readable is None


def test_changes_are_audited_without_text(alice: Person) -> None:
    services.write(alice.user_pk, "user", FULL["user"], actor=APP)
    services.patch(alice.user_pk, "user", {"timezone": None}, actor=APP, agent_id="main")
    services.restore(alice.user_pk, "user", 1, actor=OPERATOR)
    services.set_disabled(alice.user_pk, "user", True, actor=OPERATOR)
    events = AuditEvent.objects.filter(subject_type="profile").order_by("id")
    assert [(event.action, event.actor, event.user_id, event.subject_id, event.detail) for event in events] == [
        ("profile.write", "k1", "alice", "user", {"version": 1}),
        ("profile.patch", "k1", "alice", "user", {"version": 2, "agent_id": "main"}),
        ("profile.restore", "olga", "alice", "user", {"version": 3, "restored": 1}),
        ("profile.disable", "olga", "alice", "user", {"version": 4}),
    ]


def test_refused_changes_change_nothing(alice: Person) -> None:
    services.write(alice.user_pk, "user", {"occupation": "architect"}, actor=APP)
    with pytest.raises(TooLarge):
        services.write(alice.user_pk, "user", {"interests": ["字" * 1000] * 200}, actor=APP)
    with pytest.raises(InvalidInput) as error_info:
        services.patch(alice.user_pk, "user", {"people": [{"name": "Ana", "age": 4}]}, actor=APP)
    assert error_info.value.errors[0].field == "content.people.0.age"
    with pytest.raises(NotFound):
        services.write(uuid.uuid4(), "user", {}, actor=APP)
    assert (content_of(alice), services.read(alice.user_pk, "user").version) == ({"occupation": "architect"}, 1)


def test_deleting_a_user_deletes_the_documents(alice: Person) -> None:
    services.write(alice.user_pk, "user", FULL["user"], actor=APP)
    MemoryUser.objects.all().delete()
    assert not ProfileMemory.objects.exists()
    assert not ProfileRevision.objects.exists()
