from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Any
from urllib.parse import quote
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.http import HttpResponse
from django.urls import get_script_prefix
from django.utils import translation
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.viewsets import ViewSet

from accounts import profile_entries
from accounts.api.authentication import caller, reads
from accounts.api.idempotency import idempotent
from accounts.api.openapi import (
    NOT_MODIFIED,
    RequiredBodies,
    path_parameter,
    problems,
    query_parameters,
    request_body,
    success,
)
from accounts.api.preconditions import conditional, if_unchanged, with_etag
from accounts.api.schemas import ChatId, ScopedQuery
from accounts.audit import Actor
from accounts.bound_keys import agent_of
from accounts.expiry import days_of
from accounts.models import IdempotencyKey, Principal
from accounts.profile_entries import ProfileEntry, Question
from accounts.scopes import ACCOUNT, ADD, DECIDE, SEARCH
from core import pagination
from core.errors import Conflict, InvalidInput, NotFound, PreconditionFailed
from core.localization import language_headers, language_of, localized
from core.messages import Translatable as _
from core.preconditions import etag_of, preconditions_of, require_match
from core.rest import MAX_JSON_BYTES, Forbidden, parse, parse_query
from core.times import isoformat
from engines.registry import get_engine
from memories import queries
from memories.api import rendering
from memories.api.rendering import View
from memories.api.schemas import expiry as expiry_schemas
from memories.api.schemas import facts as fact_schemas
from memories.api.schemas import memories as schemas
from memories.api.schemas import messages as message_schemas
from memories.api.schemas import search as search_schemas
from memories.api.schemas.messages import given_expiry
from memories.services import decisions, expiry, lookup
from memories.services.add import add, flush
from memories.services.excerpts import Budget
from memories.services.links import links_of
from memories.services.lookup import MemoryRef, owner_of, ref_of, require_visible
from memories.services.manual import NewFact, Source, StoredFact, ask_model, store_fact
from memories.services.search_log import logged_search
from memories.services.zones import as_of_time, filters_now, unknown_zone
from remote import queries as remote
from store import topic_model
from store.admission import NotKept, Offer, answer_of, require_correction, texts_in
from store.models import Memory
from store.types import KEPT, Owner, StoredMemory

FEW_RESULTS = 3
LEFT_OUT = _("The default search scopes leave out your other sessions. Add all_user_memory to scope to search them.")
NO_CHAT = _("current_chat searches nothing without conversation_id. Send it, or add all_user_memory to scope.")
TODAYS_TEXTS = _("Memories were found by today's texts and are shown in the words of that time.")
_MEMORY_ID = path_parameter("memory_id", schemas.MemoryId)
_SESSION_ID = path_parameter("session_id", ChatId)


def _stored(owner: Owner, memory: StoredMemory) -> dict[str, Any]:
    return {"memory": rendering.memory(memory, queries.override_ids(owner, [memory.memory_id]))}


def _ref_of(memory: StoredMemory) -> MemoryRef:
    return MemoryRef(memory.memory_id, app_id=memory.owner.app_id, project_id=memory.owner.project_id)


def _fact_response(answer: dict[str, Any], status: int, etag: str) -> Response:
    location = f"{get_script_prefix()}memories/{quote(answer['memory']['id'])}"
    return Response(answer, status=status, headers={"ETag": etag, "Location": location})


