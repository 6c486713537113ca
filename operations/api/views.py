from collections.abc import Sequence
from typing import Any
from uuid import UUID

from django.http import StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.utils import translation
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiExample, OpenApiResponse, extend_schema
from rest_framework.permissions import IsAuthenticated
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView
from rest_framework.viewsets import ViewSet

from accounts.api.authentication import UserKeyAuthentication, bearer, caller, is_provisioning_token
from accounts.api.idempotency import idempotent
from accounts.api.openapi import (
    BearerScheme,
    path_parameter,
    problems,
    query_parameters,
    request_body,
    success,
)
from accounts.api.schemas import AuthenticatedQuery, UserId
from accounts.api.views import UserViewSet
from accounts.audit import Actor, record
from accounts.models import MemoryUser, Principal
from accounts.scopes import DECIDE, SEARCH, require
from core import pagination
from core.errors import InvalidInput, NotFound
from core.ids import user_id_form
from core.localization import language_headers, language_of
from core.messages import Translatable as _
from core.persistence import replica
from core.readable import moment
from core.rest import parse, parse_query
from core.times import isoformat
from memories.services.excerpts import MAX_CHARS
from memories.services.lookup import owner_of
from operations import erase, filtered_deletion, person_audit, person_export
from operations.api.schemas import (
    AuditPage,
    AuditQuery,
    DeletionId,
    ErasureQuery,
    ErasureReceipt,
    FilteredDeletion,
    FilteredDeletionBody,
    ForgetBody,
    NamedErasureQuery,
    PreviewedBody,
    UndoneDeletionBody,
)
from operations.filtered_deletion import PREVIEWED, Chosen
from operations.models import Job
from operations.person_export import Words
from store.types import StoredMemory

_EXPORT_HEADERS = {"X-Content-Type-Options": "nosniff", "Cache-Control": "private, no-store"}
_DELETION_ID = path_parameter("deletion_id", DeletionId)
_DRY_RUN: dict[str, Any] = {
    "deletion_id": None,
    "status": "dry_run",
    "count": 0,
    "deleted": 0,
    "by_category": {},
    "memories": [],
}


class Provisioner:
    """The bearer of the provisioning token."""

    is_authenticated = True


class KeyOrProvisioning(UserKeyAuthentication):
    """Authenticates by the user's own API key or the provisioning token. Raises: the errors of the key."""

    def authenticate(self, request: Request) -> tuple[Any, None] | None:
        return (Provisioner(), None) if is_provisioning_token(bearer(request)) else super().authenticate(request)


class KeyOrProvisioningScheme(BearerScheme):  # type: ignore[no-untyped-call]
    target_class = "operations.api.views.KeyOrProvisioning"
    name = "keyOrProvisioningAuth"
    description = "The user's own API key `uk_…`, or the provisioning token."


class UsersViewSet(UserViewSet):
    def get_authenticators(self) -> list[Any]:
        return [KeyOrProvisioning()] if self._erases else super().get_authenticators()

    def get_permissions(self) -> Sequence[Any]:
        return [IsAuthenticated()] if self._erases else super().get_permissions()

    @property
    def _erases(self) -> bool:
        return self.request is not None and self.request.method == "DELETE"

    @extend_schema(
        operation_id="erase_user_by_id",
        tags=["users"],
        summary="Erase a user by an id of any form",
        parameters=query_parameters(NamedErasureQuery),
        responses={200: success(ErasureReceipt, "The receipt of the erasure."), **problems(404, 422)},
    )
    def erase(self, request: Request) -> Response:
        """Erase the user that the query names, also by an id with a slash: else as `DELETE /users/{user_id}`."""
        query = parse_query(NamedErasureQuery, request)
        return _erase(request, query.user_id, query.confirm)


