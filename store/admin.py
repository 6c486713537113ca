from collections.abc import Sequence

from django.contrib import admin
from django.utils.translation import gettext_lazy as _

from accounts.admin_base import PersonalAdmin, ReadOnlyAdmin, users_named
from accounts.models import MemoryUser
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


@admin.register(Session)
class SessionAdmin(PersonalAdmin):
    list_display = ("session_id", "user", "app_id", "project_id", "kind", "created_at", "flushed_at", "state")
    list_filter = ("kind", "state", ("flushed_at", admin.EmptyFieldListFilter))
    search_fields = ("user__user_id__exact", "session_id__exact", "engine_session_id__exact")


@admin.register(Memory)
class MemoryAdmin(PersonalAdmin):
    """Omit texts from the list. Each memory's own page shows its text, and that view is audited."""

    list_display = ("memory_id", "user", "session", "memory_type", "category", "origin", "is_indexed", "state")
    list_filter = ("memory_type", "origin", "is_indexed", "state")
    list_select_related = ("user", "session")
    search_fields = ("user__user_id__exact", "memory_id__exact", "session__session_id__exact")


@admin.register(Attribute)
class AttributeAdmin(ReadOnlyAdmin):
    """Omit the values from the list."""

    list_display = ("memory", "name")
    list_filter = ("memory__memory_type",)
    search_fields = ("memory__memory_id__exact", "name__exact")


class _ScopedAdmin(ReadOnlyAdmin):
    search_fields = ("user__user_id__exact", "app_id__exact", "project_id__exact")
    search_help_text = _("Exact user ID, app ID or project ID.")


@admin.register(IndexStatistics)
class IndexStatisticsAdmin(_ScopedAdmin):
    list_display = ("user", "app_id", "project_id", "documents", "tokens")
    list_filter = ("app_id",)


@admin.register(ExternalId)
class ExternalIdAdmin(_ScopedAdmin):
    list_display = ("user", "app_id", "project_id", "application", "memory_id", "created_at")
    list_filter = ("app_id",)


@admin.register(FactPage)
class FactPageAdmin(_ScopedAdmin):
    """Show the owner of a page only: its facts are packed numbers."""

    exclude = ("names",)
    list_display = ("user", "app_id", "project_id", "number")
    list_filter = ("app_id",)


@admin.register(VectorPage)
class VectorPageAdmin(_ScopedAdmin):
    list_display = ("user", "app_id", "project_id", "space", "number")
    list_filter = ("space", "app_id")


@admin.register(EmbeddingSpace)
class EmbeddingSpaceAdmin(ReadOnlyAdmin):
    list_display = ("model", "dimensions", "is_active", "knows_other_scripts", "last_error", "failed_at", "created_at")
    list_filter = ("is_active",)
    search_fields = ("model__exact",)


@admin.register(Embedding)
class EmbeddingAdmin(ReadOnlyAdmin):
    list_display = ("memory", "space")
    list_filter = ("space",)
    search_fields = ("memory__memory_id__exact",)


@admin.register(TokenVectors)
class TokenVectorsAdmin(ReadOnlyAdmin):
    list_display = ("memory", "space")
    list_filter = ("space",)
    search_fields = ("memory__memory_id__exact",)


@admin.register(PendingEmbedding)
class PendingEmbeddingAdmin(ReadOnlyAdmin):
    list_display = ("memory",)
    list_filter = ("memory__memory_type",)
    search_fields = ("memory__memory_id__exact",)


@admin.register(PendingExtraction)
class PendingExtractionAdmin(ReadOnlyAdmin):
    list_display = ("user", "session", "created_at", "attempts", "retry_at", "given_up_at", "last_error")
    list_filter = (("given_up_at", admin.EmptyFieldListFilter),)
    list_select_related = ("user", "session")
    search_fields = ("user__user_id__exact", "session__session_id__exact")
    search_help_text = _("Exact user ID or session ID.")


@admin.register(PendingMedia)
class PendingMediaAdmin(ReadOnlyAdmin):
    list_display = ("memory", "kind", "created_at", "attempts", "retry_at", "given_up_at", "last_error")
    list_filter = ("kind", ("given_up_at", admin.EmptyFieldListFilter))
    list_select_related = ("memory",)
    search_fields = ("memory__memory_id__exact",)


@admin.register(DayCount)
class DayCountAdmin(ReadOnlyAdmin):
    list_display = ("owner", "day", "agent_id", "category", "origin", "memories")
    list_filter = ("origin",)
    search_fields = ("owner__exact", "agent_id__exact", "category__exact")

    def users_of(self, rows: Sequence[DayCount]) -> set[str]:
        return users_named(row.owner for row in rows)


@admin.register(SessionCount)
class SessionCountAdmin(ReadOnlyAdmin):
    list_display = ("session_row", "of_agent", "agent_id", "memories")
    list_filter = ("of_agent",)
    search_fields = ("agent_id__exact", "session_row__exact")

    def users_of(self, rows: Sequence[SessionCount]) -> set[str]:
        of_rows = MemoryUser.objects.filter(sessions__in={row.session_row for row in rows})
        return set(of_rows.values_list("user_id", flat=True))


@admin.register(Residue)
class ResidueAdmin(ReadOnlyAdmin):
    list_display = ("digest", "noted_at")
    list_filter = ("noted_at",)
    search_fields = ("digest__exact",)


@admin.register(PendingDeletion)
class PendingDeletionAdmin(ReadOnlyAdmin):
    list_display = ("owner_id", "app_id", "project_id", "engine_session_id", "memory_id", "attempts", "retry_at")
    list_filter = ("is_agent", ("accepted_at", admin.EmptyFieldListFilter))
    search_fields = ("owner_id__exact", "engine_session_id__exact", "memory_id__exact")

    def users_of(self, rows: Sequence[PendingDeletion]) -> set[str]:
        return users_named([*(row.owner_id for row in rows if not row.is_agent), *(str(row.user_key) for row in rows)])
