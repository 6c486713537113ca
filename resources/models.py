from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any, Final

import pydantic
from django.core.exceptions import ValidationError
from django.db import models
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from pydantic import TypeAdapter

from accounts.models import MemoryUser
from core.background.leases import Leased
from core.ids import new_resource_id, resource_uri
from core.labels import check_metadata, check_tags
from core.localization import MessageField
from core.persistence.checked_rows import CheckedModel
from core.persistence.file_keys import FileKey, file_key
from documents.reading import Reading, sentence
from store.models import State, state_field, state_since_field
from store.types import METADATA, TAGS, Owner, labels_of

DELETED: Final = "deleted"
"""The status in answers of a resource that is not live."""


def check_reading(value: Any) -> None:
    """Check the form of a stored reading, which an archive may bring. Raises: `ValidationError`."""
    try:
        stored = TypeAdapter(Reading).validate_python(value)
    except pydantic.ValidationError as error:
        raise ValidationError(_("must be what was read of a file")) from error
    if stored.as_json() != value or not 0 <= (stored.certainty or 0) <= 1:
        raise ValidationError(_("must be what was read of a file"))


def check_labels(value: Any) -> None:
    """Check stored tags and metadata, which an archive may bring. Raises: `ValidationError`."""
    checks: dict[str, Callable[[Any], Any]] = {TAGS: check_tags, METADATA: check_metadata}
    try:
        if labels_of(value) != value or any(checks[name](one) != one for name, one in value.items()):
            raise ValidationError(_("must be tags and metadata"))
    except (ValueError, KeyError, AttributeError, TypeError) as error:
        raise ValidationError(_("must be tags and metadata")) from error