@extend_schema(tags=["memories"])
class FilteredDeletionViewSet(ViewSet):
    scopes = dict.fromkeys(("delete", "forget", "retrieve", "undo"), DECIDE)

    @extend_schema(
        operation_id="delete_memories",
        summary="Delete memories by a filter",
        request=request_body(FilteredDeletionBody, dry_run=True),
        responses={
            200: success(FilteredDeletion, "The dry run or the deletion.", **_DRY_RUN),
            **problems(409, 422),
        },
    )
    @idempotent()
    def delete(self, request: Request) -> Response:
        """Move all memories of a scope that meet conditions to the trash, with one undo.

        First send the request with `dry_run`, then with the count that it returned. The key needs the scope `search`
        too.
        """
        body = parse(FilteredDeletionBody, request.data)
        return _delete(request, body, filters=body.filters)

    @extend_schema(
        operation_id="forget_memories",
        summary="Delete memories by words",
        request=request_body(ForgetBody, dry_run=True),
        responses={
            200: success(FilteredDeletion, "The dry run or the deletion.", **_DRY_RUN),
            **problems(409, 422),
        },
    )
    @idempotent()
    def forget(self, request: Request) -> Response:
        """Move all memories of a scope that have all of some words to the trash, with their copies and one undo.

        First send the request with `dry_run`, which returns what would be deleted, then with the count that it
        returned. The key needs the scope `search` too.
        """
        body = parse(ForgetBody, request.data)
        return _delete(request, body, words=body.words)

    @extend_schema(
        operation_id="get_deletion",
        summary="Get a deletion by a filter",
        parameters=[_DELETION_ID, *query_parameters(AuthenticatedQuery)],
        responses={200: success(FilteredDeletion, "The deletion."), **problems(404, 422)},
    )
    def retrieve(self, request: Request, deletion_id: UUID) -> Response:
        """Get the state of a deletion that a worker carries out or undoes. It is kept for 30 days."""
        parse_query(AuthenticatedQuery, request)
        return Response(_deletion(filtered_deletion.get(caller(request), deletion_id)))

    @extend_schema(
        operation_id="undo_deletion",
        summary="Undo a deletion by a filter",
        parameters=[_DELETION_ID],
        request=request_body(UndoneDeletionBody),
        responses={200: success(FilteredDeletion, "The deletion.", status="undone"), **problems(404, 409, 422)},
    )
    @idempotent()
    def undo(self, request: Request, deletion_id: UUID) -> Response:
        """Restore what the deletion moved to the trash and what is still there."""
        parse(UndoneDeletionBody, request.data)
        principal = caller(request)
        job = filtered_deletion.get(principal, deletion_id)
        return Response(_deletion(filtered_deletion.undo(job, actor=Actor.key(principal))))


def _delete(request: Request, body: PreviewedBody, **choice: Any) -> Response:
    """Answer the dry run or the deletion of what a filter or words choose."""
    principal = caller(request)
    require(principal.scopes, SEARCH)  # the answer tells what is stored
    owner = owner_of(principal, body.app_id, body.project_id)
    chosen, actor = Chosen(owner, reader=principal.agent_id, **choice), Actor.key(principal)
    if body.dry_run:
        counts = filtered_deletion.preview(chosen, actor=actor)
        dry_run = {"deletion_id": None, "status": "dry_run", "count": sum(counts.values()), "deleted": 0}
        memories = [_previewed(*copies) for copies in chosen.newest(PREVIEWED)]
        return Response({**dry_run, "by_category": counts, "memories": memories})
    if body.expected_count is None:
        raise InvalidInput.of_field("expected_count", _("is required: send the count of a dry run"))
    job = filtered_deletion.delete(chosen, expected_count=body.expected_count, reason=body.reason or "", actor=actor)
    return Response(_deletion(job))


def _previewed(memory: StoredMemory, *copies: StoredMemory) -> dict[str, Any]:
    return {
        "id": memory.memory_id,
        "session_id": memory.session_id,
        "text": memory.text[:MAX_CHARS],
        "category": memory.category,
        "created_at": isoformat(moment(memory.created_at_ms)),
        "copies": [one.memory_id for one in copies],
    }


