from django.contrib import admin

from accounts.admin_base import PersonalAdmin
from remote.models import OutboxEntry, Resend


@admin.register(OutboxEntry)
class OutboxEntryAdmin(PersonalAdmin):
    """Omit texts from the list. Each message's own page shows its text, and that view is audited."""

    list_display = ("message_id", "user", "session", "state", "cause", "recorded_at", "base_url")
    list_filter = ("state", "base_url")
    list_select_related = ("user", "session")
    search_fields = ("user__user_id__exact", "message_id__exact", "session__session_id__exact")


@admin.register(Resend)
class ResendAdmin(PersonalAdmin):
    list_display = ("session", "user", "base_url", "began_at", "ended_at")
    list_filter = ("base_url",)
    list_select_related = ("user", "session")
    search_fields = ("user__user_id__exact", "session__session_id__exact")
