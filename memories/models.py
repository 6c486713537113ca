from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from accounts.models import MemoryUser
from store.ledger import Override, OverrideRevision, Tombstone, new_override_id, new_tombstone_id

# The decisions are made below this app too; their tables belong to it. Migrations name the two functions.
__all__ = [
    "LoggedSearch", "Override", "OverrideRevision", "ReturnedMemory", "SearchCount", "Tombstone", "new_override_id",
    "new_tombstone_id",
]  # fmt: skip


class LoggedSearch(models.Model):
    """A search of an agent or application. `hits` does not count profiles and unprocessed messages.

    `agent_id` is the searching agent, or over REST the agent whose memories were searched. `options` are the parameters
    that differ from their defaults, besides those with a column. `query` is empty unless queries are logged, and cut.
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
    options = models.JSONField(_("options"), default=dict, db_default={}, blank=True)
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


class ReturnedMemory(models.Model):
    """A memory that a logged search returned, at a rank from 1.

    `row` is the primary key of the memory, without a constraint: the memory may be gone, and its number says nothing.
    It is empty for a memory of the remote alone. `version` is the number of edits that it had: 0 for the original text.
    """

    search = models.ForeignKey(
        LoggedSearch, models.CASCADE, verbose_name=_("logged search"), related_name="returned", db_index=False
    )
    rank = models.PositiveIntegerField(_("rank"))
    row = models.BigIntegerField(_("row"), null=True, blank=True)
    version = models.PositiveIntegerField(_("version"), default=0)

    class Meta:
        verbose_name = _("returned memory")
        verbose_name_plural = _("returned memories")
        ordering = ("search", "rank")
        default_permissions = ("view",)
        indexes = [
            # The results of a search, and what is deleted with it.
            models.Index(fields=["search", "rank"], name="returned_by_search"),
            # The searches that returned a memory, the latest first.
            models.Index(fields=["row", "search"], name="returned_of_row"),
        ]

    def __str__(self) -> str:
        return f"{self.search_id} {self.rank}"


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
