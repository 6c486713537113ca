from __future__ import annotations

import uuid

from django.db import models

from accounts.models import MemoryUser


class Lease(models.Model):
    """One holder at a time of a duty such as sweeping; it lapses when its holder stops renewing it."""

    name = models.CharField(primary_key=True, max_length=64)
    holder = models.CharField(max_length=128)
    expires_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.name}: {self.holder}"


class Job(models.Model):
    """Something long that somebody asked for: what it is to do, how far it came, what became of it.

    `cursor` is where it goes on after a crash, written in the transaction of the step that it follows.
    """

    class Status(models.TextChoices):
        QUEUED = "queued"
        RUNNING = "running"
        DONE = "done"
        FAILED = "failed"
        STOPPED = "stopped"

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    kind = models.CharField(max_length=32)
    actor_kind = models.CharField(max_length=16)
    actor = models.CharField(max_length=150, blank=True)
    params = models.JSONField(default=dict, blank=True)
    status = models.CharField(max_length=8, choices=Status, default=Status.QUEUED)
    done = models.BigIntegerField(default=0)
    total = models.BigIntegerField(default=0)
    cursor = models.JSONField(default=dict, blank=True, editable=False)
    result = models.JSONField(default=dict, blank=True)
    error = models.TextField(blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    started_at = models.DateTimeField(null=True, blank=True)
    finished_at = models.DateTimeField(null=True, blank=True)
    stop_asked_at = models.DateTimeField(null=True, blank=True)
    undone_at = models.DateTimeField(null=True, blank=True, help_text="When somebody began to undo it.")
    holder = models.CharField(max_length=128, blank=True, editable=False)
    leased_until = models.DateTimeField(null=True, blank=True, editable=False)

    class Meta:
        ordering = ("-created_at",)
        default_permissions = ("view",)
        indexes = [
            models.Index(fields=["created_at"], name="job_by_time"),
            models.Index(
                fields=["created_at"],
                condition=models.Q(status__in=["queued", "running"]),
                name="job_to_do",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.pk}"

    @property
    def is_over(self) -> bool:
        return self.status in {self.Status.DONE, self.Status.FAILED, self.Status.STOPPED}


class JobStep(models.Model):
    """What one step of a job changed, so that it can be undone: ids, never memory text."""

    job = models.ForeignKey(Job, models.CASCADE, related_name="steps")
    number = models.PositiveIntegerField()
    changes = models.JSONField(default=list)

    class Meta:
        ordering = ("job", "number")
        default_permissions = ("view",)
        constraints = [models.UniqueConstraint(fields=["job", "number"], name="step_numbers_of_one_job")]

    def __str__(self) -> str:
        return f"{self.job_id} {self.number}"


class UnmatchedDecision(models.Model):
    """A deletion or correction that a move found no new memory for: it stays in force on the old one, and what
    resembles that is held back until a person decides."""

    job = models.ForeignKey(Job, models.CASCADE, related_name="unmatched")
    user = models.ForeignKey(MemoryUser, models.CASCADE, related_name="+")
    session_id = models.CharField(max_length=128)
    memory_id = models.CharField(max_length=256)
    tombstone_id = models.CharField(max_length=40, blank=True)
    override_id = models.CharField(max_length=40, blank=True)
    hides = models.JSONField(default=list, help_text="The memories that are held back.")

    class Meta:
        ordering = ("-id",)
        default_permissions = ("view",)

    def __str__(self) -> str:
        return self.memory_id
