"""Replace the tags and metadata of a resource, and those of its memories, which filters compare."""

from collections.abc import Mapping
from typing import Any, Final
from uuid import UUID

from django.db import transaction

from accounts.audit import Actor, record
from accounts.services import lock_caller
from core.errors import Conflict, existing
from core.messages import Translatable as _
from resources import queries
from resources.models import Resource
from resources.services.uploading import stored_labels
from store import writes
from store.models import Memory, State, owned_by
from store.types import METADATA, TAGS

_AT_ONCE: Final = 500


def set_labels(user_pk: UUID, user_id: str, resource_id: str, labels: Mapping[str, Any], *, actor: Actor) -> Resource:
    """Replace the tags or the metadata of a resource, by their names; empty ones are removed.

    Raises: `NotFound`, `Conflict` during its ingestion, which reads them, `Unauthenticated` for a user who was erased.
    """
    with transaction.atomic():
        lock_caller(user_pk, user_id, no_key=True)
        found = queries.live_resource(user_pk, resource_id).select_for_update(of=("self",))
        resource = existing(found, _("There is no such resource."))
        if resource.is_pending:
            raise Conflict(_("The file is being read. Repeat the request when its status is no longer ingesting."))
        former, resource.labels = resource.labels, stored_labels({**(resource.labels or {}), **labels})
        if resource.labels == former:
            return resource
        resource.save(update_fields=["labels", "updated_at"])
        _label_memories(resource)
        detail = {"fields": sorted(labels)}
        record(actor, "resource.label", resource_id, user_id=user_id, detail=detail)
    return resource


def _label_memories(resource: Resource) -> None:
    labels = resource.labels or {}
    of_file = Memory.objects.filter(owned_by(resource.owner), session__session_id=resource.session_id)
    memories = of_file.exclude(state=State.PURGED).select_for_update(of=("self",)).order_by("pk")
    last = 0
    while batch := list(memories.filter(pk__gt=last)[:_AT_ONCE]):
        for memory in batch:
            others = {name: value for name, value in memory.payload.items() if name not in {TAGS, METADATA}}
            memory.payload = others | labels
        writes.save(resource.owner, batch, ["payload"])
        last = batch[-1].pk
