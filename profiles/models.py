from __future__ import annotations

import uuid

from django.db import models

from accounts.models import MemoryUser


class ProfileMemory(models.Model):
    """The `user` or `work` document of a user; a user without the row has the default document."""

    class MemoryType(models.TextChoices):
        USER = "user"
        WORK = "work"

    class MemoryStatus(models.TextChoices):
        ACTIVE = "active"
        DISABLED = "disabled"

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    owner = models.ForeignKey(MemoryUser, models.CASCADE, related_name="+")
    memory_type = models.CharField(max_length=20, choices=MemoryType)
    content = models.JSONField()
    status = models.CharField(max_length=20, choices=MemoryStatus, default=MemoryStatus.ACTIVE)
    version = models.PositiveIntegerField(help_text="Counts every change; the ETag is made of it.")
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        verbose_name = "profile"
        ordering = ("owner", "memory_type")
        default_permissions = ("view", "change", "restore", "disable")
        constraints = [models.UniqueConstraint(fields=["owner", "memory_type"], name="one_profile_of_each_type")]

    def __str__(self) -> str:
        return f"{self.owner_id} {self.memory_type}"

    @property
    def user(self) -> MemoryUser:
        return self.owner


class ProfileRevision(models.Model):
    """A document as one change left it, and who made the change."""

    class Action(models.TextChoices):
        WRITE = "write"
        PATCH = "patch"
        RESTORE = "restore"
        DISABLE = "disable"
        ENABLE = "enable"

    profile = models.ForeignKey(ProfileMemory, models.CASCADE, related_name="revisions")
    version = models.PositiveIntegerField()
    action = models.CharField(max_length=16, choices=Action)
    content = models.JSONField()
    actor_kind = models.CharField(max_length=16)
    actor = models.CharField(max_length=150, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        verbose_name = "profile revision"
        ordering = ("profile", "-version")
        default_permissions = ("view",)
        constraints = [models.UniqueConstraint(fields=["profile", "version"], name="one_revision_of_each_version")]

    def __str__(self) -> str:
        return f"{self.profile_id} {self.version}"

    @property
    def user(self) -> MemoryUser:
        return self.profile.owner
