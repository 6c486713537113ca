"""The ledger: users' decisions about memories, sessions and resources, and what follows from them.

A row's state follows from its open decisions (`store.states`). These models belong to the app `memories`; they are here
because extraction and ingestion decide too.
"""

import hashlib
import secrets
from typing import TYPE_CHECKING, Final, Literal

from django.db import models
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from accounts.audit import Actor
from accounts.models import MemoryUser
from core.persistence.checked_rows import CheckedModel, CheckedQuerySet
from store.models import Memory, Owned


def new_tombstone_id() -> str:
    return f"t_{secrets.token_hex(16)}"


def new_override_id() -> str:
    return f"o_{secrets.token_hex(16)}"


def digest_of(text: str) -> str:
    """Return the digest by which a tombstone remembers the text of a source."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]


EXPIRY: Final = Actor.system("expiry")
"""The actor of the deletion of what has expired."""


class Decision(CheckedModel, Owned):
    """A decision about a user's data, with its actor. It is open until `undone_at`, when `undone_by` ended it."""

    session_id = models.CharField(_("session ID"), max_length=128, blank=True)
    # Purging a memory deletes its decisions too, above all the texts of overrides.
    row = models.ForeignKey(
        Memory, models.CASCADE, verbose_name=_("row"), null=True, blank=True, related_name="+", editable=False
    )
    actor_kind = models.CharField(_("actor type"), max_length=16)
    actor = models.CharField(_("actor"), max_length=150, blank=True)
    created_at = models.DateTimeField(_("created at"), default=timezone.now, editable=False)
    undone_at = models.DateTimeField(_("undone at"), null=True, blank=True)
    undone_by_kind = models.CharField(_("undone by, type"), max_length=16, blank=True, default="", db_default="")
    undone_by = models.CharField(_("undone by"), max_length=150, blank=True, default="", db_default="")

    class Meta:
        abstract = True

    def end(self, actor: Actor) -> None:
        """End the decision, without saving it."""
        self.undone_at, self.undone_by_kind, self.undone_by = timezone.now(), actor.kind, actor.name

    @property
    def last_actor(self) -> Actor:
        """Return who ended the decision, or who made it if it is open."""
        if self.undone_at is None:
            return Actor(self.actor_kind, self.actor)
        return Actor(self.undone_by_kind, self.undone_by)


ENDED_FIELDS = ("undone_at", "undone_by_kind", "undone_by")
"""The fields that `Decision.end` sets."""

if TYPE_CHECKING:
    _Rows = models.Manager["Tombstone"]
else:
    _Rows = models.Manager.from_queryset(CheckedQuerySet)


class _Deletions(_Rows):
    def get_queryset(self) -> models.QuerySet["Tombstone"]:
        return super().get_queryset().filter(kind=Tombstone.Kind.DELETED, resource_id="")


