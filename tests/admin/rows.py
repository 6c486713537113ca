"""Some rows of every table, for pages to show. The texts are such that a page which forgets to escape is found out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import uuid4

from django.db.models import Model
from django.utils import timezone

from accounts import services, tokens
from accounts.audit import Actor, record
from accounts.models import AuditEvent, MemoryUser, RpcToken, SignInThrottle, UserKey
from core.ids import new_resource_id, resource_session_id
from memories.models import Override, OverrideRevision, Tombstone
from operations.models import Job, JobStep, Lease, UnmatchedDecision
from profiles.models import ProfileMemory, ProfileRevision
from resources.models import Attachment, Resource, StorageIdentity
from store.models import (
    Embedding,
    EmbeddingSpace,
    FactPage,
    HourCount,
    IndexStatistics,
    IndexVersion,
    LeftUpstream,
    Memory,
    OwedEmbedding,
    OwedExtraction,
    Session,
    SessionCount,
    VectorPage,
)

NASTY = """<script>alert(1)</script><img src=x onerror="alert(2)">'"{{ 7 }}"""
SECRET_TEXT = "the surprise party is on Friday"
ACTOR = Actor.command("tests")


def user(number: int) -> MemoryUser:
    return services.create_user(f"user{number}", actor=ACTOR).key.user


def key(number: int) -> UserKey:
    return services.issue_key(user(number).pk, label=NASTY, actor=ACTOR).key


def rpc_token(number: int) -> RpcToken:
    return tokens.issue(NASTY, user=user(number), actor=ACTOR).token


def audit_event(number: int) -> AuditEvent:
    record(ACTOR, "test.do", subject_type="user", subject_id=NASTY, user_id=f"user{number}", detail={"x": NASTY})
    return AuditEvent.objects.latest("id")


def throttle(number: int) -> SignInThrottle:
    return SignInThrottle.objects.create(network=f"10.0.0.{number}", counted_since=timezone.now())


def session(number: int) -> Session:
    name = f"chat:{number}{NASTY}"
    return Session.objects.create(user=user(number), session_id=name, engine_session_id=name, kind="chat")


def memory(number: int) -> Memory:
    return Memory.objects.create(
        user=user(number),
        memory_id=uuid4().hex,
        session=session(number),
        memory_type="episode",
        category=NASTY[:40],
        text=f"{SECRET_TEXT} {NASTY}",
        payload={"episode": NASTY},
        created_at_ms=1_781_172_177_000,
    )


def statistics(number: int) -> IndexStatistics:
    return IndexStatistics.objects.create(user=user(number), app_id="default", project_id="default", documents=1)


def index_version(number: int) -> IndexVersion:
    return IndexVersion.objects.create(tokenizer=f"tokens-{number}")


def hour_count(number: int) -> HourCount:
    return HourCount.objects.create(
        slice=9, key=NASTY, span=1, start=number, member=NASTY, category=NASTY[:40], memories=1, low=0, mid=0, high=0,
        weight=0,
    )  # fmt: skip


def session_count(number: int) -> SessionCount:
    return SessionCount.objects.create(
        session_row=10**9 + number, of_agent=True, agent_id=NASTY, memories=1, first_ms=0, last_ms=0
    )


def fact_page(number: int) -> FactPage:
    return FactPage.objects.create(
        user=user(number), app_id="default", project_id="default", number=0, facts=b"", names=f'["{NASTY}"]'
    )


def space(number: int) -> EmbeddingSpace:
    return EmbeddingSpace.objects.create(model=f"{number}{NASTY}", dimensions=4, last_error=NASTY)


def embedding(number: int) -> Embedding:
    return Embedding.objects.create(memory=memory(number), space=space(number), digest=b"1", vector=b"")


def vector_page(number: int) -> VectorPage:
    return VectorPage.objects.create(
        user=user(number), app_id="default", project_id="default", space=space(number), number=0,
        rows=b"", codes=b"",
    )  # fmt: skip


