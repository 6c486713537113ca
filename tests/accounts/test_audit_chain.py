"""The chain of digests over the audit trail: what was changed shows, what was erased leaves its digest."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from accounts import audit_chain
from accounts.audit import Actor, record
from accounts.models import AuditBatch, AuditDigest, AuditEvent
from operations import doctor, erase
from tests.conftest import Person

pytestmark = pytest.mark.django_db
ACTOR = Actor.operator("olga")


@pytest.fixture
def sealed(alice: Person, bob: Person) -> list[int]:
    """Return the events of two batches: one of Alice, one of both with a reason, one without a user."""
    AuditEvent.objects.all().delete()
    record(ACTOR, "memory.delete", "m1", user_id="alice", detail={"reason": "Alice asked."})
    assert not audit_chain.seal(timezone.now())
    record(ACTOR, "memory.export", users=["alice", "bob"], detail={"filter": {"user": "alice"}, "reason": "Audit."})
    record(ACTOR, "token.issue", "t1", detail={"scopes": ["read"]})
    audit_chain.seal(timezone.now())
    return list(AuditEvent.objects.order_by("pk").values_list("pk", flat=True))


def test_an_untouched_trail_is_whole_and_named_by_its_root(sealed: list[int]) -> None:
    found = audit_chain.verify()
    assert (found.events, found.batches, found.problems) == (3, 2, [])
    assert found.root == AuditBatch.objects.latest("pk").root
    assert not audit_chain.seal(timezone.now())
    assert AuditBatch.objects.count() == 2  # nothing new, no batch


def test_changes_gaps_and_additions_show(sealed: list[int]) -> None:
    first, second, third = sealed
    AuditEvent.objects.filter(pk=first).update(actor="ivan")
    AuditEvent.objects.filter(pk=second).delete()
    AuditEvent.objects.filter(pk=third).update(detail={"scopes": ["write"]})
    problems = audit_chain.verify().problems
    assert problems == [f"event {first} was changed", f"event {second} is missing", f"event {third} was changed"]
    status, text = next(iter(doctor._trail(doctor.Doctor())))
    assert (status, f"event {second} is missing" in text) == ("problem", True)


def test_a_changed_digest_breaks_the_chain(sealed: list[int]) -> None:
    AuditDigest.objects.filter(pk=sealed[1]).update(value="0" * 64)
    first, second = AuditBatch.objects.order_by("pk")
    assert f"batch {second.pk} does not follow from the one before" in audit_chain.verify().problems
    AuditBatch.objects.filter(pk=first.pk).update(root="0" * 64)
    assert f"batch {first.pk} does not follow from the one before" in audit_chain.verify().problems


def test_an_event_in_a_sealed_place_shows(sealed: list[int]) -> None:
    AuditEvent.objects.filter(pk=sealed[1]).delete()
    AuditEvent.objects.create(pk=sealed[1], action="memory.list", subject_type="memory")
    AuditDigest.objects.filter(pk=sealed[1]).delete()
    assert f"event {sealed[1]} was added later" in audit_chain.verify().problems


def test_an_erasure_leaves_digests_without_events_and_salts(sealed: list[int], alice: Person) -> None:
    erase.erase(alice.user_pk, actor=ACTOR)
    left = AuditEvent.objects.filter(pk__in=sealed).order_by("pk")
    assert next((event.pk, event.salt) for event in left) == (sealed[1], "")
    assert AuditDigest.objects.filter(is_released=True).count() == 2
    found = audit_chain.verify()
    assert (found.problems, found.released) == ([], 2)
    assert doctor._trail(doctor.Doctor()).__next__()[0] == "ok"


def test_retention_drops_whole_batches_and_keeps_the_last_root(sealed: list[int]) -> None:
    now = timezone.now()
    roots = list(AuditBatch.objects.order_by("pk").values_list("root", flat=True))
    AuditBatch.objects.filter(root=roots[0]).update(sealed_at=now - timedelta(days=401))
    assert audit_chain.drop_old(now, 400) == 1
    assert sorted(AuditEvent.objects.values_list("pk", flat=True)) == sealed[1:]
    record(ACTOR, "token.revoke", "t1")
    audit_chain.seal(now)
    found = audit_chain.verify()
    assert (found.events, found.problems) == (3, [])
    AuditBatch.objects.update(sealed_at=now - timedelta(days=500))
    audit_chain.drop_old(now, 400)
    assert list(AuditBatch.objects.values_list("root", "is_dropped")) == [(found.root, True)]
    assert (AuditEvent.objects.count(), audit_chain.verify().problems) == (0, [])
