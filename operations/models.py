import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta

from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from accounts.models import MemoryUser
from core.background.leases import Leased, new_holder, renewed, take
from core.localization import MessageField


class LeaseManager(models.Manager["Lease"]):
    def take(self, name: str, holder: str, *, now: datetime, lasts: timedelta) -> bool:
        """Take or renew a lease until `now + lasts`; return False while another running process holds it."""
        self.get_or_create(name=name, defaults={"lease_holder": holder, "leased_until": now + lasts})
        return bool(take(self.filter(name=name), 1, lasts, now=now, holder=holder))

    def release(self, name: str, holder: str) -> None:
        """Release the lease if `holder` has it."""
        self.filter(name=name, lease_holder=holder).delete()

    def due_times(self, names: Iterable[str]) -> dict[str, datetime | None]:
        """Return when each is due; None: it was never done."""
        return dict.fromkeys(names) | dict(self.filter(name__in=names).values_list("name", "due_at"))

    def set_due(self, name: str, at: datetime) -> None:
        self.update_or_create(name=name, defaults={"due_at": at})

    @contextmanager
    def held(self, name: str, lasts: timedelta, clock: Callable[[], datetime] = timezone.now) -> Iterator[bool]:
        """Hold and renew a lease inside the block; yield False if another process has it."""
        holder = new_holder()
        if not self.take(name, holder, now=clock(), lasts=lasts):
            yield False
            return
        try:
            with renewed(self.filter(name=name, lease_holder=holder), lasts, clock=clock):
                yield True
        finally:
            self.release(name, holder)


class Lease(Leased):
    """Work that one process of the installation does at a time, and when it is due next, if it is periodic."""

    name = models.CharField(_("name"), primary_key=True, max_length=64)
    due_at = models.DateTimeField(_("due at"), null=True, blank=True)

    objects = LeaseManager()

    class Meta:
        verbose_name = _("lease")
        verbose_name_plural = _("leases")

    def __str__(self) -> str:
        return f"{self.name}: {self.lease_holder}"


class Job(Leased):
    """A long action: its parameters, progress and result.

    `cursor` is the position to continue from after a crash, written in the transaction of the last step.
    """

    class Status(models.TextChoices):
        QUEUED = "queued", _("Queued")
        RUNNING = "running", _("Running")
        DONE = "done", _("Done")
        FAILED = "failed", _("Failed")
        STOPPED = "stopped", _("Stopped")

    id = models.UUIDField(_("ID"), primary_key=True, default=uuid.uuid4, editable=False)
    kind = models.CharField(_("kind"), max_length=32)
    actor_kind = models.CharField(_("actor type"), max_length=16)
    actor = models.CharField(_("actor"), max_length=150, blank=True)
    params = models.JSONField(_("params"), default=dict, blank=True)
    status = models.CharField(_("status"), max_length=8, choices=Status, default=Status.QUEUED)
    done = models.BigIntegerField(_("done"), default=0)
    total = models.BigIntegerField(_("total"), default=0)
    cursor = models.JSONField(_("cursor"), default=dict, blank=True, editable=False)
    result = models.JSONField(_("result"), default=dict, blank=True)
    error = MessageField(_("error"), blank=True)
    created_at = models.DateTimeField(_("created at"), auto_now_add=True)
    started_at = models.DateTimeField(_("started at"), null=True, blank=True)
    finished_at = models.DateTimeField(_("finished at"), null=True, blank=True)
    stop_asked_at = models.DateTimeField(_("stop requested at"), null=True, blank=True)
    undone_at = models.DateTimeField(_("undone at"), null=True, blank=True, help_text=_("When the undo started."))

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
    """The changes of one step of a job, needed to undo it: ids, never the text of memories."""

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
    """A deletion or override for which a move found no new memory.

    It remains on the old memory. Similar new memories are hidden until an operator or the user decides.
    """

    job = models.ForeignKey(Job, models.CASCADE, verbose_name=_("job"), related_name="unmatched")
    user = models.ForeignKey(MemoryUser, models.CASCADE, verbose_name=_("user"), related_name="+")
    session_id = models.CharField(_("session ID"), max_length=128)
    memory_id = models.CharField(_("memory ID"), max_length=256)
    tombstone_id = models.CharField(_("tombstone ID"), max_length=40, blank=True)
    override_id = models.CharField(_("override ID"), max_length=40, blank=True)
    hides = models.JSONField(
        _("hidden memories"), default=list, help_text=_("Similar new memories, hidden until a person decides.")
    )

    class Meta:
        verbose_name = _("unmatched decision")
        verbose_name_plural = _("unmatched decisions")
        ordering = ("-id",)
        default_permissions = ("view",)

    def __str__(self) -> str:
        return self.memory_id
