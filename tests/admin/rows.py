"""One row of every table for the pages of the admin. Their texts hold markup, to detect pages that do not escape it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import uuid4

from django.contrib.auth.models import User
from django.db.models import Model
from django.utils import timezone

from accounts import portal_links, services, tokens
from accounts.audit import Actor, record
from accounts.models import (
    AuditBatch,
    AuditDigest,
    AuditEvent,
    AuditSubject,
    Case,
    Controls,
    IdempotencyKey,
    MemoryUser,
    OAuthClient,
    OAuthConnection,
    OAuthToken,
    OperatorIdentity,
    OperatorTenant,
    Pause,
    PortalLink,
    QueueLevel,
    RefusedMessage,
    RpcToken,
    SavedView,
    SecondFactor,
    SignInThrottle,
    UserKey,
)
from core.ids import new_resource_id, resource_session_id
from memories.models import LoggedSearch, Override, OverrideRevision, ReturnedMemory, SearchCount, Tombstone
from operations.models import Job, JobStep, Lease, UnmatchedDecision
from profiles.models import ProfileMemory, ProfileRevision
from remote.models import OutboxEntry, Resend
from resources.models import Attachment, RefusedUpload, Resource, StorageIdentity
from store.models import (
    Attribute,
    DayCount,
    Embedding,
    EmbeddingSpace,
    ExternalId,
    FactPage,
    IndexStatistics,
    Memory,
    PendingDeletion,
    PendingEmbedding,
    PendingExtraction,
    PendingMedia,
    Residue,
    Session,
    SessionCount,
    TokenVectors,
    VectorPage,
)
from tests.agents.oauth.flow import connect
from webhooks.models import Webhook, WebhookDelivery

MARKUP = """<script>alert(1)</script><img src=x onerror="alert(2)">'"{{ 7 }}"""
SECRET_TEXT = "the surprise party is on Friday"
ACTOR = Actor.command("tests")


def user(number: int) -> MemoryUser:
    return services.create_user(f"user{number}", actor=ACTOR).key.user


def key(number: int) -> UserKey:
    return services.issue_key(user(number).pk, label=MARKUP, actor=ACTOR).key


def rpc_token(number: int) -> RpcToken:
    return tokens.issue(MARKUP, user=user(number), actor=ACTOR).token


def audit_event(number: int) -> AuditEvent:
    record(ACTOR, "test.do", MARKUP, subject_type="user", user_id=f"user{number}", detail={"x": MARKUP})
    return AuditEvent.objects.latest("id")


def audit_subject(number: int) -> AuditSubject:
    return AuditSubject.objects.get(event=audit_event(number))


def throttle(number: int) -> SignInThrottle:
    return SignInThrottle.objects.create(network=f"10.0.0.{number}", counted_since=timezone.now())


def operator_identity(number: int) -> OperatorIdentity:
    operator = User.objects.create_user(f"maria{number}", is_staff=True)
    return OperatorIdentity.objects.create(
        operator=operator, issuer="https://id.example.org", subject=f"{MARKUP}{number}"
    )


def second_factor(number: int) -> SecondFactor:
    operator = User.objects.create_user(f"second{number}", is_staff=True)
    return SecondFactor.objects.create(operator=operator, sealed_secret="x", last_step=0, recovery_digests=[])


def operator_tenant(number: int) -> OperatorTenant:
    operator = User.objects.create_user(f"limited{number}", is_staff=True)
    return OperatorTenant.objects.create(operator=operator, tenant=f"acme{number}")


def audit_batch(number: int) -> AuditBatch:
    return AuditBatch.objects.create(last_event=number, count=1, root=f"{number:064x}", sealed_at=timezone.now())


def audit_digest(number: int) -> AuditDigest:
    return AuditDigest.objects.create(event_id=10**6 + number, batch=audit_batch(number), value=f"{number:064x}")


