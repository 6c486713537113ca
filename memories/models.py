import secrets

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from accounts.models import MemoryUser
from core.persistence.checked_rows import CheckedModel
from store.models import Memory, Owned


def new_tombstone_id() -> str:
    return f"t_{secrets.token_hex(16)}"


def new_override_id() -> str:
    return f"o_{secrets.token_hex(16)}"


class Decision(CheckedModel, Owned):
    """A decision about a user's memory, with its actor. It is active until `undone_at`, when `undone_by` ended it."""

    session_id = models.CharField(_("session ID"), max_length=128, blank=True)
    # Purging a memory deletes its decisions too, above all the texts of overrides.
    row = models.ForeignKey(
        Memory, models.CASCADE, verbose_name=_("row"), null=True, blank=True, related_name="+", editable=False
    )
    actor_kind = models.CharField(_("actor type"), max_length=16)
    actor = models.CharField(_("actor"), max_length=150, blank=True)
    created_at = models.DateTimeField(_("created at"), auto_now_add=True)
    undone_at = models.DateTimeField(_("undone at"), null=True, blank=True)
    undone_by_kind = models.CharField(_("undone by, type"), max_length=16, blank=True, default="", db_default="")
    undone_by = models.CharField(_("undone by"), max_length=150, blank=True, default="", db_default="")

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


class OverrideRevision(CheckedModel):
    """A text of an overridden memory: number 0 is the engine's, the highest number is the current one."""

    override = models.ForeignKey(Override, models.CASCADE, verbose_name=_("override"), related_name="revisions")
    number = models.PositiveIntegerField(_("number"))
    text = models.TextField(_("text"))
    category = models.CharField(_("category"), max_length=40, blank=True)
    importance = models.FloatField(_("importance"), null=True, blank=True)
    reason = models.CharField(_("reason"), max_length=200, blank=True, default="", db_default="")
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


class LoggedSearch(models.Model):
    """A search of an agent or application. `hits` does not count profiles and unprocessed messages.

    `agent_id` is the searching agent, or over REST the agent whose memories were searched. `query` is empty unless
    queries are logged, and cut.
    """

    class Interface(models.TextChoices):
        REST = "rest", "REST"
        TOOLS = "tools", _("Agent tools (HTTP)")
        MCP = "mcp", "MCP"
        RPC = "rpc", "RPC"

    user = models.ForeignKey(MemoryUser, models.CASCADE, verbose_name=_("user"), related_name="+", db_index=False)
    app_id = models.CharField(_("app ID"), max_length=64)
    project_id = models.CharField(_("project ID"), max_length=64)
    at = models.DateTimeField(_("time"))
    interface = models.CharField(_("interface"), max_length=5, choices=Interface)
    agent_id = models.CharField(_("agent ID"), max_length=64, blank=True)
    scopes = models.CharField(_("search scopes"), max_length=64, help_text=_("Separated by spaces."))
    conversation_id = models.CharField(_("conversation ID"), max_length=128, blank=True)
    method = models.CharField(_("method"), max_length=8)
    top_k = models.PositiveSmallIntegerField(_("results per scope"))
    radius = models.FloatField(_("minimum similarity"), null=True, blank=True)
    has_filters = models.BooleanField(_("has filters"))
    hits = models.PositiveIntegerField(_("hits"))
    ms = models.FloatField(_("milliseconds"))
    query_chars = models.PositiveIntegerField(_("length of the query"))
    query = models.TextField(_("query"), blank=True)
    request_id = models.CharField(_("request ID"), max_length=64, blank=True)

    class Meta:
        verbose_name = _("logged search")
        verbose_name_plural = _("logged searches")
        ordering = ("-at", "-id")
        default_permissions = ("view",)
        indexes = [
            models.Index(fields=["at"], name="search_by_time"),
            models.Index(fields=["user", "at"], name="search_of_user"),
            models.Index(fields=["agent_id", "at"], name="search_of_agent"),
            models.Index(fields=["interface", "at"], name="search_of_interface"),
            models.Index(fields=["at"], condition=Q(hits=0), name="search_without_hits"),
        ]

    def __str__(self) -> str:
        return f"{self.interface} {self.at:%Y-%m-%d %H:%M:%S}"


class SearchCount(models.Model):
    """The number of logged searches of all users in an hour that took about the same time.

    `hour` counts UTC hours since 1970; `duration` is the whole part of the logarithm of the milliseconds to the base
    `search_log.DURATION_BASE`.
    """

    hour = models.IntegerField(_("hour"))
    duration = models.SmallIntegerField(_("duration"))
    searches = models.PositiveIntegerField(_("searches"))
    without_hits = models.PositiveIntegerField(_("searches without hits"))

    class Meta:
        verbose_name = _("search count")
        verbose_name_plural = _("search counts")
        default_permissions = ("view",)
        constraints = [models.UniqueConstraint(fields=["hour", "duration"], name="search_count_of_hour")]

    def __str__(self) -> str:
        return f"{self.hour} {self.duration}"
