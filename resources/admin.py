from django.contrib import admin

from accounts.admin_base import PersonalAdmin, ReadOnlyAdmin
from resources.models import Attachment, RefusedUpload, Resource, StorageIdentity


@admin.register(Resource)
class ResourceAdmin(PersonalAdmin):
    list_display = (
        "resource_id", "filename", "user", "status", "state", "origin", "content_type", "size_bytes", "created_at",
    )  # fmt: skip
    list_filter = ("status", "state", "origin", "content_type", "created_at")
    list_select_related = ("user",)
    search_fields = ("user__user_id__exact", "resource_id__exact", "sha256__exact")


@admin.register(Attachment)
class AttachmentAdmin(PersonalAdmin):
    list_display = ("name", "type", "user", "session_id", "resource", "source", "created_at")
    list_filter = ("source", "type", "created_at")
    list_select_related = ("user", "resource")
    search_fields = ("user__user_id__exact", "session_id__exact", "sha256__exact")


@admin.register(RefusedUpload)
class RefusedUploadAdmin(PersonalAdmin):
    list_display = ("filename", "user", "size_bytes", "status", "at")
    list_filter = ("status", "at")
    list_select_related = ("user",)
    search_fields = ("user__user_id__exact",)


@admin.register(StorageIdentity)
class StorageIdentityAdmin(ReadOnlyAdmin):
    list_display = ("uuid", "bound_at")
    list_filter = ("bound_at",)
    search_fields = ("uuid__exact",)