def case(number: int) -> Case:
    return Case.objects.create(subject_type="user", subject_id=f"{MARKUP[:40]}{number}", user=user(number), note=MARKUP)


def queue_level(number: int) -> QueueLevel:
    return QueueLevel.objects.create(name=f"{MARKUP[:30]}{number}", level=1)


def saved_view(number: int) -> SavedView:
    operator = User.objects.create_user(f"saver{number}", is_staff=True)
    return SavedView.objects.create(
        operator=operator, name=MARKUP[:60], page="memories", query="mark=edited", user=user(number)
    )


def idempotency_key(number: int) -> IdempotencyKey:
    return IdempotencyKey.objects.create(
        user=user(number), key_digest=f"{number:064x}", request_digest="0" * 64, created_at=timezone.now()
    )


def oauth_client(number: int) -> OAuthClient:
    return connect(user(number).pk, None, MARKUP)


def oauth_connection(number: int) -> OAuthConnection:
    return OAuthConnection.objects.get(client=oauth_client(number))


def oauth_token(number: int) -> OAuthToken:
    return OAuthToken.objects.get(connection=oauth_connection(number))


def portal_link(number: int) -> PortalLink:
    return portal_links.create(user(number).pk, actor=ACTOR).link


def controls_of(number: int) -> Controls:
    return Controls.objects.create(user=user(number))


def pause(number: int) -> Pause:
    now = timezone.now()
    return Pause.objects.create(user=user(number), source="chats", began_at=now, actor_kind="command", actor=MARKUP)


def refused_message(number: int) -> RefusedMessage:
    return RefusedMessage.objects.create(user=user(number), digest=f"{number:064}", refused_at=timezone.now())


def session(number: int) -> Session:
    name = f"chat:{number}{MARKUP}"
    return Session.objects.create(user=user(number), session_id=name, engine_session_id=name, kind="chat")


def memory(number: int) -> Memory:
    return Memory.objects.create(
        user=user(number),
        memory_id=uuid4().hex,
        session=session(number),
        memory_type="episode",
        category=MARKUP[:40],
        text=f"{SECRET_TEXT} {MARKUP}",
        original_text=MARKUP,
        sources=[MARKUP],
        payload={"episode": MARKUP},
        created_at_ms=1_781_172_177_000,
    )


def attribute(number: int) -> Attribute:
    return Attribute.objects.create(memory=memory(number), owner="o", name=f"metadata.{MARKUP}", value=b"x")


def external_id(number: int) -> ExternalId:
    return ExternalId.objects.create(
        user=user(number), app_id="default", project_id="default", application=MARKUP[:64], digest="0" * 64,
        memory_id=MARKUP,
    )  # fmt: skip


def statistics(number: int) -> IndexStatistics:
    return IndexStatistics.objects.create(user=user(number), app_id="default", project_id="default", documents=1)


def day_count(number: int) -> DayCount:
    return DayCount.objects.create(
        owner=MARKUP[:32], day=number, agent_id=MARKUP, category=MARKUP[:40], memories=1, low=0, mid=0, high=0,
        weight=0,
    )  # fmt: skip


def session_count(number: int) -> SessionCount:
    return SessionCount.objects.create(
        session_row=10**9 + number, of_agent=True, agent_id=MARKUP, memories=1, first_ms=0, last_ms=0
    )


def fact_page(number: int) -> FactPage:
    return FactPage.objects.create(
        user=user(number), app_id="default", project_id="default", number=0, facts=b"", names=f'["{MARKUP}"]'
    )


def embedding_space(number: int) -> EmbeddingSpace:
    return EmbeddingSpace.objects.create(model=f"{number}{MARKUP}", dimensions=4, last_error=MARKUP)


def embedding(number: int) -> Embedding:
    return Embedding.objects.create(memory=memory(number), space=embedding_space(number), digest=b"1", vector=b"")


def token_vectors(number: int) -> TokenVectors:
    return TokenVectors.objects.create(memory=memory(number), space=embedding_space(number), layout=1, vectors=b"")


