from __future__ import annotations

import uuid

from django.db import models
from django.utils.translation import gettext_lazy as _

from accounts.models import MemoryUser


class Lease(models.Model):
    """One holder at a time of a duty such as sweeping; it lapses when its holder stops renewing it."""

    name = models.CharField(_("name"), primary_key=True, max_length=64)
    holder = models.CharField(_("holder"), max_length=128)
    expires_at = models.DateTimeField(_("expires at"))

    class Meta:
        verbose_name = _("lease")
        verbose_name_plural = _("leases")

    def __str__(self) -> str:
        return f"{self.name}: {self.holder}"


class Job(models.Model):
    """Something long that somebody asked for: what it is to do, how far it came, what became of it.

    `cursor` is where it goes on after a crash, written in the transaction of the step that it follows.
    """

    class Status(models.TextChoices):
        QUEUED = "queued", _("Queued")
        RUNNING = "running", _("Running")
        DONE = "done", _("Done")
        FAILED = "failed", _("Failed")
        STOPPED = "stopped", _("Stopped")

    id = models.UUIDField(_("id"), primary_key=True, default=uuid.uuid4, editable=False)
    kind = models.CharField(_("kind"), max_length=32)
    actor_kind = models.CharField(_("actor kind"), max_length=16)
    actor = models.CharField(_("actor"), max_length=150, blank=True)
    params = models.JSONField(_("params"), default=dict, blank=True)
    status = models.CharField(_("status"), max_length=8, choices=Status, default=Status.QUEUED)
    done = models.BigIntegerField(_("done"), default=0)
    total = models.BigIntegerField(_("total"), default=0)
    cursor = models.JSONField(_("cursor"), default=dict, blank=True, editable=False)
    result = models.JSONField(_("result"), default=dict, blank=True)
    error = models.TextField(_("error"), blank=True)
    created_at = models.DateTimeField(_("created at"), auto_now_add=True)
    started_at = models.DateTimeField(_("started at"), null=True, blank=True)
    finished_at = models.DateTimeField(_("finished at"), null=True, blank=True)
    stop_asked_at = models.DateTimeField(_("stop asked at"), null=True, blank=True)
    undone_at = models.DateTimeField(
        _("undone at"), null=True, blank=True, help_text=_("When somebody began to undo it.")
    )
    holder = models.CharField(_("holder"), max_length=128, blank=True, editable=False)
    leased_until = models.DateTimeField(_("leased until"), null=True, blank=True, editable=False)

    class Meta:
        verbose_name = _("job")
        verbose_name_plural = _("jobs")
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

    job = models.ForeignKey(Job, models.CASCADE, verbose_name=_("job"), related_name="steps")
    number = models.PositiveIntegerField(_("number"))
    changes = models.JSONField(_("changes"), default=list)

    class Meta:
        verbose_name = _("job step")
        verbose_name_plural = _("job steps")
        ordering = ("job", "number")
        default_permissions = ("view",)
        constraints = [models.UniqueConstraint(fields=["job", "number"], name="step_numbers_of_one_job")]

    def __str__(self) -> str:
        return f"{self.job_id} {self.number}"


class UnmatchedDecision(models.Model):
    """A deletion or correction that a move found no new memory for: it stays in force on the old one, and what
    resembles that is held back until a person decides."""

    job = models.ForeignKey(Job, models.CASCADE, verbose_name=_("job"), related_name="unmatched")
    user = models.ForeignKey(MemoryUser, models.CASCADE, verbose_name=_("user"), related_name="+")
    session_id = models.CharField(_("session id"), max_length=128)
    memory_id = models.CharField(_("memory id"), max_length=256)
    tombstone_id = models.CharField(_("tombstone id"), max_length=40, blank=True)
    override_id = models.CharField(_("override id"), max_length=40, blank=True)
    hides = models.JSONField(_("hides"), default=list, help_text=_("The memories that are held back."))

    class Meta:
        verbose_name = _("unmatched decision")
        verbose_name_plural = _("unmatched decisions")
        ordering = ("-id",)
        default_permissions = ("view",)

    def __str__(self) -> str:
        return self.memory_id
