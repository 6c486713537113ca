from __future__ import annotations

import uuid

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from accounts.models import MemoryUser
from core.ids import new_resource_id, resource_uri
from store.types import Owner


class Resource(models.Model):
    """A file that a user uploaded, or registered where it lies elsewhere.

    `pending → ingesting → extracted | empty | failed`, then `deleted` for good. A retried failure has `retry_at`
    and `first_failed_at`. While a worker holds it, `lease_holder` and `leased_until` say which and for how long.
    """

    class Status(models.TextChoices):
        PENDING = "pending", _("Pending")
        INGESTING = "ingesting", _("Ingesting")
        EXTRACTED = "extracted", _("Extracted")
        EMPTY = "empty", _("Empty")
        FAILED = "failed", _("Failed")
        DELETED = "deleted", _("Deleted")

    class Origin(models.TextChoices):
        UPLOAD = "upload", _("Upload")
        EXTERNAL = "external", _("External")

    resource_id = models.CharField(
        _("resource id"), primary_key=True, max_length=40, default=new_resource_id, editable=False
    )
    user = models.ForeignKey(MemoryUser, models.CASCADE, verbose_name=_("user"), related_name="resources")
    app_id = models.CharField(_("app id"), max_length=64, default="default")
    project_id = models.CharField(_("project id"), max_length=64, default="default")
    session_id = models.CharField(_("session id"), max_length=128)
    origin = models.CharField(_("origin"), max_length=8, choices=Origin, default=Origin.UPLOAD)
    filename = models.CharField(_("filename"), max_length=255)
    title = models.CharField(_("title"), max_length=500, null=True, blank=True)  # noqa: DJ001  null is what the contract answers
    description = models.TextField(_("description"), null=True, blank=True)  # noqa: DJ001
    content_type = models.CharField(_("content type"), max_length=8)
    mime_type = models.CharField(_("mime type"), max_length=127, null=True, blank=True)  # noqa: DJ001
    size_bytes = models.BigIntegerField(_("size bytes"), null=True, blank=True)
    sha256 = models.CharField(_("sha256"), max_length=64, blank=True)
    storage_path = models.CharField(
        _("storage path"), max_length=255, blank=True, help_text=_("Below the storage folder; uploads only.")
    )
    source_uri = models.CharField(
        _("source uri"), max_length=2048, blank=True, help_text=_("Where a registered file lies.")
    )
    status = models.CharField(_("status"), max_length=10, choices=Status, default=Status.PENDING)
    error_message = models.TextField(_("error message"), blank=True)
    attempts = models.IntegerField(_("attempts"), default=0)
    retry_at = models.DateTimeField(_("retry at"), null=True, blank=True)
    first_failed_at = models.DateTimeField(
        _("first failed at"), null=True, blank=True, help_text=_("Retried for seven days from here.")
    )
    lease_holder = models.CharField(_("lease holder"), max_length=128, blank=True)
    leased_until = models.DateTimeField(_("leased until"), null=True, blank=True)
    flush_sent_at = models.DateTimeField(
        _("flush sent at"), null=True, blank=True, help_text=_("After this, never sent again.")
    )
    searchable_at = models.DateTimeField(_("searchable at"), null=True, blank=True)
    created_at = models.DateTimeField(_("created at"), auto_now_add=True)
    updated_at = models.DateTimeField(_("updated at"), auto_now=True)
    deleted_at = models.DateTimeField(_("deleted at"), null=True, blank=True)
    cleanup_owed = models.BooleanField(
        _("cleanup owed"),
        default=False,
        help_text=_("Deleted, but its file or what the engine keeps of it is not gone yet."),
    )

    class Meta:
        verbose_name = _("resource")
        verbose_name_plural = _("resources")
        ordering = ("-created_at", "-resource_id")
        constraints = [
            # One live upload per content; what a caller merely claims about an external file never shadows an upload.
            models.UniqueConstraint(
                fields=["user", "app_id", "project_id", "origin", "sha256"],
                condition=Q(deleted_at__isnull=True) & ~Q(sha256=""),
                name="one_live_resource_per_content",
            )
        ]
        indexes = [
            models.Index(fields=["user", "created_at", "resource_id"], name="resource_of_user"),
            models.Index(fields=["user", "app_id", "project_id", "status"], name="resource_in_scope"),
            models.Index(
                fields=["status", "retry_at"],
                condition=Q(status__in=["pending", "ingesting", "failed"]),
                name="resource_owed",
            ),
            models.Index(fields=["deleted_at"], condition=Q(cleanup_owed=True), name="resource_cleanup_owed"),
            # What operators see: the newest of all users, and what waits for a person, counted on every page.
            models.Index(fields=["created_at", "resource_id"], name="resource_by_time"),
            models.Index(
                fields=["updated_at"],
                condition=Q(status="failed", retry_at__isnull=True, deleted_at__isnull=True),
                name="resource_waiting",
            ),
        ]

    def __str__(self) -> str:
        return self.filename

    @property
    def uri(self) -> str:
        """The public address; needs `user` loaded."""
        return resource_uri(self.user.user_id, self.resource_id)

    @property
    def owner(self) -> Owner:
        """Whose it is, in the engine's terms; needs `user` loaded."""
        return Owner(self.user.pk, self.user.user_id, self.app_id, self.project_id)


class Attachment(models.Model):
    """A file name tied to a session, with the address where the file really lies."""

    class Source(models.TextChoices):
        UPLOAD = "upload", _("Upload")
        EXTERNAL_RESOURCE = "external_resource", _("External Resource")
        MEMORY_ADD = "memory_add", _("Memory Add")

    user = models.ForeignKey(
        MemoryUser, models.CASCADE, verbose_name=_("user"), related_name="attachments", db_index=False
    )
    app_id = models.CharField(_("app id"), max_length=64, default="default")
    project_id = models.CharField(_("project id"), max_length=64, default="default")
    session_id = models.CharField(_("session id"), max_length=128)
    resource = models.ForeignKey(
        Resource, models.CASCADE, verbose_name=_("resource"), null=True, blank=True, related_name="attachments"
    )
    source = models.CharField(_("source"), max_length=20, choices=Source)
    type = models.CharField(_("type"), max_length=8)
    name = models.CharField(_("name"), max_length=255)
    internal_uri = models.CharField(_("internal uri"), max_length=2048)
    sha256 = models.CharField(_("sha256"), max_length=64, blank=True)
    created_at = models.DateTimeField(_("created at"), auto_now_add=True)

    class Meta:
        verbose_name = _("attachment")
        verbose_name_plural = _("attachments")
        ordering = ("-id",)
        constraints = [
            models.UniqueConstraint(
                fields=["user", "app_id", "project_id", "session_id", "name", "internal_uri"], name="attachment_once"
            )
        ]

    def __str__(self) -> str:
        return self.name


class StorageIdentity(models.Model):
    """The id that ties this database to its storage folder: one row, and the same id in the folder's `storage_id`."""

    id = models.PositiveSmallIntegerField(_("id"), primary_key=True, default=1, editable=False)
    uuid = models.UUIDField(_("uuid"), default=uuid.uuid4, editable=False)
    bound_at = models.DateTimeField(_("bound at"), auto_now=True)

    class Meta:
        verbose_name = _("storage identity")
        verbose_name_plural = _("storage identities")
        default_permissions = ("view",)
        constraints = [models.CheckConstraint(condition=Q(id=1), name="one_storage_identity")]

    def __str__(self) -> str:
        return str(self.uuid)
