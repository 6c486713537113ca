from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import models
from django.utils.translation import gettext_lazy as _

from accounts.models import MemoryUser
from store.extraction_models import OwedExtraction
from store.index_models import Embedding, EmbeddingSpace, FactPage, OwedEmbedding, VectorPage
from store.rollup_models import HourCount, SessionCount

if TYPE_CHECKING:
    from store.types import Owner

__all__ = [
    "BARE", "WRITTEN_DOWN", "Embedding", "EmbeddingSpace", "FactPage", "HourCount", "IndexStatistics", "IndexVersion",
    "Memory", "OwedEmbedding", "OwedExtraction", "Session", "SessionCount", "VectorPage", "owned_by",
]  # fmt: skip


def owned_by(owner: Owner) -> models.Q:
    """The condition that every query of an engine table starts from."""
    return models.Q(user_id=owner.user_pk, app_id=owner.app_id, project_id=owner.project_id)


class Session(models.Model):
    """A session of one user in one scope: two users' `chat:c1` are two rows."""

    class Kind(models.TextChoices):
        CHAT = "chat", _("Chat")
        RESOURCE = "resource", _("Resource")
        MEMORY_EDIT = "memory_edit", _("Memory Edit")
        OTHER = "other", _("Other")

    # No index of its own: others begin with it. So do those of a memory's user and session.
    user = models.ForeignKey(
        MemoryUser, models.CASCADE, verbose_name=_("user"), related_name="sessions", db_index=False
    )
    app_id = models.CharField(_("app id"), max_length=64, default="default")
    project_id = models.CharField(_("project id"), max_length=64, default="default")
    session_id = models.CharField(_("session id"), max_length=128)
    engine_session_id = models.CharField(
        _("engine session id"),
        max_length=128,
        help_text=_("The engine's own id: the same, unless another user already holds that id upstream."),
    )
    kind = models.CharField(_("kind"), max_length=12, choices=Kind)
    created_at = models.DateTimeField(_("created at"), auto_now_add=True)
    flushed_at = models.DateTimeField(_("flushed at"), null=True, blank=True)
    searchable_at = models.DateTimeField(_("searchable at"), null=True, blank=True)
    retry_at = models.DateTimeField(
        _("retry at"), null=True, blank=True, help_text=_("When unconfirmed calls are retried.")
    )
    deleted_at = models.DateTimeField(
        _("deleted at"), null=True, blank=True, help_text=_("Set for good: late writes are refused.")
    )
    hidden_at = models.DateTimeField(
        _("hidden at"), null=True, blank=True, help_text=_("Deleted by its user; restorable until purged.")
    )

    class Meta:
        verbose_name = _("session")
        verbose_name_plural = _("sessions")
        ordering = ("-id",)
        constraints = [
            models.UniqueConstraint(fields=["user", "app_id", "project_id", "session_id"], name="session_of_one_user")
        ]
        indexes = [
            models.Index(fields=["engine_session_id"], name="session_by_engine_id"),
            models.Index(fields=["session_id"], name="session_by_id"),
            models.Index(
                fields=["flushed_at"],
                condition=models.Q(searchable_at__isnull=True, flushed_at__isnull=False),
                name="session_flush_open",
            ),
            models.Index(
                fields=["user", "app_id", "project_id"],
                condition=models.Q(hidden_at__isnull=False) | models.Q(deleted_at__isnull=False),
                name="session_closed",
            ),
        ]

    def __str__(self) -> str:
        return self.session_id


BARE = "purged"
"""The `batch_id` of rows that a purge left: they hold a name alone."""
_SHOWN = models.Q(hidden_at__isnull=True)
_BROWSED_BY: dict[str, list[str]] = {
    "time": [],
    "category": ["category"],
    "user": ["user"],
    "user_category": ["user", "category"],
    "agent": ["agent_id"],
    "agent_category": ["agent_id", "category"],
    "session": ["session"],
    "origin": ["origin"],
    "type": ["memory_type"],
    "turn": ["batch_id"],
}


