from __future__ import annotations

from django.contrib import admin

from accounts.admin_base import PersonalAdmin
from profiles.models import ProfileMemory, ProfileRevision


@admin.register(ProfileMemory)
class ProfileMemoryAdmin(PersonalAdmin):
    list_display = ("id", "owner", "memory_type", "status", "version", "updated_at")
    list_filter = ("memory_type", "status", "updated_at")
    list_select_related = ("owner",)
    search_fields = ("owner__user_id__exact",)


@admin.register(ProfileRevision)
class ProfileRevisionAdmin(PersonalAdmin):
    list_display = ("id", "owner", "memory_type", "version", "action", "actor_kind", "created_at")
    list_filter = ("action", "actor_kind", "created_at")
    list_select_related = ("profile__owner",)
    search_fields = ("profile__owner__user_id__exact",)

    @admin.display(description="owner")
    def owner(self, row: ProfileRevision) -> str:
        return row.profile.owner.user_id

    @admin.display(description="memory type")
    def memory_type(self, row: ProfileRevision) -> str:
        return row.profile.memory_type
