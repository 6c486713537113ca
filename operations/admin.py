from collections.abc import Iterator
from typing import Any

from django.contrib import admin

from accounts.admin_base import PersonalAdmin, ReadOnlyAdmin, users_named
from operations.models import Job, JobStep, Lease, UnmatchedDecision


@admin.register(Lease)
class LeaseAdmin(ReadOnlyAdmin):
    list_display = ("name", "due_at", "lease_holder", "leased_until")
    list_filter = ("leased_until",)
    search_fields = ("name__startswith", "lease_holder__startswith")


@admin.register(Job)
class JobAdmin(ReadOnlyAdmin):
    list_display = ("kind", "actor_kind", "actor", "status", "done", "total", "created_at", "finished_at", "undone_at")
    list_filter = ("kind", "status", ("undone_at", admin.EmptyFieldListFilter))
    search_fields = ("id", "kind__startswith", "actor__exact")

    def users_of_row(self, row: Job) -> set[str]:
        return users_named(_texts([row.params, row.result]))


@admin.register(JobStep)
class JobStepAdmin(ReadOnlyAdmin):
    list_display = ("job", "number")
    list_filter = ("job__kind",)
    search_fields = ("job__kind__startswith", "job__id")

    def users_of_row(self, row: JobStep) -> set[str]:
        return users_named(_texts(row.changes))


@admin.register(UnmatchedDecision)
class UnmatchedDecisionAdmin(PersonalAdmin):
    list_display = ("user", "session_id", "memory_id", "tombstone_id", "override_id", "job")
    list_filter = ("job__created_at",)
    search_fields = ("user__user_id__exact", "session_id__exact", "memory_id__exact")


def _texts(value: Any) -> Iterator[str]:
    """Yield the texts of JSON data, which may name users."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _texts(item)