def owed_embedding(number: int) -> OwedEmbedding:
    return OwedEmbedding.objects.create(memory=memory(number))


def owed_extraction(number: int) -> OwedExtraction:
    of = session(number)
    return OwedExtraction.objects.create(
        user=of.user, app_id="default", project_id="default", session=of, last_error=NASTY
    )


def left_upstream(number: int) -> LeftUpstream:
    return LeftUpstream.objects.create(digest=f"{number:064x}")


def resource(number: int) -> Resource:
    owner, resource_id = user(number), new_resource_id()
    return Resource.objects.create(
        resource_id=resource_id,
        user=owner,
        session_id=resource_session_id(owner.user_id, resource_id),
        filename=NASTY,
        title=NASTY,
        description=SECRET_TEXT,
        content_type="text",
        sha256=uuid4().hex * 2,
    )


def attachment(number: int) -> Attachment:
    of = resource(number)
    return Attachment.objects.create(
        user=of.user,
        session_id=of.session_id,
        resource=of,
        source="upload",
        type="text",
        name=NASTY,
        internal_uri="javascript:alert(3)",
    )


def lease(number: int) -> Lease:
    return Lease.objects.create(name=f"sweep-{number}", holder=NASTY, expires_at=timezone.now())


def job(number: int) -> Job:
    return Job.objects.create(kind="delete", actor_kind="operator", actor=NASTY, params={"reason": NASTY}, error=NASTY)


def job_step(number: int) -> JobStep:
    return JobStep.objects.create(job=job(number), number=number, changes=[[number, NASTY]])


def tombstone(number: int) -> Tombstone:
    of = memory(number)
    return Tombstone.objects.create(
        user=of.user, app_id="default", project_id="default", memory_id=of.memory_id, row=of, reason=NASTY
    )


def override(number: int) -> Override:
    of = memory(number)
    return Override.objects.create(
        user=of.user, app_id="default", project_id="default", memory_id=of.memory_id, row=of, text=NASTY
    )


def revision(number: int) -> OverrideRevision:
    return OverrideRevision.objects.create(override=override(number), number=0, text=SECRET_TEXT, category=NASTY[:40])


def profile(number: int) -> ProfileMemory:
    content = {"occupation": SECRET_TEXT, "people": [{"name": NASTY, "notes": NASTY}]}
    return ProfileMemory.objects.create(owner=user(number), memory_type="user", content=content, version=1)


def profile_revision(number: int) -> ProfileRevision:
    of = profile(number)
    return of.revisions.create(version=1, action="write", content=of.content, actor_kind="operator", actor=NASTY)


def unmatched_decision(number: int) -> UnmatchedDecision:
    return UnmatchedDecision.objects.create(
        job=job(number), user=user(number), session_id=f"chat:{NASTY}", memory_id=NASTY, hides=[NASTY]
    )


def storage_identity(number: int) -> StorageIdentity:
    return StorageIdentity.objects.update_or_create(pk=1)[0]


MAKERS: dict[type[Model], Callable[[int], Any]] = {
    MemoryUser: user,
    UserKey: key,
    RpcToken: rpc_token,
    AuditEvent: audit_event,
    SignInThrottle: throttle,
    Session: session,
    Memory: memory,
    IndexStatistics: statistics,
    HourCount: hour_count,
    SessionCount: session_count,
    IndexVersion: index_version,
    FactPage: fact_page,
    EmbeddingSpace: space,
    Embedding: embedding,
    VectorPage: vector_page,
    OwedEmbedding: owed_embedding,
    OwedExtraction: owed_extraction,
    LeftUpstream: left_upstream,
    Resource: resource,
    Attachment: attachment,
    StorageIdentity: storage_identity,
    Tombstone: tombstone,
    Override: override,
    OverrideRevision: revision,
    ProfileMemory: profile,
    ProfileRevision: profile_revision,
    Lease: lease,
    Job: job,
    JobStep: job_step,
    UnmatchedDecision: unmatched_decision,
}