def vector_page(number: int) -> VectorPage:
    return VectorPage.objects.create(
        user=user(number), app_id="default", project_id="default", space=embedding_space(number), number=0,
        rows=b"", codes=b"",
    )  # fmt: skip


def pending_embedding(number: int) -> PendingEmbedding:
    return PendingEmbedding.objects.create(memory=memory(number))


def pending_extraction(number: int) -> PendingExtraction:
    parent = session(number)
    return PendingExtraction.objects.create(
        user=parent.user, app_id="default", project_id="default", session=parent, last_error=MARKUP
    )


def pending_media(number: int) -> PendingMedia:
    return PendingMedia.objects.create(
        memory=memory(number), kind="vision", file_key=MARKUP, mime_type=MARKUP, last_error=MARKUP
    )


def outbox_entry(number: int) -> OutboxEntry:
    of_session = session(number)
    return OutboxEntry.objects.create(
        user=of_session.user,
        app_id="default",
        project_id="default",
        session=of_session,
        message_id=f"msg_{number}{MARKUP}",
        message={"text": SECRET_TEXT},
        time_ms=number,
        state="refused",
        cause=MARKUP,
    )


def resend(number: int) -> Resend:
    of_session = session(number)
    return Resend.objects.create(user=of_session.user, session=of_session, base_url=MARKUP, former_ids=[MARKUP])


def residue(number: int) -> Residue:
    return Residue.objects.create(digest=f"{number:064x}")


def pending_deletion(number: int) -> PendingDeletion:
    now = timezone.now()
    return PendingDeletion.objects.create(
        base_url="http://127.0.0.1:1995",
        user_key=user(number).pk,
        app_id="default",
        project_id="default",
        owner_id=f"user{number}",
        memory_id=f"memory{number}",
        queued_at=now,
        retry_at=now,
    )


def resource(number: int) -> Resource:
    owner, resource_id = user(number), new_resource_id()
    return Resource.objects.create(
        resource_id=resource_id,
        user=owner,
        session_id=resource_session_id(owner.user_id, resource_id),
        filename=MARKUP,
        title=MARKUP,
        description=SECRET_TEXT,
        content_type="text",
        sha256=uuid4().hex * 2,
    )


def attachment(number: int) -> Attachment:
    parent = resource(number)
    return Attachment.objects.create(
        user=parent.user,
        session_id=parent.session_id,
        resource=parent,
        source="upload",
        type="text",
        name=MARKUP,
        internal_uri="javascript:alert(3)",
    )


def lease(number: int) -> Lease:
    return Lease.objects.create(name=f"sweep-{number}", lease_holder=MARKUP, leased_until=timezone.now())


def job(number: int) -> Job:
    return Job.objects.create(
        kind="delete", actor_kind="operator", actor=MARKUP, params={"reason": MARKUP}, error=MARKUP
    )


def job_step(number: int) -> JobStep:
    return JobStep.objects.create(job=job(number), number=number, changes=[[number, MARKUP]])


def tombstone(number: int) -> Tombstone:
    parent = memory(number)
    return Tombstone.objects.create(
        user=parent.user, app_id="default", project_id="default", memory_id=parent.memory_id, row=parent, reason=MARKUP
    )


def override(number: int) -> Override:
    parent = memory(number)
    return Override.objects.create(
        user=parent.user, app_id="default", project_id="default", memory_id=parent.memory_id, row=parent, text=MARKUP
    )


def override_revision(number: int) -> OverrideRevision:
    return OverrideRevision.objects.create(override=override(number), number=0, text=SECRET_TEXT, category=MARKUP[:40])


def profile(number: int) -> ProfileMemory:
    content = {"occupation": SECRET_TEXT, "people": [{"name": MARKUP, "notes": MARKUP}]}
    return ProfileMemory.objects.create(owner=user(number), memory_type="user", content=content, version=1)