class Resource(CheckedModel, Leased):
    """A file that a user uploaded, or registered by its external address.

    `status` is that of its ingestion: `pending → ingesting → extracted | empty | failed`. A failure that is retried has
    `retry_at` and `first_failed_at`. A worker holds the lease of a resource while it ingests it. `state` says whether
    the resource is deleted; only live ones are ingested. While a purged one has `retry_at`, its file or engine data is
    still to be removed.
    """

    class Status(models.TextChoices):
        PENDING = "pending", _("Pending")
        INGESTING = "ingesting", _("Ingesting")
        EXTRACTED = "extracted", _("Extracted")
        EMPTY = "empty", _("Empty")
        FAILED = "failed", _("Failed")

    class Origin(models.TextChoices):
        UPLOAD = "upload", _("Upload")
        EXTERNAL = "external", _("External")

    resource_id = models.CharField(
        _("resource ID"), primary_key=True, max_length=40, default=new_resource_id, editable=False
    )
    user = models.ForeignKey(MemoryUser, models.CASCADE, verbose_name=_("user"), related_name="resources")
    app_id = models.CharField(_("app ID"), max_length=64, default="default")
    project_id = models.CharField(_("project ID"), max_length=64, default="default")
    session_id = models.CharField(_("session ID"), max_length=128)
    origin = models.CharField(_("origin"), max_length=8, choices=Origin, default=Origin.UPLOAD)
    filename = models.CharField(_("filename"), max_length=255)
    title = models.CharField(_("title"), max_length=500, null=True, blank=True)  # noqa: DJ001  null is what the contract answers
    description = models.TextField(_("description"), null=True, blank=True)  # noqa: DJ001
    content_type = models.CharField(_("content type"), max_length=8)
    mime_type = models.CharField(_("MIME type"), max_length=127, null=True, blank=True)  # noqa: DJ001
    size_bytes = models.BigIntegerField(_("size (bytes)"), null=True, blank=True)
    sha256 = models.CharField(_("SHA-256"), max_length=64, blank=True)
    storage_path = models.CharField(
        _("storage path"), max_length=255, blank=True, help_text=_("Relative to the storage folder; uploads only.")
    )
    source_uri = models.CharField(
        _("source URI"), max_length=2048, blank=True, help_text=_("Address of a registered file.")
    )
    sealed_ingest_uri = models.TextField(
        _("ingest URI"),
        blank=True,
        default="",
        db_default="",
        editable=False,
        help_text=_("The one-time address of a registered file, encrypted, until its ingestion ends."),
    )
    status = models.CharField(_("status"), max_length=10, choices=Status, default=Status.PENDING)
    error_message = MessageField(_("error message"), blank=True)
    attempts = models.IntegerField(_("attempts"), default=0)
    retry_at = models.DateTimeField(
        _("retry at"),
        null=True,
        blank=True,
        help_text=_("When its failed ingestion is retried; once purged, when its file and engine data are removed."),
    )
    first_failed_at = models.DateTimeField(
        _("first failed at"), null=True, blank=True, help_text=_("Retries end seven days after this time.")
    )
    flush_sent_at = models.DateTimeField(
        _("flush sent at"), null=True, blank=True, help_text=_("After this time, it is never sent again.")
    )
    searchable_at = models.DateTimeField(_("searchable at"), null=True, blank=True)
    reading = models.JSONField(
        _("reading"),
        null=True,
        default=None,
        editable=False,
        validators=[check_reading],
        help_text=_("The report on the reading of the file; empty if an older version or a remote read it."),
    )
    labels = models.JSONField(
        _("tags and metadata"),
        null=True,
        default=None,
        editable=False,
        validators=[check_labels],
        help_text=_("As the caller gave them. The memories of the file have them too."),
    )
    created_at = models.DateTimeField(_("created at"), auto_now_add=True)
    updated_at = models.DateTimeField(_("updated at"), auto_now=True)
    state = state_field()
    state_since = state_since_field()

    class Meta:
        verbose_name = _("resource")
        verbose_name_plural = _("resources")
        ordering = ("-created_at", "-resource_id")
        constraints = [
            # One undeleted upload per content. `origin` separates registrations, whose digest a caller only claims.
            models.UniqueConstraint(
                fields=["user", "app_id", "project_id", "origin", "sha256"],
                condition=Q(state="live") & ~Q(sha256=""),
                name="one_live_resource_per_content",
            ),
        ]
        indexes = [
            models.Index(fields=["user", "created_at", "resource_id"], name="resource_of_user"),
            models.Index(fields=["user", "app_id", "project_id", "status"], name="resource_in_scope"),
            models.Index(
                fields=["status", "retry_at"],
                condition=Q(state="live", status__in=["pending", "ingesting", "failed"]),
                name="resource_unfinished",
            ),
            models.Index(
                fields=["retry_at"], condition=Q(state="purged", retry_at__isnull=False), name="resource_cleanup"
            ),
            models.Index(fields=["state_since", "resource_id"], condition=Q(state="trashed"), name="resource_in_trash"),
            # For the panel: the newest resources of all users, and those whose failure waits for an operator.
            models.Index(fields=["created_at", "resource_id"], name="resource_by_time"),
            models.Index(
                fields=["updated_at"],
                condition=Q(state="live", status="failed", retry_at__isnull=True),
                name="resource_waiting",
            ),
        ]

    def __str__(self) -> str:
        return self.filename

    @property
    def uri(self) -> str:
        """The public address. Load `user` with the row."""
        return resource_uri(self.user.user_id, self.resource_id)

    @property
    def owner(self) -> Owner:
        """The owner, as the engine takes it. Load `user` with the row."""
        return Owner(self.user.pk, self.user.user_id, self.app_id, self.project_id)

    @property
    def file_key(self) -> FileKey:
        """The key of the stored file. Raises: `ValueError` if there is none."""
        return file_key(self.storage_path)

    @property
    def is_pending(self) -> bool:
        """Return True until the ingestion of a live resource ends."""
        return self.state == State.LIVE and self.status in {self.Status.PENDING, self.Status.INGESTING}

    @property
    def public_status(self) -> str:
        """The status as answers show it."""
        return self.status if self.state == State.LIVE else DELETED

    @property
    def reading_in_words(self) -> dict[str, Any] | None:
        """The report on the reading of the file, each note with its sentence."""
        if self.reading is None:
            return None
        notes = [{**note, "message": sentence(note)} for note in self.reading["notes"]]
        return {**self.reading, "notes": notes}

    @property
    def anonymous_reading(self) -> dict[str, Any] | None:
        """The report on the reading of the file, without the names of its parts."""
        if self.reading is None:
            return None
        notes = [{"code": note["code"], "count": note["count"]} for note in self.reading["notes"]]
        return {**self.reading, "notes": notes}

    @property
    def is_read_in_part(self) -> bool:
        """Return True if text of the file is known to be missing."""
        return self.reading is not None and self.reading["is_partial"]

    @property
    def event_data(self) -> dict[str, str]:
        """The data of an event about the resource."""
        return {"app_id": self.app_id, "project_id": self.project_id, "resource_id": self.resource_id}

    def new_attachment(self) -> Attachment:
        """Return the unsaved attachment that links the file to its session."""
        is_upload = self.origin == self.Origin.UPLOAD
        return Attachment(
            user_id=self.user_id,
            app_id=self.app_id,
            project_id=self.project_id,
            session_id=self.session_id,
            resource=self,
            source=Attachment.Source.UPLOAD if is_upload else Attachment.Source.EXTERNAL_RESOURCE,
            type=self.content_type,
            name=self.filename,
            internal_uri=self.storage_path if is_upload else self.source_uri,
            sha256=self.sha256,
        )


