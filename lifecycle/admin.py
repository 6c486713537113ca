from __future__ import annotations

from django.contrib import admin

from accounts.admin_base import ReadOnlyAdmin
from lifecycle.models import Lease


@admin.register(Lease)
class LeaseAdmin(ReadOnlyAdmin):
    list_display = ("name", "holder", "expires_at")
    list_filter = ("expires_at",)
    search_fields = ("name__startswith", "holder__startswith")