def _kept(answer: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is kept of an answer with a stored fact: no text."""
    if answer["memory"] is None:
        return dict(answer)
    memory = {name: answer["memory"][name] for name in ("id", "app_id", "project_id")}
    return memory | {name: answer[name] for name in ("action", "replaces", "redacted") if name in answer}


def _stored_again(request: Request, kept: IdempotencyKey) -> Response:
    """Return the answer to a repeated request, with the memory as it is now."""
    user_pk, result = caller(request).user_pk, dict(kept.result)
    if result.get("action") == "refused":
        return Response(result)
    ref = MemoryRef(result.pop("id"), app_id=result.pop("app_id"), project_id=result.pop("project_id"))
    memory = lookup.get_memory(user_pk, ref)
    answer = _stored(memory.owner, memory) | {"similar": [], "stored": 1} | result
    return _fact_response(answer, kept.status or 200, etag_of(_memory(user_pk, ref)))


def _expiry(user_pk: UUID) -> dict[str, Any]:
    return {"days": days_of(user_pk), "installation": settings.MEMORY_GATEWAY_EXPIRY}


def _require_match(request: Request, owner: Owner, older: Memory | None) -> None:
    """Check the preconditions of a request about the memory that it changes. Raises: `PreconditionFailed`."""
    conditions = preconditions_of(request.headers)
    if not conditions.is_any:
        return
    if older is None:
        if conditions.if_match is not None:
            raise PreconditionFailed(_("There is no memory yet that the request could change."), etag='""')
        return
    document = _memory(owner.user_pk, MemoryRef(older.memory_id, app_id=older.app_id, project_id=older.project_id))
    require_match(etag_of(document), *conditions, current=document)


def _fact(principal: Principal, body: fact_schemas.FactItem | fact_schemas.FactBody) -> tuple[Owner, NewFact]:
    """Return a fact for the application and the agent of a key."""
    owner = owner_of(principal, body.app_id or "default", body.project_id or "default")
    fact = body.fact(owner.user_pk)
    return owner, replace(fact, agent_id=agent_of(principal, fact.agent_id) or "")


def _ask_model(request: Request) -> None:
    """Ask the model about the fact of a request, outside of the transaction that stores it."""
    if topic_model.is_set():
        owner, fact = _fact(caller(request), parse(fact_schemas.FactBody, request.data))
        ask_model(owner, [fact])


def _ask_about_all(principal: Principal, items: Iterable[dict[str, Any]]) -> None:
    """Ask the model about the facts of a bulk request at once. Invalid ones are left to their own result."""
    by_owner: dict[Owner, list[NewFact]] = {}
    for item in items if topic_model.is_set() else ():
        with suppress(InvalidInput, NotFound, Conflict, Forbidden):
            owner, fact = _fact(principal, parse(fact_schemas.FactItem, item))
            by_owner.setdefault(owner, []).append(fact)
    for owner, facts in by_owner.items():
        ask_model(owner, facts)


def _store(principal: Principal, body: fact_schemas.FactItem | fact_schemas.FactBody, **options: Any) -> StoredFact:
    """Store a fact about which the model was asked. External ids of a bound key are those of its agent."""
    owner, fact = _fact(principal, body)
    source = Source("tool", Actor.key(principal), principal.agent_id)
    return store_fact(owner, fact, source, is_asked=True, **options)


def _store_item(principal: Principal, item: dict[str, Any]) -> dict[str, Any]:
    """Store a fact of a bulk request. Return its result, also for an error that is of this fact alone."""
    try:
        stored = _store(principal, parse(fact_schemas.FactItem, item), with_similar=False)
    except NotKept as error:
        return {"status": 200, "action": "refused", **error.members}
    except (InvalidInput, NotFound, Conflict, Forbidden) as error:
        problems = [{"field": one.field, "message": localized(one.message)} for one in error.errors]
        return {"status": error.status, "code": error.code, "detail": localized(error.detail), "errors": problems}
    result: dict[str, Any] = {"status": 201 if stored.action == "created" else 200, "id": stored.memory.memory_id}
    redacted = {"redacted": dict(stored.redacted)} if stored.redacted else {}
    return result | {"action": stored.action} | redacted


def _entries(owner: Owner, body: search_schemas.SearchBody) -> Sequence[ProfileEntry]:
    """Return the entries of the caller's profile that fit a search. At most one statement."""
    if not body.include_profile or body.agent_id is not None or body.as_of:
        return ()
    return profile_entries.fitting(owner.user_pk, Question(body.query, body.min_relevance))


@extend_schema(tags=["memories"])
class MemoryViewSet(ViewSet):
    schema = RequiredBodies()
    scopes = {
        **dict.fromkeys(("search", "list_memories", "retrieve", "list_trash"), SEARCH),
        **dict.fromkeys(("override", "undo_override", "destroy", "destroy_of_sender", "restore"), DECIDE),
        "store": ADD,
    }

    @extend_schema(
        operation_id="search_memories",
        summary="Search memories",
        request=request_body(search_schemas.SearchBody),
        responses={
            200: success(search_schemas.SearchOut, "The results, best first."),
            **problems(413, 422, 502),
        },
    )
    @reads
    def search(self, request: Request) -> Response:
        """Search the caller's memories in one or several search scopes. Deleted memories are never returned."""
        body = parse(search_schemas.SearchBody, request.data)
        principal = caller(request)
        owner = owner_of(principal, body.app_id, body.project_id)
        agent_of(principal, body.agent_id)
        at = as_of_time(body.as_of, owner.user_pk, body.timezone or "", body.now) if body.as_of else None
        command = replace(body.command(), reader=principal.agent_id or None, as_of=at)
        answer = logged_search(owner, command, interface="rest")
        budget = Budget(body.max_tokens, body.max_chars_per_memory)
        view = View(body.query, body.explain, bool(body.context), body.raw, budget, owner.user_id)
        document = rendering.search_answer(answer, view, _entries(owner, body))
        if at is not None:
            document["meta"]["as_of"] = isoformat(at)
        is_default, is_short = "scope" not in body.model_fields_set, len(answer.results) < FEW_RESULTS
        leaves_out = is_default and is_short and queries.has_other_sessions(owner, body.conversation_id)
        has_no_chat = not is_default and body.conversation_id is None and "current_chat" in body.scope
        given = (
            TODAYS_TEXTS if at is not None else None,
            LEFT_OUT if leaves_out else None,
            NO_CHAT if has_no_chat else None,
            unknown_zone(body.timezone or ""),
        )
        hints = list(filter(None, given))
        if not hints:
            return Response(document)
        language = language_of(request)
        with translation.override(language):
            document["meta"]["hint"] = " ".join(map(localized, hints))
        return Response(document, headers=language_headers(language))

    @extend_schema(
        operation_id="list_memories",
        summary="List memories",
        parameters=query_parameters(schemas.MemoryListQuery),
        responses={200: success(schemas.MemoryPage, "A page of memories, newest first."), **problems(422)},
    )
    @reads
    def list_memories(self, request: Request) -> Response:
        """List the memories of a scope, without deleted ones."""
        query = parse_query(schemas.MemoryListQuery, request)
        principal = caller(request)
        owner = owner_of(principal, query.app_id, query.project_id)
        agent_of(principal, query.agent_id)
        filters = filters_now(query.filters, owner.user_pk)
        at = as_of_time(query.as_of, owner.user_pk) if query.as_of else None
        wanted = replace(query.request(), filters=filters, reader=principal.agent_id or None, as_of=at)
        return Response(rendering.memory_page(owner, get_engine().list(owner, wanted)))

    @extend_schema(
        operation_id="get_memory",
        summary="Get a memory",
        parameters=[_MEMORY_ID, *query_parameters(schemas.MemoryAtQuery)],
        responses={
            200: success(schemas.MemoryDetail, "The memory and its history."),
            304: NOT_MODIFIED,
            **problems(404, 409, 412, 422),
        },
    )
    @conditional
    def retrieve(self, request: Request, memory_id: str) -> HttpResponse:
        """Get a memory, also a deleted one, with its `ETag` and the history of its overrides and deletions.

        With `as_of`, get it as it was then, without the history.
        """
        query = parse_query(schemas.MemoryAtQuery, request)
        principal = caller(request)
        ref = ref_of(principal, replace(query.memory_ref(memory_id), session_id=query.session_id))
        if query.as_of:
            document = _memory_at(principal.user_pk, ref, as_of_time(query.as_of, principal.user_pk))
        else:
            document = _memory(principal.user_pk, ref, find=lookup.get_shown)
        return with_etag(request, document)

    @extend_schema(
        operation_id="override_memory",
        summary="Override a memory",
        parameters=[_MEMORY_ID],
        request=request_body(schemas.OverrideBody),
        responses={200: success(schemas.OverrideOut, "The active override."), **problems(404, 409, 412, 422)},
    )
    @conditional
    def override(self, request: Request, memory_id: str) -> Response:
        """Replace the text, the category or the importance of a memory, its tags or metadata, or when it expires.

        The original text stays in its history.
        """
        body = parse(schemas.OverrideBody, request.data)
        principal, values = caller(request), body.override_values()
        ref = ref_of(principal, body.memory_ref(memory_id))
        read, actor = partial(_memory, principal.user_pk, ref), Actor.key(principal)
        copies: dict[str, Any] = {}
        override = None
        text, labels = (values and values.text) or "", body.labels()
        if text or labels:
            offer = Offer("agents", text, others=tuple(texts_in(labels)))
            require_correction(principal.user_pk, offer, is_of_person=ACCOUNT in principal.scopes)
        with if_unchanged(request, read, is_read_after=True):
            if values and body.copies:
                override, copy_ids, _changes = decisions.override_copies(
                    principal.user_pk, ref, values, reader=principal.agent_id, actor=actor
                )
                copies = rendering.copies(copy_ids)
            elif values:
                override = decisions.override(principal.user_pk, ref, values, actor=actor)
            if (expires_at := given_expiry(body, principal.user_pk)) is not KEPT:
                decisions.set_expiry(principal.user_pk, ref, expires_at, actor=actor)
            if labels:
                decisions.set_labels(principal.user_pk, ref, labels, actor=actor)
            etag = etag_of(read())
        override_id = override and override.override_id
        answer = {"memory_id": memory_id, "override_id": override_id, "status": "active", **copies}
        return Response(answer, headers={"ETag": etag})

    @extend_schema(
        operation_id="undo_override",
        summary="Undo an override",
        parameters=[_MEMORY_ID, *query_parameters(schemas.UndoQuery)],
        request=None,
        responses={
            200: success(schemas.OverrideOut, "The override that was undone.", status="undone"),
            **problems(404, 409, 412, 422),
        },
    )
    @conditional
    def undo_override(self, request: Request, memory_id: str) -> Response:
        """Undo the override of a memory: its original text, category and importance return."""
        query = parse_query(schemas.UndoQuery, request)
        principal = caller(request)
        ref = ref_of(principal, query.memory_ref(memory_id))
        with if_unchanged(request, partial(_memory, principal.user_pk, ref)):
            override, *others = decisions.undo_override(
                principal.user_pk, ref, with_copies=query.copies, actor=Actor.key(principal)
            )
        copies = rendering.copies([one.memory_id for one in others]) if query.copies else {}
        return Response({"memory_id": memory_id, "override_id": override.override_id, "status": "undone", **copies})

    @extend_schema(
        operation_id="delete_memory",
        summary="Delete a memory",
        parameters=[_MEMORY_ID, *query_parameters(schemas.DeletionQuery)],
        request=request_body(schemas.DeletionBody),
        responses={200: success(schemas.Deleted, "The deletion."), **problems(404, 409, 412, 422)},
    )
    @conditional
    def destroy(self, request: Request, memory_id: str) -> Response:
        """Move a memory to the trash. Searches and lists stop returning it at once.

        Without `copies`, the next search shows a copy in its place if there is one.
        """
        query, body = parse_query(schemas.DeletionQuery, request), parse(schemas.DeletionBody, request.data)
        principal = caller(request)
        ref = ref_of(principal, body.memory_ref(memory_id))
        reason, actor = body.reason or "", Actor.key(principal)
        copies: dict[str, Any] = {}
        with if_unchanged(request, partial(_memory, principal.user_pk, ref)):
            if query.copies:
                deleted = decisions.delete_copies(
                    principal.user_pk, ref, reason=reason, reader=principal.agent_id, actor=actor
                )
                tombstone, copies = deleted.tombstone, rendering.copies(deleted.copy_ids)
            else:
                tombstone = decisions.delete(principal.user_pk, ref, reason=reason, actor=actor)
        answer = {"memory_id": memory_id, "tombstone_id": tombstone.tombstone_id, "status": "deleted", **copies}
        return Response(answer)

    @extend_schema(
        operation_id="delete_memories_of_sender",
        summary="Delete the messages of a sender",
        request=request_body(schemas.SenderDeletionBody),
        responses={200: success(schemas.SenderDeleted, "The deletion."), **problems(409, 422)},
    )
    def destroy_of_sender(self, request: Request) -> Response:
        """Move the messages of one sender, and what was derived from them, to the trash. Others' messages stay.

        A failed request can be repeated.
        """
        body = parse(schemas.SenderDeletionBody, request.data)
        principal = caller(request)
        count = decisions.delete_of_sender(
            owner_of(principal, body.app_id, body.project_id),
            body.sender_id,
            session_id=body.session_id,
            reason=body.reason or "",
            actor=Actor.key(principal),
        )
        return Response({"sender_id": body.sender_id, "deleted_count": count})

    @extend_schema(
        operation_id="restore_memory",
        summary="Restore a memory",
        parameters=[_MEMORY_ID],
        request=request_body(schemas.MemoryRestoreBody),
        responses={
            200: success(schemas.Restored, "The memory that was restored.", status="restored"),
            **problems(404, 409, 412, 422),
        },
    )
    @idempotent(in_transaction=True)
    @conditional
    def restore(self, request: Request, memory_id: str) -> Response:
        """Restore a memory from the trash with the copies deleted with it, or one that a newer memory superseded.

        One that has expired needs a new `expires_at`, or null.
        """
        body = parse(schemas.MemoryRestoreBody, request.data)
        principal = caller(request)
        ref = ref_of(principal, body.memory_ref(memory_id))
        with if_unchanged(request, partial(_memory, principal.user_pk, ref)):
            expires_at, actor = given_expiry(body, principal.user_pk), Actor.key(principal)
            restored = decisions.restore(principal.user_pk, ref, expires_at=expires_at, actor=actor)
        tombstone_id = restored[0].tombstone_id if restored else None
        copies = rendering.copies([one.memory_id for one in restored[1:]]) if restored[1:] else {}
        return Response({"memory_id": memory_id, "tombstone_id": tombstone_id, "status": "restored", **copies})

    @extend_schema(
        operation_id="list_trash",
        summary="List deleted memories and sessions",
        parameters=query_parameters(schemas.PageQuery),
        responses={200: success(schemas.TrashPage, "A page of the trash, newest deletion first."), **problems(422)},
    )
    @reads
    def list_trash(self, request: Request) -> Response:
        """List the deletions of a scope that can be undone."""
        query = parse_query(schemas.PageQuery, request)
        principal = caller(request)
        owner = owner_of(principal, query.app_id, query.project_id)
        after = None
        if query.cursor is not None:
            microseconds, tombstone_id = pagination.decode(query.cursor)
            after = pagination.moment(microseconds), tombstone_id
        found = queries.trash(owner, after, query.limit + 1, reader=principal.agent_id)
        page, following = found[: query.limit], None
        if len(found) > query.limit:
            following = pagination.encode(pagination.microseconds(page[-1].created_at), page[-1].tombstone_id)
        return Response(
            {
                "trash": [rendering.trash_item(tombstone) for tombstone in page],
                "next_cursor": following,
            }
        )

    @extend_schema(
        operation_id="store_memory",
        summary="Store a memory",
        request=request_body(fact_schemas.FactBody),
        responses={
            201: success(fact_schemas.FactOut, "The new memory.", memory=fact_schemas.EXAMPLE),
            200: success(
                fact_schemas.FactOut,
                "The older memory of the same id or text.",
                memory=fact_schemas.EXAMPLE,
                action="unchanged",
            ),
            **problems(404, 409, 412, 422),
        },
    )
    @idempotent(in_transaction=True, before=_ask_model, render=_stored_again, keep=_kept)
    @conditional
    def store(self, request: Request) -> Response:
        """Store a fact in one call, without a message. Searches find it at once.

        With an `external_id` that is known, its memory is changed; `If-Match` then names the ETag that it must have.
        """
        body = parse(fact_schemas.FactBody, request.data)
        principal = caller(request)
        owner = owner_of(principal, body.app_id, body.project_id)
        before = partial(_require_match, request, owner)
        with transaction.atomic():
            try:
                stored = _store(principal, body, before=before)
            except NotKept as error:
                nothing: dict[str, Any] = {
                    "memory": None,
                    "action": "refused",
                    "similar": [],
                    "replaces": [],
                    "stored": 0,
                }
                return Response(nothing | error.members)
            etag = etag_of(_memory(owner.user_pk, _ref_of(stored.memory)))
        similar = rendering.similar(stored.similar) if SEARCH in principal.scopes else []
        answer = _stored(owner, stored.memory) | {"action": stored.action, "similar": similar}
        answer |= {"replaces": list(links_of(stored.memory).replaces), "stored": 1}
        if stored.redacted:
            answer["redacted"] = dict(stored.redacted)
        return _fact_response(answer, 201 if stored.action == "created" else 200, etag)


class ExpiryViewSet(ViewSet):
    scopes = {"retrieve": SEARCH, "replace": DECIDE}
    schema = RequiredBodies()

    @extend_schema(
        operation_id="get_expiry",
        summary="Get the defaults of expiry",
        responses={
            200: success(expiry_schemas.ExpiryOut, "The defaults, with an `ETag`."),
            304: NOT_MODIFIED,
            **problems(412),
        },
    )
    @conditional
    def retrieve(self, request: Request) -> HttpResponse:
        """Get after how many days memories expire that name no time."""
        return with_etag(request, _expiry(caller(request).user_pk))

    @extend_schema(
        operation_id="put_expiry",
        summary="Replace the defaults of expiry",
        request=request_body(expiry_schemas.ExpiryBody),
        responses={200: success(expiry_schemas.ExpiryOut, "The defaults from now on."), **problems(412, 422)},
    )
    @conditional
    def replace(self, request: Request) -> Response:
        """Set after how many days memories expire that are stored from now on and name no time."""
        body, principal = parse(expiry_schemas.ExpiryBody, request.data), caller(request)
        read = partial(_expiry, principal.user_pk)
        with if_unchanged(request, read, is_read_after=True):
            expiry.set_days(principal.user_pk, body.days, actor=Actor.key(principal))
            document = read()
        return Response(document, headers={"ETag": etag_of(document)})


@extend_schema(tags=["memories"])
class FactsViewSet(ViewSet):
    scopes = {"store_many": ADD}
    max_json_bytes = 16 * MAX_JSON_BYTES

    @extend_schema(
        operation_id="store_memories",
        summary="Store many memories",
        request=request_body(fact_schemas.BulkBody),
        responses={200: success(fact_schemas.BulkOut, "A result for each fact."), **problems(409, 413, 422)},
    )
    @idempotent()
    def store_many(self, request: Request) -> Response:
        """Store up to 500 facts, each by itself: an error of one leaves the others as they are.

        A failed request can be repeated: what is stored already is unchanged then.
        """
        body = parse(fact_schemas.BulkBody, request.data)
        principal = caller(request)
        language = language_of(request)
        _ask_about_all(principal, body.memories)
        with translation.override(language):
            results = [_store_item(principal, item) | {"index": index} for index, item in enumerate(body.memories)]
        is_paused = any(one.get("paused") for one in results)
        stored = sum("id" in one for one in results)
        answer = {"results": results, "stored": stored, **answer_of({}, is_paused=is_paused)}
        return Response(answer, headers=language_headers(language))


@extend_schema(tags=["memories"])
class MessageViewSet(ViewSet):
    scopes = {"add": ADD, "flush": ADD}

    @property
    def max_json_bytes(self) -> int:
        """Leave room for one file of the largest size as base64, and for the text around it."""
        return MAX_JSON_BYTES + -(-settings.MEMORY_GATEWAY_MAX_UPLOAD_BYTES // 3) * 4

    @extend_schema(
        operation_id="add_messages",
        summary="Append messages to a session",
        request=request_body(message_schemas.AddBody),
        responses={
            200: success(message_schemas.AddOut, "The engine has accepted the messages."),
            **problems(404, 409, 413, 415, 422, 502, 507),
        },
    )
    @idempotent()
    def add(self, request: Request) -> Response:
        """Append messages to a session. Searches find them at once; a flush turns them into memories.

        A failed request can be repeated: messages that the session already has are not stored again.
        """
        body = parse(message_schemas.AddBody, request.data)
        owner = owner_of(caller(request), body.app_id, body.project_id)
        result = add(owner, body.command(owner))
        language = language_of(request)
        with translation.override(language):
            answer = rendering.added(body.session_id, result, unknown_zone(body.timezone or ""))
        return Response(answer, headers=language_headers(language) if "warnings" in answer else None)

    @extend_schema(
        operation_id="flush_session",
        summary="Flush a session",
        request=request_body(message_schemas.FlushBody),
        responses={
            200: success(message_schemas.FlushOut, "The messages are memories."),
            **problems(404, 409, 422, 502),
        },
    )
    @idempotent()
    def flush(self, request: Request) -> Response:
        """Turn the messages of a session into memories, for example at the end of a conversation."""
        body = parse(message_schemas.FlushBody, request.data)
        owner = owner_of(caller(request), body.app_id, body.project_id)
        result = flush(owner, body.session_id, end=body.end)
        return Response(rendering.flushed(body.session_id, result))


@extend_schema(tags=["sessions"])
class SessionViewSet(ViewSet):
    schema = RequiredBodies()
    scopes = {
        **dict.fromkeys(("list_sessions", "retrieve", "retrieve_with_restore_suffix"), SEARCH),
        **dict.fromkeys(("destroy", "destroy_with_restore_suffix", "restore"), DECIDE),
    }

    @extend_schema(
        operation_id="list_sessions",
        summary="List sessions",
        parameters=query_parameters(schemas.SessionListQuery),
        responses={200: success(schemas.SessionPage, "A page of sessions, newest first."), **problems(422)},
    )
    @reads
    def list_sessions(self, request: Request) -> Response:
        """List the sessions of a scope, or those in its trash."""
        query = parse_query(schemas.SessionListQuery, request)
        owner = owner_of(caller(request), query.app_id, query.project_id)
        after = None if query.cursor is None else pagination.decode_numbers(query.cursor)[0]
        found = list(queries.sessions(owner, is_hidden=query.deleted, after=after, limit=query.limit + 1))
        page = found[: query.limit]
        counts, states = queries.counts(page), remote.states_of(page)
        return Response(
            {
                "sessions": [
                    rendering.session(session, counts.get(session.pk, {}), states[session.pk]) for session in page
                ],
                "next_cursor": pagination.encode(page[-1].pk, 0) if len(found) > query.limit else None,
            }
        )

    @extend_schema(
        operation_id="get_session",
        summary="Get a session",
        parameters=[_SESSION_ID, *query_parameters(ScopedQuery)],
        responses={
            200: success(schemas.SessionItem, "The session."),
            304: NOT_MODIFIED,
            **problems(404, 412, 422),
        },
    )
    @conditional
    def retrieve(self, request: Request, session_id: str) -> HttpResponse:
        """Get a session, also one in the trash, with its `ETag`."""
        query = parse_query(ScopedQuery, request)
        return with_etag(request, _session(owner_of(caller(request), query.app_id, query.project_id), session_id))

    @conditional
    @extend_schema(exclude=True)
    def retrieve_with_restore_suffix(self, request: Request, session_id: str) -> HttpResponse:
        """Get a session whose id ends like the address that restores sessions."""
        return self.retrieve(request, f"{session_id}/restore")

    @extend_schema(
        operation_id="delete_session",
        summary="Delete a session",
        parameters=[_SESSION_ID],
        request=request_body(schemas.SessionDeletionBody),
        responses={200: success(schemas.SessionDecided, "The deletion."), **problems(404, 412, 422)},
    )
    @conditional
    def destroy(self, request: Request, session_id: str) -> Response:
        """Move a session with all its memories to the trash."""
        body = parse(schemas.SessionDeletionBody, request.data)
        principal = caller(request)
        owner = owner_of(principal, body.app_id, body.project_id)
        require_visible(principal, owner, session_id)
        actor, reason = Actor.key(principal), body.reason or ""
        with if_unchanged(request, partial(_session, owner, session_id, is_locked=True)):
            tombstone = decisions.delete_session(owner, session_id, reason=reason, actor=actor)
        return Response({"session_id": session_id, "tombstone_id": tombstone.tombstone_id, "status": "deleted"})

    @conditional
    @extend_schema(exclude=True)
    def destroy_with_restore_suffix(self, request: Request, session_id: str) -> Response:
        """Delete a session whose id ends like the address that restores sessions."""
        return self.destroy(request, f"{session_id}/restore")

    @extend_schema(
        operation_id="restore_session",
        summary="Restore a session",
        parameters=[_SESSION_ID],
        request=request_body(schemas.SessionRestoreBody),
        responses={
            200: success(schemas.SessionDecided, "The deletion that was undone.", status="restored"),
            **problems(404, 409, 412, 422),
        },
    )
    @idempotent(in_transaction=True)
    @conditional
    def restore(self, request: Request, session_id: str) -> Response:
        """Restore a session from the trash. Memories that were deleted one by one stay there.

        One that has expired needs a new `expires_at`, or null.
        """
        body = parse(schemas.SessionRestoreBody, request.data)
        principal = caller(request)
        owner = owner_of(principal, body.app_id, body.project_id)
        require_visible(principal, owner, session_id)
        with if_unchanged(request, partial(_session, owner, session_id, is_locked=True)):
            expires_at, actor = given_expiry(body, principal.user_pk), Actor.key(principal)
            tombstone = decisions.restore_session(owner, session_id, expires_at=expires_at, actor=actor)
        return Response({"session_id": session_id, "tombstone_id": tombstone.tombstone_id, "status": "restored"})


def _memory(
    user_pk: UUID, ref: MemoryRef, *, find: Callable[[UUID, MemoryRef], StoredMemory] = lookup.get_memory
) -> dict[str, Any]:
    """Return a memory with its history. Raises: the errors of `find`."""
    stored = find(user_pk, ref)
    overrides = queries.override_ids(stored.owner, [stored.memory_id])
    events = [*queries.history(stored.owner, stored.memory_id), *queries.superseded(stored)]
    return {
        "memory": rendering.memory(stored, overrides),
        "history": [rendering.event(event) for event in events],
    }


def _memory_at(user_pk: UUID, ref: MemoryRef, at: datetime) -> dict[str, Any]:
    """Return a memory as it was at a time. Raises: as `_memory`, and `NotFound` if it was not current then."""
    stored = lookup.memory_at(lookup.get_shown(user_pk, ref), at)
    return {**_stored(stored.owner, stored), "history": []}


def _session(owner: Owner, session_id: str, *, is_locked: bool = False) -> dict[str, Any]:
    """Return a session. Raises: `NotFound`."""
    lookup.require_own_session(owner, session_id)
    found = queries.session(owner, session_id, is_locked=is_locked)
    state = remote.states_of([found])[found.pk]
    return rendering.session(found, queries.counts([found]).get(found.pk, {}), state)
