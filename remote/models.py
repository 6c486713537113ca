from django.db import models
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from accounts.models import MemoryUser
from core.persistence.checked_rows import CheckedModel
from core.persistence.json_field import ReadableJSONField
from store.models import Owned, Session


class OutboxEntry(CheckedModel, Owned):
    """A message that waits for a remote, is being sent to it, or is there.

    `memory_ids` are its memories here. `message` is its content as JSON, empty once it may not be sent again.
    `time_ms` and `span_ms` are the time that identifies it at the remote: no other message of its session has it.
    """

    class State(models.TextChoices):
        """`UNCONFIRMED`: sent, outcome unknown. `BUFFERED`: the next flush takes it. `REFUSED`: kept here, see `cause`.

        `WITHHELD`: never sent, because it was deleted or edited before, or the remote takes no such message. `PURGED`:
        a memory of it was purged, so it is never sent again.
        """

        PENDING = "pending", _("Pending")
        UNCONFIRMED = "unconfirmed", _("Unconfirmed")
        BUFFERED = "buffered", _("Buffered")
        FLUSHED = "flushed", _("Flushed")
        REFUSED = "refused", _("Refused")
        WITHHELD = "withheld", _("Withheld")
        PURGED = "purged", _("Purged")

    # The indexes below begin with user and session.
    user = models.ForeignKey(MemoryUser, models.CASCADE, verbose_name=_("user"), related_name="+", db_index=False)
    session = models.ForeignKey(
        Session, models.CASCADE, verbose_name=_("session"), related_name="outbox", db_index=False
    )
    base_url = models.CharField(
        _("base URL"), max_length=500, blank=True, help_text=_("The remote; empty if sent before this was recorded.")
    )
    message_id = models.CharField(_("message ID"), max_length=128)
    memory_ids = ReadableJSONField(_("memory IDs"), default=list, blank=True)
    category = models.CharField(_("category"), max_length=40, blank=True)
    agent_id = models.CharField(_("agent ID"), max_length=64, blank=True)
    message = ReadableJSONField(_("message"), default=dict, blank=True)
    time_ms = models.BigIntegerField(_("time ms"))
    span_ms = models.IntegerField(_("span ms"), default=1)
    state = models.CharField(_("state"), max_length=12, choices=State)
    call_id = models.CharField(_("call ID"), max_length=64, blank=True, help_text=_("Of an unconfirmed call."))
    flush_id = models.CharField(_("flush ID"), max_length=64, blank=True, help_text=_("Of the flush that took it."))
    cause = models.CharField(
        _("cause"), max_length=500, blank=True, default="", help_text=_("Why the remote refused it.")
    )
    recorded_at = models.DateTimeField(_("recorded at"), default=timezone.now, editable=False)
    sent_at = models.DateTimeField(
        _("sent at"), null=True, blank=True, help_text=_("When an unconfirmed message was first sent.")
    )

    class Meta:
        verbose_name = _("outbox entry")
        verbose_name_plural = _("outbox entries")
        ordering = ("-id",)
        default_permissions = ("view",)
        constraints = [
            # Read by each add.
            models.UniqueConstraint(fields=["session", "message_id", "base_url"], name="outbox_once")
        ]
        indexes = [
            # Read by erasures and exports, and to find the memories of a message by its former id.
            models.Index(fields=["user", "message_id"], name="outbox_by_id"),
            # Read by each add for free times, by flushes, and by searches for unprocessed messages of the remote.
            models.Index(fields=["session", "time_ms"], name="outbox_in_session"),
            # Read by searches for memories of other remotes.
            models.Index(fields=["user", "base_url"], name="outbox_by_remote"),
            # Read by the delivery.
            models.Index(fields=["user", "session"], condition=Q(state="pending"), name="outbox_pending"),
            # Read by the retry of deliveries, and by the check for messages that are no longer retried.
            models.Index(fields=["sent_at"], condition=Q(state="unconfirmed"), name="outbox_unconfirmed"),
            # Read for the files of unsent and unconfirmed messages, which must stay.
            models.Index(
                fields=["user"], condition=Q(state__in=("pending", "unconfirmed")), name="outbox_waiting_user"
            ),
            # Read by the page of the remote and by checks.
            models.Index(fields=["id"], condition=Q(state="refused"), name="outbox_refused"),
            # Read by the page of the remote, which counts them (`remote.queries.summary`).
            models.Index(fields=["base_url"], condition=Q(state="withheld"), name="outbox_withheld"),
            # Read by the retry of flushes, and by searches for messages that the remote finds.
            models.Index(fields=["session"], condition=Q(state="buffered"), name="outbox_buffered"),
        ]

    def __str__(self) -> str:
        return self.message_id


class Resend(models.Model):
    """A session that is sent again, under a new id; or was, and has former memories that a user decided about.

    Until it ends, the memories that the remote derived before stand for the session (`remote.resend`). `former_ids` are
    the ids that the session had at the remote.
    """

    session = models.OneToOneField(Session, models.CASCADE, verbose_name=_("session"), related_name="resend")
    # Read by each search, for memories that the remote is not asked for.
    user = models.ForeignKey(MemoryUser, models.CASCADE, verbose_name=_("user"), related_name="+")
    base_url = models.CharField(_("base URL"), max_length=500)
    former_ids = ReadableJSONField(_("former IDs"), default=list)
    began_at = models.DateTimeField(_("began at"), default=timezone.now, editable=False)
    ended_at = models.DateTimeField(_("ended at"), null=True, blank=True)

    class Meta:
        verbose_name = _("session sent again")
        verbose_name_plural = _("sessions sent again")
        ordering = ("-id",)
        default_permissions = ("view",)

    def __str__(self) -> str:
        return str(self.session_id)
