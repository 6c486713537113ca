import uuid

from django.db import models
from django.utils.translation import gettext_lazy as _

from accounts.models import MemoryUser
from core.persistence.checked_rows import CheckedModel
from core.persistence.json_field import ReadableJSONField


class ProfileMemory(CheckedModel):
    """The `user` or `work` document of a user; a user without the row has the default document."""

    class MemoryType(models.TextChoices):
        USER = "user", _("User")
        WORK = "work", _("Work")

    class MemoryStatus(models.TextChoices):
        ACTIVE = "active", _("Active")
        DISABLED = "disabled", _("Disabled")

    id = models.UUIDField(_("ID"), primary_key=True, default=uuid.uuid4, editable=False)
    owner = models.ForeignKey(MemoryUser, models.CASCADE, verbose_name=_("user"), related_name="+")
    memory_type = models.CharField(_("document type"), max_length=20, choices=MemoryType)
    content = ReadableJSONField(_("content"))
    status = models.CharField(_("status"), max_length=20, choices=MemoryStatus, default=MemoryStatus.ACTIVE)
    version = models.PositiveIntegerField(
        _("version"), help_text=_("Incremented by every change; the ETag is derived from it.")
    )
    created_at = models.DateTimeField(_("created at"), auto_now_add=True)
    updated_at = models.DateTimeField(_("updated at"), auto_now=True)

    class Meta:
        verbose_name = _("profile")
        verbose_name_plural = _("profiles")
        ordering = ("owner", "memory_type")
        default_permissions = ("view", "change", "restore", "disable")
        constraints = [models.UniqueConstraint(fields=["owner", "memory_type"], name="one_profile_of_each_type")]

    def __str__(self) -> str:
        return f"{self.owner_id} {self.memory_type}"

    @property
    def user(self) -> MemoryUser:
        return self.owner


class ProfileRevision(CheckedModel):
    """A version of a document: its content after one change, and the actor of the change."""

    class Action(models.TextChoices):
        WRITE = "write", _("Write")
        PATCH = "patch", _("Patch")
        RESTORE = "restore", _("Restore")
        DISABLE = "disable", _("Disable")
        ENABLE = "enable", _("Enable")

    id = models.BigAutoField(_("ID"), primary_key=True)
    profile = models.ForeignKey(ProfileMemory, models.CASCADE, verbose_name=_("profile"), related_name="revisions")
    version = models.PositiveIntegerField(_("version"))
    action = models.CharField(_("action"), max_length=16, choices=Action)
    content = ReadableJSONField(_("content"))
    actor_kind = models.CharField(_("actor type"), max_length=16)
    actor = models.CharField(_("actor"), max_length=150, blank=True)
    agent_id = models.CharField(_("agent ID"), max_length=64, blank=True, default="")
    created_at = models.DateTimeField(_("created at"), auto_now_add=True)

    class Meta:
        verbose_name = _("profile revision")
        verbose_name_plural = _("profile revisions")
        ordering = ("profile", "-version")
        default_permissions = ("view",)
        constraints = [models.UniqueConstraint(fields=["profile", "version"], name="one_revision_of_each_version")]

    def __str__(self) -> str:
        return f"{self.profile_id} {self.version}"

    @property
    def user(self) -> MemoryUser:
        return self.profile.owner