def profile_revision(number: int) -> ProfileRevision:
    parent = profile(number)
    return parent.revisions.create(
        version=1, action="write", content=parent.content, actor_kind="operator", actor=MARKUP
    )


def unmatched_decision(number: int) -> UnmatchedDecision:
    return UnmatchedDecision.objects.create(
        job=job(number), user=user(number), session_id=f"chat:{MARKUP}", memory_id=MARKUP, hides=[MARKUP]
    )


def storage_identity(number: int) -> StorageIdentity:
    return StorageIdentity.objects.update_or_create(pk=1)[0]


def webhook(number: int) -> Webhook:
    return Webhook.objects.create(user=user(number), url=f"https://example.com/{MARKUP}", secret=SECRET_TEXT)


def webhook_delivery(number: int) -> WebhookDelivery:
    made = webhook(number)
    return WebhookDelivery.objects.create(webhook=made, user=made.user, event_type=MARKUP[:32], error=MARKUP)


def logged_search(number: int) -> LoggedSearch:
    return LoggedSearch.objects.create(
        user=user(number), app_id=MARKUP[:64], project_id="default", at=timezone.now(), interface="rest",
        agent_id=MARKUP[:64], scopes="resources", method="hybrid", top_k=8, has_filters=False, hits=1, ms=1.5,
        query_chars=len(MARKUP), query=MARKUP,
    )  # fmt: skip


def refused_upload(number: int) -> RefusedUpload:
    return RefusedUpload.objects.create(user=user(number), filename=MARKUP, size_bytes=7, status=415, reason=MARKUP)


def returned_memory(number: int) -> ReturnedMemory:
    return ReturnedMemory.objects.create(search=logged_search(number), rank=1, row=number)


def search_count(number: int) -> SearchCount:
    return SearchCount.objects.create(hour=number, duration=1, searches=1, without_hits=0)


MAKERS: dict[type[Model], Callable[[int], Any]] = {
    Webhook: webhook,
    WebhookDelivery: webhook_delivery,
    MemoryUser: user,
    UserKey: key,
    RpcToken: rpc_token,
    AuditEvent: audit_event,
    AuditSubject: audit_subject,
    AuditBatch: audit_batch,
    AuditDigest: audit_digest,
    Case: case,
    QueueLevel: queue_level,
    SignInThrottle: throttle,
    IdempotencyKey: idempotency_key,
    OAuthClient: oauth_client,
    OAuthConnection: oauth_connection,
    OAuthToken: oauth_token,
    PortalLink: portal_link,
    Controls: controls_of,
    Pause: pause,
    RefusedMessage: refused_message,
    OperatorIdentity: operator_identity,
    SecondFactor: second_factor,
    SavedView: saved_view,
    OperatorTenant: operator_tenant,
    Session: session,
    Memory: memory,
    IndexStatistics: statistics,
    DayCount: day_count,
    SessionCount: session_count,
    FactPage: fact_page,
    EmbeddingSpace: embedding_space,
    Embedding: embedding,
    TokenVectors: token_vectors,
    VectorPage: vector_page,
    PendingEmbedding: pending_embedding,
    PendingExtraction: pending_extraction,
    Attribute: attribute,
    ExternalId: external_id,
    PendingMedia: pending_media,
    OutboxEntry: outbox_entry,
    Resend: resend,
    Residue: residue,
    PendingDeletion: pending_deletion,
    Resource: resource,
    Attachment: attachment,
    StorageIdentity: storage_identity,
    Tombstone: tombstone,
    LoggedSearch: logged_search,
    ReturnedMemory: returned_memory,
    RefusedUpload: refused_upload,
    SearchCount: search_count,
    Override: override,
    OverrideRevision: override_revision,
    ProfileMemory: profile,
    ProfileRevision: profile_revision,
    Lease: lease,
    Job: job,
    JobStep: job_step,
    UnmatchedDecision: unmatched_decision,
}
