"""What a language model has still to read."""

from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from accounts.models import MemoryUser


class OwedExtraction(models.Model):
    """What was said in a session, from the flush that owes it until a model has read it; without a session the user's
    profile, which has to be written anew.

    `after_seq` is the last place that was read, `until_seq` the last that is to be (None: the end of the batch).
    `attempts` counts what failed for the endpoint's sake, `refusals` what failed for the text's; `given_up_at` says
    that it is tried no more.
    """

    user = models.ForeignKey(MemoryUser, models.CASCADE, verbose_name=_("user"), related_name="+")
    app_id = models.CharField(_("app id"), max_length=64)
    project_id = models.CharField(_("project id"), max_length=64)
    session = models.ForeignKey("store.Session", models.CASCADE, verbose_name=_("session"), null=True, related_name="+")
    batch_id = models.CharField(_("batch id"), max_length=64, blank=True)
    after_seq = models.IntegerField(_("after seq"), default=-1)
    until_seq = models.IntegerField(_("until seq"), null=True)
    attempts = models.IntegerField(_("attempts"), default=0)
    refusals = models.IntegerField(_("refusals"), default=0)
    retry_at = models.DateTimeField(_("retry at"), null=True)
    last_error = models.CharField(_("last error"), max_length=300, blank=True)
    given_up_at = models.DateTimeField(_("given up at"), null=True)
    created_at = models.DateTimeField(_("created at"), auto_now_add=True)

    class Meta:
        verbose_name = _("owed extraction")
        verbose_name_plural = _("owed extractions")
        ordering = ("id",)
        constraints = [
            models.UniqueConstraint(
                fields=["user", "app_id", "project_id"],
                condition=Q(session__isnull=True),
                name="one_owed_profile_of_one_user",
            )
        ]
        indexes = [
            models.Index(fields=["id"], condition=Q(given_up_at__isnull=True), name="extraction_owed"),
        ]

    def __str__(self) -> str:
        return f"{self.user_id} {self.session_id} {self.batch_id}"