def _deletion(job: Job) -> dict[str, Any]:
    undoing = filtered_deletion.undoing(job)
    status = {Job.Status.DONE: "deleted", Job.Status.FAILED: "failed", Job.Status.STOPPED: "failed"}.get(
        Job.Status(job.status), "running"
    )
    if undoing is not None:
        status = "undone" if undoing.status == Job.Status.DONE else "undoing"
    deleted = job.cursor.get("changed", 0)
    return {"deletion_id": str(job.pk), "status": status, "count": job.total, "deleted": deleted}


@extend_schema(tags=["users"])
class PersonViewSet(ViewSet):
    """Everything that is stored about a user, and what was done with it. Needs a key without limits."""

    @extend_schema(
        operation_id="export_user",
        summary="Export all data of the user",
        parameters=query_parameters(AuthenticatedQuery),
        responses={
            (200, "application/zip"): OpenApiResponse(
                OpenApiTypes.BINARY, "The archive.", [OpenApiExample("Example", "PK")]
            ),
            **problems(422),
        },
    )
    def export(self, request: Request) -> HttpResponseBase:
        """Export memories, profiles and files as a ZIP archive: a page to read, JSON lines, and files by their names.

        Deleted and expired memories are in it until they are purged.
        """
        parse_query(AuthenticatedQuery, request)
        principal = caller(request)
        user = MemoryUser.objects.get(pk=principal.user_pk)
        record(Actor.key(principal), "user.export", user.user_id, user_id=user.user_id)
        language = language_of(request)
        with translation.override(language):
            words = Words.now(user.user_id)
        headers = {"Content-Disposition": 'attachment; filename="memories.zip"', **_EXPORT_HEADERS}
        parts = replica.stream(replica.user_of(user.pk), person_export.export(user, words))
        headers |= language_headers(language)
        return StreamingHttpResponse(parts, content_type="application/zip", headers=headers)

    @extend_schema(
        operation_id="list_audit_events",
        summary="List audit events",
        parameters=query_parameters(AuditQuery),
        responses={
            200: success(AuditPage, "A page of events, newest first.", next_cursor=None),
            **problems(422),
        },
    )
    def audit(self, request: Request) -> Response:
        """List who read or changed the user's data, and when. Operators are named by role and number."""
        query = parse_query(AuditQuery, request)
        principal = caller(request)
        position = pagination.decode_numbers(query.cursor)[0] if query.cursor is not None else None
        events, following = person_audit.events(principal.user_id, after=position, limit=query.limit)
        cursor = None if following is None else pagination.encode(following, 0)
        return Response({"events": events, "next_cursor": cursor})


class UserErasureView(APIView):
    authentication_classes = [KeyOrProvisioning]

    @extend_schema(
        operation_id="erase_user",
        tags=["users"],
        summary="Erase a user",
        parameters=[path_parameter("user_id", UserId), *query_parameters(ErasureQuery)],
        responses={200: success(ErasureReceipt, "The receipt of the erasure."), **problems(404, 422)},
    )
    def delete(self, request: Request, user_id: str) -> Response:
        """Erase a user with all rows, files, keys and audit entries. It cannot be undone.

        Send the user's own API key or the provisioning token.
        """
        return _erase(request, user_id, parse_query(ErasureQuery, request).confirm)


def _erase(request: Request, user_id: str, confirm: str) -> Response:
    """Erase a user, and return the receipt. Raises: `NotFound`, `InvalidInput` without the confirmation."""
    user_id = user_id_form(user_id)
    who: Principal | Provisioner = request.user  # type: ignore[assignment]
    if isinstance(who, Principal):
        if who.user_id != user_id:
            raise NotFound(_("There is no such user."))
        user_pk, actor = who.user_pk, Actor.key(who)
    else:
        user_pk, actor = erase.find(user_id), Actor.provisioning()
    if user_id_form(confirm) != f"erase:{user_id}":
        raise InvalidInput.of_field(
            "confirm", _("must be erase:%(user_id)s, because an erasure cannot be undone", user_id=user_id)
        )
    return Response(erase.erase(user_pk, actor=actor))