UNFINISHED: Final = (Resource.Status.PENDING, Resource.Status.INGESTING, Resource.Status.FAILED)
"""The statuses of a resource whose ingestion has not succeeded."""


class Attachment(CheckedModel):
    """A file of a session, with its name and the address where it is stored."""

    class Source(models.TextChoices):
        UPLOAD = "upload", _("Upload")
        EXTERNAL_RESOURCE = "external_resource", _("External resource")
        MEMORY_ADD = "memory_add", _("Added with a message")

    user = models.ForeignKey(
        MemoryUser, models.CASCADE, verbose_name=_("user"), related_name="attachments", db_index=False
    )
    app_id = models.CharField(_("app ID"), max_length=64, default="default")
    project_id = models.CharField(_("project ID"), max_length=64, default="default")
    session_id = models.CharField(_("session ID"), max_length=128)
    resource = models.ForeignKey(
        Resource, models.CASCADE, verbose_name=_("resource"), null=True, blank=True, related_name="attachments"
    )
    source = models.CharField(_("source"), max_length=20, choices=Source)
    type = models.CharField(_("type"), max_length=8)
    name = models.CharField(_("name"), max_length=255)
    internal_uri = models.CharField(_("internal URI"), max_length=2048)
    sha256 = models.CharField(_("SHA-256"), max_length=64, blank=True)
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


class RefusedUpload(models.Model):
    """An upload that was refused, without the file: its name and size as far as they were read, status and reason."""

    user = models.ForeignKey(MemoryUser, models.CASCADE, verbose_name=_("user"), related_name="+", db_index=False)
    app_id = models.CharField(_("app ID"), max_length=64, default="default")
    project_id = models.CharField(_("project ID"), max_length=64, default="default")
    at = models.DateTimeField(_("time"), default=timezone.now)
    filename = models.CharField(_("file name"), max_length=255, blank=True)
    size_bytes = models.BigIntegerField(_("size in bytes"), null=True, blank=True)
    status = models.PositiveSmallIntegerField(_("status"))
    reason = MessageField(_("reason"))

    class Meta:
        verbose_name = _("refused upload")
        verbose_name_plural = _("refused uploads")
        ordering = ("-at", "-id")
        default_permissions = ("view",)
        indexes = [
            models.Index(fields=["at"], name="refused_by_time"),
            models.Index(fields=["user", "at"], name="refused_of_user"),
        ]

    def __str__(self) -> str:
        return f"{self.status} {self.filename}"


class StorageIdentity(models.Model):
    """The id that binds this database to its storage folder: one row; the folder's file `storage_id` holds the same."""

    id = models.PositiveSmallIntegerField(_("ID"), primary_key=True, default=1, editable=False)
    uuid = models.UUIDField(_("UUID"), default=uuid.uuid4, editable=False)
    bound_at = models.DateTimeField(_("bound at"), auto_now=True)

    class Meta:
        verbose_name = _("storage identity")
        verbose_name_plural = _("storage identities")
        default_permissions = ("view",)
        constraints = [models.CheckConstraint(condition=Q(id=1), name="one_storage_identity")]

    def __str__(self) -> str:
        return str(self.uuid)
