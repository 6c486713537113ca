import secrets

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from accounts.models import MemoryUser
from store.models import Memory, Owned


def new_tombstone_id() -> str:
    return f"t_{secrets.token_hex(16)}"


def new_override_id() -> str:
    return f"o_{secrets.token_hex(16)}"


class Decision(Owned):
    """A decision about a user's memory, with its actor. It is active until `undone_at`."""

    session_id = models.CharField(_("session ID"), max_length=128, blank=True)
    # Purging a memory deletes its decisions too, above all the texts of overrides.
    row = models.ForeignKey(
        Memory, models.CASCADE, verbose_name=_("row"), null=True, blank=True, related_name="+", editable=False
    )
    actor_kind = models.CharField(_("actor type"), max_length=16)
    actor = models.CharField(_("actor"), max_length=150, blank=True)
    created_at = models.DateTimeField(_("created at"), auto_now_add=True)
    undone_at = models.DateTimeField(_("undone at"), null=True, blank=True)

    class Meta:
        abstract = True


class Tombstone(Decision):
    """A deletion of one memory, or of a whole session (`memory_id` empty)."""

    tombstone_id = models.CharField(
        _("tombstone ID"), primary_key=True, max_length=40, default=new_tombstone_id, editable=False
    )
    memory_id = models.CharField(_("memory ID"), max_length=256, blank=True)
    reason = models.TextField(_("reason"), blank=True)

    class Meta:
        verbose_name = _("tombstone")
        verbose_name_plural = _("tombstones")
        ordering = ("-created_at", "-tombstone_id")
        constraints = [
            models.UniqueConstraint(
                fields=["user", "app_id", "project_id", "memory_id"],
                condition=Q(undone_at__isnull=True) & ~Q(memory_id=""),
                name="one_tombstone_per_memory",
            ),
            models.UniqueConstraint(
                fields=["user", "app_id", "project_id", "session_id"],
                condition=Q(undone_at__isnull=True) & Q(memory_id=""),
                name="one_tombstone_per_session",
            ),
        ]
        indexes = [
            models.Index(fields=["user", "app_id", "project_id", "created_at", "tombstone_id"], name="trash_of_user"),
            models.Index(fields=["user", "app_id", "project_id", "memory_id"], name="tombstone_history"),
            models.Index(
                fields=["created_at", "tombstone_id"],
                condition=Q(undone_at__isnull=True) & Q(memory_id=""),
                name="deleted_sessions",
            ),
        ]

    def __str__(self) -> str:
        return self.memory_id or self.session_id


class Override(Decision):
    """A replacement of a memory's text, category or importance. `original_text` is the engine's, `text` the current."""

    override_id = models.CharField(
        _("override ID"), primary_key=True, max_length=40, default=new_override_id, editable=False
    )
    memory_id = models.CharField(_("memory ID"), max_length=256)
    text = models.TextField(_("text"))
    original_text = models.TextField(_("original text"))
    updated_at = models.DateTimeField(_("updated at"), auto_now=True)

    class Meta:
        verbose_name = _("override")
        verbose_name_plural = _("overrides")
        ordering = ("-created_at", "-override_id")
        constraints = [
            models.UniqueConstraint(
                fields=["user", "app_id", "project_id", "memory_id"],
                condition=Q(undone_at__isnull=True),
                name="one_override_per_memory",
            )
        ]
        indexes = [models.Index(fields=["user", "app_id", "project_id", "memory_id"], name="override_history")]

    def __str__(self) -> str:
        return self.memory_id


class OverrideRevision(models.Model):
    """A text of an overridden memory: number 0 is the engine's, the highest number is the current one."""

    override = models.ForeignKey(Override, models.CASCADE, verbose_name=_("override"), related_name="revisions")
    number = models.PositiveIntegerField(_("number"))
    text = models.TextField(_("text"))
    category = models.CharField(_("category"), max_length=40, blank=True)
    importance = models.FloatField(_("importance"), null=True, blank=True)
    actor_kind = models.CharField(_("actor type"), max_length=16, blank=True)
    actor = models.CharField(_("actor"), max_length=150, blank=True)
    created_at = models.DateTimeField(_("created at"), auto_now_add=True)

    class Meta:
        verbose_name = _("override revision")
        verbose_name_plural = _("override revisions")
        ordering = ("override", "number")
        constraints = [models.UniqueConstraint(fields=["override", "number"], name="revision_numbers_of_one_override")]

    def __str__(self) -> str:
        return f"{self.override_id} {self.number}"

    @property
    def user(self) -> MemoryUser:
        return self.override.user