class Memory(models.Model):
    """What is remembered. Authoritative under the embedded engine, a mirror under an upstream.

    `seq` orders a session's memories, `created_at_ms` is when it was said (Unix milliseconds). `is_indexed` says that
    the keyword index holds its tokens, `token_count` how many.
    """

    class Type(models.TextChoices):
        EPISODE = "episode", _("Episode")
        PROFILE = "profile", _("Profile")
        AGENT_CASE = "agent_case", _("Agent Case")
        AGENT_SKILL = "agent_skill", _("Agent Skill")
        UNPROCESSED_MESSAGE = "unprocessed_message", _("Unprocessed Message")

    class Origin(models.TextChoices):
        EMBEDDED = "embedded", _("Embedded")
        UPSTREAM = "upstream", _("Upstream")
        PANEL = "panel", _("Panel")
        TOOL = "tool", _("Tool")
        EXTRACTED = "extracted", _("Extracted")

    user = models.ForeignKey(
        MemoryUser, models.CASCADE, verbose_name=_("user"), related_name="memories", db_index=False
    )
    app_id = models.CharField(_("app id"), max_length=64, default="default")
    project_id = models.CharField(_("project id"), max_length=64, default="default")
    memory_id = models.CharField(_("memory id"), max_length=256)
    session = models.ForeignKey(
        Session,
        models.CASCADE,
        verbose_name=_("session"),
        null=True,
        blank=True,
        related_name="memories",
        db_index=False,
    )
    agent_id = models.CharField(_("agent id"), max_length=64, blank=True)
    memory_type = models.CharField(_("memory type"), max_length=20, choices=Type)
    category = models.CharField(_("category"), max_length=40, blank=True)
    sender_id = models.CharField(_("sender id"), max_length=128, blank=True)
    speaker = models.CharField(
        _("speaker"), max_length=64, blank=True, help_text=_("Who says it, as questions name them.")
    )
    text = models.TextField(_("text"))
    importance = models.FloatField(_("importance"), null=True, blank=True)
    batch_id = models.CharField(_("batch id"), max_length=64, blank=True)
    seq = models.IntegerField(_("seq"), default=0)
    chunk_index = models.IntegerField(_("chunk index"), null=True, blank=True)
    payload = models.JSONField(_("payload"), default=dict, blank=True)
    created_at_ms = models.BigIntegerField(_("created at ms"))
    origin = models.CharField(_("origin"), max_length=10, choices=Origin, default=Origin.EMBEDDED)
    is_indexed = models.BooleanField(_("is indexed"), default=False)
    token_count = models.IntegerField(_("token count"), default=0)
    hidden_at = models.DateTimeField(
        _("hidden at"), null=True, blank=True, help_text=_("Deleted by its user; restorable until purged.")
    )

    class Meta:
        verbose_name = _("memory")
        verbose_name_plural = _("memories")
        ordering = ("-id",)
        # The id first: an operator's token knows no owner, and a user's own request no scope.
        constraints = [
            models.UniqueConstraint(fields=["memory_id", "user", "app_id", "project_id"], name="memory_of_one_user")
        ]
        indexes = [
            models.Index(fields=["user", "app_id", "project_id", "created_at_ms"], name="memory_by_time"),
            models.Index(fields=["session", "seq"], name="memory_in_session"),
            models.Index(
                fields=["id"],
                condition=models.Q(is_indexed=False) & ~models.Q(origin="upstream"),
                name="memory_not_indexed",
            ),
            models.Index(
                fields=["user", "app_id", "project_id"],
                condition=models.Q(is_indexed=True)
                & (
                    models.Q(hidden_at__isnull=False)
                    | models.Q(memory_type="unprocessed_message")
                    | models.Q(memory_type="profile")
                ),
                name="memory_set_apart",
            ),
            # What operators browse, newest or oldest first, under one condition each; without what is in the trash.
            *(
                models.Index(fields=[*fields, "created_at_ms", "id"], condition=_SHOWN, name=f"memory_browsed_{name}")
                for name, fields in _BROWSED_BY.items()
            ),
            models.Index(
                fields=["category", "created_at_ms", "id", "importance"],
                condition=_SHOWN & models.Q(importance__isnull=False),
                name="memory_browsed_importance",
            ),
            models.Index(
                fields=["created_at_ms", "id"], condition=models.Q(hidden_at__isnull=False), name="memory_in_trash"
            ),
        ]

    def __str__(self) -> str:
        return self.memory_id


WRITTEN_DOWN = (Memory.Origin.PANEL, Memory.Origin.TOOL)
"""What nobody said: an operator or a tool wrote it down. Where it names an agent, it is for that agent alone."""


class LeftUpstream(models.Model):
    """The digest of a name under which an upstream still holds something of an erased user: a user id or a session."""

    digest = models.CharField(_("digest"), primary_key=True, max_length=64)
    noted_at = models.DateTimeField(_("noted at"), auto_now_add=True)

    class Meta:
        verbose_name = _("name left upstream")
        verbose_name_plural = _("names left upstream")
        default_permissions = ("view",)

    def __str__(self) -> str:
        return self.digest


class IndexStatistics(models.Model):
    """How much of one user and scope the keyword index holds: BM25 weighs words by these, never by others' text."""

    user = models.ForeignKey(MemoryUser, models.CASCADE, verbose_name=_("user"), related_name="+")
    app_id = models.CharField(_("app id"), max_length=64)
    project_id = models.CharField(_("project id"), max_length=64)
    documents = models.BigIntegerField(_("documents"), default=0)
    tokens = models.BigIntegerField(_("tokens"), default=0)

    class Meta:
        verbose_name = _("index statistics")
        verbose_name_plural = _("index statistics")
        constraints = [models.UniqueConstraint(fields=["user", "app_id", "project_id"], name="statistics_of_one_user")]

    def __str__(self) -> str:
        return f"{self.user_id} {self.app_id}/{self.project_id}"


class IndexVersion(models.Model):
    """Which tokenizer built the keyword index: one row. Another version in the code means a rebuild."""

    tokenizer = models.CharField(_("tokenizer"), max_length=32)
    built_at = models.DateTimeField(_("built at"), auto_now=True)

    class Meta:
        verbose_name = _("index version")
        verbose_name_plural = _("index versions")

    def __str__(self) -> str:
        return self.tokenizer
