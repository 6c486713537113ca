from django.contrib import admin

from accounts.admin_base import PersonalAdmin, ReadOnlyAdmin
from memories.models import LoggedSearch, Override, OverrideRevision, ReturnedMemory, SearchCount, Tombstone


@admin.register(Tombstone)
class TombstoneAdmin(PersonalAdmin):
    list_display = (
        "tombstone_id",
        "user",
        "kind",
        "memory_id",
        "session_id",
        "resource_id",
        "actor_kind",
        "created_at",
        "undone_at",
    )
    list_filter = ("kind", "actor_kind", ("undone_at", admin.EmptyFieldListFilter), "created_at")
    search_fields = ("user__user_id__exact", "tombstone_id__exact", "memory_id__exact", "session_id__exact")


@admin.register(Override)
class OverrideAdmin(PersonalAdmin):
    """The list shows no text. Operators read it on the page of each override."""

    list_display = ("override_id", "user", "memory_id", "session_id", "actor_kind", "updated_at", "undone_at")
    list_filter = ("actor_kind", ("undone_at", admin.EmptyFieldListFilter), "updated_at")
    search_fields = ("user__user_id__exact", "override_id__exact", "memory_id__exact", "session_id__exact")


@admin.register(OverrideRevision)
class OverrideRevisionAdmin(PersonalAdmin):
    list_display = ("override", "number", "category", "importance", "actor_kind", "created_at")
    list_filter = ("actor_kind", "created_at")
    list_select_related = ("override__user",)
    search_fields = ("override__user__user_id__exact", "override__override_id__exact", "override__memory_id__exact")


@admin.register(LoggedSearch)
class LoggedSearchAdmin(PersonalAdmin):
    """Without the words: they need the permission to read memories, which the panel's page asks for."""

    list_display = ("id", "user", "at", "interface", "agent_id", "method", "hits", "ms")
    list_filter = ("interface", "at")
    list_select_related = ("user",)
    search_fields = ("user__user_id__exact", "agent_id__exact", "request_id__exact")
    exclude = ("query",)


@admin.register(ReturnedMemory)
class ReturnedMemoryAdmin(PersonalAdmin):
    list_display = ("search", "rank", "row", "version")
    list_filter = ("search__interface", "search__at")
    list_select_related = ("search__user",)
    search_fields = ("search__user__user_id__exact", "row__exact")


@admin.register(SearchCount)
class SearchCountAdmin(ReadOnlyAdmin):
    list_display = ("hour", "duration", "searches", "without_hits")
    list_filter = ("duration",)
    search_fields = ("hour__exact",)
