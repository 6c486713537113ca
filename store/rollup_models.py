"""Counts of live memories: written by the database's triggers (`store.rollup_triggers`), read by `store.browse`.

On PostgreSQL a change is a row of its own (`delta` is its number) until `store.rollups.settle` adds it to the row
whose `delta` is 0, so that writers never wait for each other. Who reads sums them up.
"""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _


class HourCount(models.Model):
    """How many memories there are in a span of hours, by one way of asking (`slice`).

    A span is 1, 24, 192 or 768 hours long, and number `start` of its length since 1970 in UTC. `key` is what is asked
    for (all: "", a user, an agent), `member` what the answer is broken down to; see `store.rollups.Slice`.
    """

    slice = models.SmallIntegerField(_("slice"))
    key = models.CharField(_("key"), max_length=64)
    span = models.SmallIntegerField(_("span"))
    start = models.IntegerField(_("start"))
    member = models.CharField(_("member"), max_length=64)
    category = models.CharField(_("category"), max_length=40)
    app_id = models.CharField(_("app id"), max_length=64)
    project_id = models.CharField(_("project id"), max_length=64)
    delta = models.BigIntegerField(_("delta"), default=0)
    memories = models.BigIntegerField(_("memories"))
    low = models.BigIntegerField(_("low"), help_text=_("How many of importance below 0.34."))
    mid = models.BigIntegerField(_("mid"))
    high = models.BigIntegerField(_("high"), help_text=_("How many of importance 0.67 or more."))
    weight = models.BigIntegerField(_("weight"), help_text=_("The sum of their importance in millionths."))

    class Meta:
        verbose_name = _("hour count")
        verbose_name_plural = _("hour counts")
        default_permissions = ("view",)
        constraints = [
            models.UniqueConstraint(
                fields=["slice", "key", "span", "start", "member", "category", "app_id", "project_id", "delta"],
                name="hour_count_once",
            )
        ]
        indexes = [
            models.Index(fields=["id"], condition=models.Q(memories__lte=0), name="hour_count_empty"),
            models.Index(fields=["id"], condition=~models.Q(delta=0), name="hour_count_unsettled"),
        ]

    def __str__(self) -> str:
        return f"{self.slice} {self.key} {self.span} {self.start} {self.member}"


class SessionCount(models.Model):
    """How many memories a session has, of all agents (`of_agent` false) and of each, and when the first and last were.

    After deletions that time may be longer than need be, never shorter.
    """

    # No foreign key: the triggers would count the rows that a cascade has yet to delete.
    session_row = models.BigIntegerField(_("session row"))
    of_agent = models.BooleanField(_("of agent"))
    agent_id = models.CharField(_("agent id"), max_length=64)
    delta = models.BigIntegerField(_("delta"), default=0)
    memories = models.BigIntegerField(_("memories"))
    first_ms = models.BigIntegerField(_("first ms"))
    last_ms = models.BigIntegerField(_("last ms"))

    class Meta:
        verbose_name = _("session count")
        verbose_name_plural = _("session counts")
        default_permissions = ("view",)
        constraints = [
            models.UniqueConstraint(fields=["session_row", "of_agent", "agent_id", "delta"], name="session_count_once")
        ]
        indexes = [
            models.Index(
                fields=["of_agent", "agent_id", "-memories", "-session_row", "first_ms", "last_ms", "delta"],
                name="session_count_most",
            ),
            models.Index(fields=["of_agent", "agent_id", "last_ms", "first_ms", "delta"], name="session_count_ends"),
            models.Index(fields=["id"], condition=models.Q(memories__lte=0), name="session_count_empty"),
            models.Index(fields=["id"], condition=~models.Q(delta=0), name="session_count_unsettled"),
        ]

    def __str__(self) -> str:
        return f"{self.session_row} {self.agent_id}"