class Tombstone(Decision):
    """A reason to hide a memory, else a resource, else a session: the first of the three ids that is set.

    Users, operators and `EXPIRY` make the kind `deleted`, models `superseded`. The other kinds follow from the decision
    `cause`, end with it, and are in no trash. A copy deleted with a memory names its deletion as `cause`.
    `other_id`: the source, derived or newer memory. `other_digest`: of the text that the memory was derived from;
    `source_corrected` ends when its source has it again.

    `objects` are the deletions of memories and sessions, as the trash lists them; `ledger` are all rows.
    """

    class Kind(models.TextChoices):
        DELETED = "deleted", _("Deleted")
        RESOURCE_DELETED = "resource_deleted", _("Resource deleted")
        SOURCE_DELETED = "source_deleted", _("Source deleted")
        SOURCE_CORRECTED = "source_corrected", _("Source edited")
        SUPERSEDED = "superseded", _("Superseded")
        DERIVED_DELETED = "derived_deleted", _("Derived memory deleted")

    tombstone_id = models.CharField(
        _("tombstone ID"), primary_key=True, max_length=40, default=new_tombstone_id, editable=False
    )
    memory_id = models.CharField(_("memory ID"), max_length=256, blank=True)
    resource_id = models.CharField(_("resource ID"), max_length=40, blank=True, default="", db_default="")
    kind = models.CharField(_("kind"), max_length=16, choices=Kind, default=Kind.DELETED, db_default=Kind.DELETED)
    reason = models.TextField(_("reason"), blank=True)
    cause = models.CharField(
        _("cause"),
        max_length=40,
        blank=True,
        default="",
        db_default="",
        help_text=_("ID of the tombstone or override that this one follows from."),
    )
    other_id = models.CharField(_("other memory"), max_length=256, blank=True, default="", db_default="")
    other_digest = models.CharField(_("digest of the source"), max_length=32, blank=True, default="", db_default="")

    ledger = CheckedQuerySet["Tombstone"].as_manager()
    objects = _Deletions()  # type: ignore[assignment,misc]

    class Meta:
        verbose_name = _("tombstone")
        verbose_name_plural = _("tombstones")
        app_label = "memories"
        ordering = ("-created_at", "-tombstone_id")
        constraints = [
            models.UniqueConstraint(
                fields=["user", "app_id", "project_id", "memory_id"],
                condition=Q(undone_at__isnull=True, kind="deleted") & ~Q(memory_id=""),
                name="one_deletion_per_memory",
            ),
            models.UniqueConstraint(
                fields=["user", "app_id", "project_id", "session_id"],
                condition=Q(undone_at__isnull=True, kind="deleted", memory_id="", resource_id=""),
                name="one_deletion_per_session",
            ),
            models.UniqueConstraint(
                fields=["resource_id"],
                condition=Q(undone_at__isnull=True) & ~Q(resource_id=""),
                name="one_deletion_per_resource",
            ),
            models.UniqueConstraint(
                fields=["user", "app_id", "project_id", "memory_id", "session_id", "kind", "cause", "other_id"],
                condition=Q(undone_at__isnull=True) & ~Q(kind="deleted"),
                name="one_tombstone_per_cause",
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
            models.Index(
                fields=["cause"], condition=Q(undone_at__isnull=True) & ~Q(cause=""), name="tombstone_by_cause"
            ),
        ]

    def __str__(self) -> str:
        return self.memory_id or self.resource_id or self.session_id

    @property
    def is_expiry(self) -> bool:
        """Return True if it was made because its subject has expired."""
        return (self.actor_kind, self.actor) == (EXPIRY.kind, EXPIRY.name)

    @property
    def target(self) -> Literal["memory", "session", "resource"]:
        """Return the kind of row that it is about."""
        return "memory" if self.memory_id else "resource" if self.resource_id else "session"


class Override(Decision):
    """A replacement of a memory's text, category or importance. `original_text` is the engine's, `text` the current.

    Its revisions are the record of what it changed.
    """

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
        app_label = "memories"
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


class OverrideRevision(CheckedModel):
    """A text of an overridden memory: number 0 is the engine's, the highest number is the current one."""

    override = models.ForeignKey(Override, models.CASCADE, verbose_name=_("override"), related_name="revisions")
    number = models.PositiveIntegerField(_("number"))
    text = models.TextField(_("text"))
    category = models.CharField(_("category"), max_length=40, blank=True)
    importance = models.FloatField(_("importance"), null=True, blank=True)
    reason = models.CharField(_("reason"), max_length=200, blank=True, default="", db_default="")
    is_update = models.BooleanField(
        _("is update"),
        default=False,
        db_default=False,
        help_text=_("The former text was right at its time; otherwise it was corrected."),
    )
    actor_kind = models.CharField(_("actor type"), max_length=16, blank=True)
    actor = models.CharField(_("actor"), max_length=150, blank=True)
    created_at = models.DateTimeField(_("created at"), auto_now_add=True)

    class Meta:
        verbose_name = _("override revision")
        verbose_name_plural = _("override revisions")
        app_label = "memories"
        ordering = ("override", "number")
        constraints = [models.UniqueConstraint(fields=["override", "number"], name="revision_numbers_of_one_override")]

    def __str__(self) -> str:
        return f"{self.override_id} {self.number}"

    @property
    def user(self) -> MemoryUser:
        return self.override.user
