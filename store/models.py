from datetime import datetime
from typing import Any, Final
from uuid import UUID

from django.db import models
from django.db.models import Q, TextChoices
from django.utils.translation import gettext_lazy as _

from accounts.models import MemoryUser
from core.background.leases import Claimable
from core.background.model_calls import PendingCall
from core.ids import MAX_USER_ID_CHARS
from core.localization import MessageField
from core.persistence.checked_rows import CheckedModel
from core.persistence.json_field import ReadableJSONField
from core.persistence.sql import uuid_value
from store.types import Owner


class State(TextChoices):
    """The own state of a memory, session or resource, which follows from its open decisions (`store.states`).

    A purged memory is an empty row that keeps its id, so that the same memory is not stored again. Writes to a purged
    session are refused.
    """

    LIVE = "live", _("Live")
    TRASHED = "trashed", _("In trash")
    SUPERSEDED = "superseded", _("Superseded")
    EXPIRED = "expired", _("Expired")
    PURGED = "purged", _("Purged")


def state_field() -> "models.CharField[str, str]":
    """Return the column of a row's state."""
    return models.CharField(
        _("state"), max_length=10, choices=State, default=State.LIVE, db_default=State.LIVE, editable=False
    )


def state_since_field() -> "models.DateTimeField[datetime | None, datetime | None]":
    """Return the column of the time of a row's state."""
    return models.DateTimeField(
        _("state since"),
        null=True,
        blank=True,
        editable=False,
        help_text=_("When the row got its state; null while it is live."),
    )


IS_PURGED: Final = Q(state=State.PURGED)
"""Rows without a memory, which are not listed."""
IN_LIVE_SESSION: Final = Q(session=None) | Q(session__state=State.LIVE)
"""Memories whose session is not deleted."""
NOT_INCOGNITO: Final = Q(session=None) | Q(session__incognito_until=None)
"""The condition on memories that other sessions than their own find."""
IS_LIVE: Final = IN_LIVE_SESSION & Q(state=State.LIVE)
"""Memories that are not deleted, by themselves or with their session."""


def owned_by(owner: Owner) -> models.Q:
    """Return the condition on user and scope, which every query of memories and sessions needs."""
    return models.Q(user_id=owner.user_pk, app_id=owner.app_id, project_id=owner.project_id)


def owner_columns(owner: Owner) -> dict[str, Any]:
    """Return the columns by which rows belong to the owner."""
    return {"user_id": owner.user_pk, "app_id": owner.app_id, "project_id": owner.project_id}


def owner_values(owner: Owner) -> list[UUID | str]:
    """Return the values of `user_id = %s AND app_id = %s AND project_id = %s`."""
    return [uuid_value(owner.user_pk), owner.app_id, owner.project_id]


class Session(CheckedModel):
    """A session of one user in one scope: two users' `chat:c1` are two rows."""

    class Kind(models.TextChoices):
        CHAT = "chat", _("Chat")
        RESOURCE = "resource", _("Resource")
        MEMORY_EDIT = "memory_edit", _("Memory edit")
        OTHER = "other", _("Other")

    # No separate index, because others begin with this column. The same holds for a memory's user and session.
    user = models.ForeignKey(
        MemoryUser, models.CASCADE, verbose_name=_("user"), related_name="sessions", db_index=False
    )
    app_id = models.CharField(_("app ID"), max_length=64, default="default")
    project_id = models.CharField(_("project ID"), max_length=64, default="default")
    session_id = models.CharField(_("session ID"), max_length=128)
    engine_session_id = models.CharField(
        _("engine session ID"),
        max_length=128,
        help_text=_("Equals the session ID, unless another user already has that ID in the engine."),
    )
    kind = models.CharField(_("kind"), max_length=12, choices=Kind)
    created_at = models.DateTimeField(_("created at"), auto_now_add=True)
    flushed_at = models.DateTimeField(_("flushed at"), null=True, blank=True)
    searchable_at = models.DateTimeField(_("searchable at"), null=True, blank=True)
    retry_at = models.DateTimeField(
        _("retry at"), null=True, blank=True, help_text=_("When unconfirmed calls are retried.")
    )
    state = state_field()
    state_since = state_since_field()
    expires_at = models.DateTimeField(_("expires at"), null=True, blank=True, default=None)
    incognito_until = models.DateTimeField(
        _("incognito until"),
        null=True,
        blank=True,
        default=None,
        help_text=_("When an incognito session ends; null for other sessions."),
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
                condition=~models.Q(state="live"),
                name="session_closed",
            ),
            models.Index(
                fields=["user", "state", "expires_at"],
                condition=models.Q(expires_at__isnull=False),
                name="session_by_expiry",
            ),
            # Those that have ended.
            models.Index(
                fields=["incognito_until"],
                condition=models.Q(incognito_until__isnull=False),
                name="session_incognito",
            ),
            # Those whose texts other sessions do not find.
            models.Index(
                fields=["user", "app_id", "project_id"],
                condition=models.Q(incognito_until__isnull=False) & ~models.Q(state="purged"),
                name="session_incognito_of",
            ),
        ]

    def __str__(self) -> str:
        return self.session_id

    @property
    def owner(self) -> Owner:
        """Return the user and scope of the session. Select `user` with the session to save a query."""
        return Owner(self.user_id, self.user.user_id, self.app_id, self.project_id)


_LIVE = models.Q(state="live")


class Memory(CheckedModel):
    """A memory of one user, or a copy of one that a remote derived.

    `seq` orders a session's memories, `created_at_ms` is when the message was sent (Unix milliseconds). `batch_id` is
    the flush (the turn), `chunk_index` the number of a passage in its file. `is_indexed`: the keyword index holds its
    tokens, `token_count` of them.
    Derived memories name their `sources` and the memories that they replace (`supersedes`), both by memory id;
    `original_text` is what the model wrote. `is_covered` and `is_replaced`: see `store.cover`.
    `stored_at_ms`: see `store.as_of`. `payload` is the engine's own data, and the `tags`, `metadata` and `external_id`
    of the caller.
    """

    class Type(models.TextChoices):
        EPISODE = "episode", _("Episode")
        PROFILE = "profile", _("Profile")
        AGENT_CASE = "agent_case", _("Agent case")
        AGENT_SKILL = "agent_skill", _("Agent skill")
        UNPROCESSED_MESSAGE = "unprocessed_message", _("Unprocessed message")

    class Origin(models.TextChoices):
        EMBEDDED = "embedded", _("Embedded")
        REMOTE = "upstream", _("Remote")
        PANEL = "panel", _("Panel")
        TOOL = "tool", _("Tool")
        EXTRACTED = "extracted", _("Extracted")

    # A cascade would delete rows whose entries the derived stores keep: `store.writes.remove` removes both.
    user = models.ForeignKey(
        MemoryUser, models.PROTECT, verbose_name=_("user"), related_name="memories", db_index=False
    )
    app_id = models.CharField(_("app ID"), max_length=64, default="default")
    project_id = models.CharField(_("project ID"), max_length=64, default="default")
    memory_id = models.CharField(_("memory ID"), max_length=256)
    session = models.ForeignKey(
        Session,
        models.PROTECT,
        verbose_name=_("session"),
        null=True,
        blank=True,
        related_name="memories",
        db_index=False,
    )
    agent_id = models.CharField(_("agent ID"), max_length=64, blank=True)
    memory_type = models.CharField(_("memory type"), max_length=20, choices=Type)
    category = models.CharField(_("category"), max_length=40, blank=True)
    sender_id = models.CharField(_("sender ID"), max_length=MAX_USER_ID_CHARS, blank=True)
    speaker = models.CharField(
        _("speaker"), max_length=64, blank=True, help_text=_("The speaker's name as questions use it.")
    )
    text = models.TextField(_("text"))
    original_text = models.TextField(
        _("original text"), blank=True, help_text=_("Text written by a model; empty for other memories.")
    )
    importance = models.FloatField(_("importance"), null=True, blank=True)
    batch_id = models.CharField(_("batch ID"), max_length=64, blank=True)
    seq = models.IntegerField(_("seq"), default=0)
    chunk_index = models.IntegerField(_("chunk index"), null=True, blank=True)
    sources = ReadableJSONField(_("sources"), default=list, blank=True)
    supersedes = ReadableJSONField(_("supersedes"), default=list, blank=True)
    payload = ReadableJSONField(_("payload"), default=dict, blank=True)
    created_at_ms = models.BigIntegerField(_("created at ms"))
    origin = models.CharField(_("origin"), max_length=10, choices=Origin, default=Origin.EMBEDDED)
    is_covered = models.BooleanField(
        _("is covered"),
        default=False,
        db_default=False,
        help_text=_("A derived memory of the remote is shown in its place."),
    )
    is_replaced = models.BooleanField(
        _("is replaced"),
        default=False,
        db_default=False,
        help_text=_("A user edited that memory, so it is shown without the remote too."),
    )
    is_indexed = models.BooleanField(_("is indexed"), default=False)
    token_count = models.IntegerField(_("token count"), default=0)
    state = state_field()
    state_since = state_since_field()
    expires_at = models.DateTimeField(_("expires at"), null=True, blank=True, default=None)
    stored_at_ms = models.BigIntegerField(_("stored at ms"), null=True, blank=True, default=None, editable=False)

    class Meta:
        verbose_name = _("memory")
        verbose_name_plural = _("memories")
        ordering = ("-id",)
        # The id comes first: operators look memories up without user, users without scope.
        constraints = [
            models.UniqueConstraint(fields=["memory_id", "user", "app_id", "project_id"], name="memory_of_one_user")
        ]
        indexes = [
            # Lists of a user, and times that are taken when messages are added.
            models.Index(fields=["user", "created_at_ms", "id"], name="memory_of_user"),
            # A session's lists, neighbors and next `seq`.
            models.Index(fields=["session", "seq"], name="memory_in_session"),
            # The task that indexes what is pending.
            models.Index(
                fields=["id"],
                condition=models.Q(is_indexed=False) & ~models.Q(state="purged"),
                name="memory_not_indexed",
            ),
            # What a remote covers, read when its state changes.
            models.Index(fields=["user", "session"], condition=models.Q(is_covered=True), name="memory_covered"),
            models.Index(fields=["session"], condition=models.Q(is_replaced=True), name="memory_replaced"),
            # What each search leaves out.
            models.Index(
                fields=["user", "app_id", "project_id"],
                condition=models.Q(is_indexed=True)
                & (~_LIVE | models.Q(memory_type="unprocessed_message") | models.Q(memory_type="profile")),
                name="memory_set_apart",
            ),
            # Lists of all users, newest or oldest first, and their counts; without the trash.
            models.Index(fields=["created_at_ms", "id"], condition=_LIVE, name="memory_browsed_time"),
            models.Index(fields=["category", "created_at_ms", "id"], condition=_LIVE, name="memory_browsed_category"),
            models.Index(fields=["agent_id", "created_at_ms", "id"], condition=_LIVE, name="memory_browsed_agent"),
            models.Index(
                fields=["agent_id", "category", "created_at_ms", "id"],
                condition=_LIVE,
                name="memory_browsed_agent_category",
            ),
            models.Index(fields=["batch_id", "created_at_ms", "id"], condition=_LIVE, name="memory_browsed_turn"),
            # The rare values only: others are found in lists of all memories.
            models.Index(
                fields=["origin", "created_at_ms", "id"],
                condition=_LIVE & ~models.Q(origin="embedded"),
                name="memory_of_origin",
            ),
            models.Index(
                fields=["memory_type", "created_at_ms", "id"],
                condition=_LIVE & ~models.Q(memory_type="episode"),
                name="memory_of_type",
            ),
            models.Index(
                fields=["category", "created_at_ms", "id", "importance"],
                condition=_LIVE & models.Q(importance__isnull=False),
                name="memory_browsed_importance",
            ),
            # The trash.
            models.Index(fields=["created_at_ms", "id"], condition=~_LIVE, name="memory_in_trash"),
            # What expires soonest of all users.
            models.Index(
                fields=["expires_at"], condition=models.Q(expires_at__isnull=False), name="memory_by_time_of_expiry"
            ),
            # What expires next.
            models.Index(
                fields=["user", "state", "expires_at"],
                condition=models.Q(expires_at__isnull=False),
                name="memory_by_expiry",
            ),
        ]

    def __str__(self) -> str:
        return self.memory_id

    @property
    def is_edited(self) -> bool:
        """Return True if a user edited the text of a derived memory."""
        return self.text != self.original_text


MANUAL_ORIGINS = (Memory.Origin.PANEL, Memory.Origin.TOOL)
"""Origins of memories that an operator or a tool wrote. If such a memory names an agent, only that agent finds it."""


class Owned(models.Model):
    """A row about the memories of one user and scope."""

    user = models.ForeignKey(MemoryUser, models.CASCADE, verbose_name=_("user"), related_name="+")
    app_id = models.CharField(_("app ID"), max_length=64)
    project_id = models.CharField(_("project ID"), max_length=64)

    class Meta:
        abstract = True

    @property
    def owner(self) -> Owner:
        """Return the user and scope of the row. Select `user` with the row to save a query."""
        return Owner(self.user_id, self.user.user_id, self.app_id, self.project_id)


class Attribute(models.Model):
    """A tag or a value of the metadata of a memory, for filters; written by `store.attributes`.

    `owner` is a hash of user and scope. `name` is that of the filter, `value` sorts by bytes within its type.
    """

    memory = models.ForeignKey(Memory, models.CASCADE, verbose_name=_("memory"), related_name="+")
    owner = models.CharField(_("owner"), max_length=16)
    name = models.CharField(_("name"), max_length=320)
    value = models.BinaryField(_("value"))

    class Meta:
        verbose_name = _("attribute")
        verbose_name_plural = _("attributes")
        default_permissions = ("view",)
        constraints = [
            models.UniqueConstraint(fields=["owner", "name", "value", "memory"], name="attribute_of_one_memory")
        ]
        indexes = [models.Index(fields=["value", "memory"], condition=models.Q(name="tags"), name="attribute_by_tag")]

    def __str__(self) -> str:
        return f"{self.name} of {self.memory_id}"


class ExternalId(CheckedModel, Owned):
    """The digest of an id that an application gave a memory. It stays when the memory is purged.

    So the application never stores again what a person deleted. `application` is the client of an OAuth connection,
    empty for the user's own keys, which may be rotated. Keeps no text: the id itself is in the memory's `payload`.
    """

    application = models.CharField(_("application"), max_length=64, blank=True)
    digest = models.CharField(_("digest"), max_length=64)
    memory_id = models.CharField(_("memory ID"), max_length=256)
    created_at = models.DateTimeField(_("created at"), auto_now_add=True)

    class Meta:
        verbose_name = _("external ID")
        verbose_name_plural = _("external IDs")
        default_permissions = ("view",)
        constraints = [
            models.UniqueConstraint(
                fields=["user", "app_id", "project_id", "application", "digest"], name="external_id_of_one_memory"
            )
        ]

    def __str__(self) -> str:
        return self.memory_id


class Residue(models.Model):
    """The digest of an erased user id or session whose data a remote still holds."""

    digest = models.CharField(_("digest"), primary_key=True, max_length=64)
    noted_at = models.DateTimeField(_("noted at"), auto_now_add=True)

    class Meta:
        verbose_name = _("residue of a remote")
        verbose_name_plural = _("residue of remotes")
        default_permissions = ("view",)

    def __str__(self) -> str:
        return self.digest


class PendingDeletion(models.Model):
    """Data that a remote has to delete: ids only, because the rows that named it are removed.

    `owner_id` is a user of the remote at `base_url`, or an agent (`is_agent`). The row names a memory, or all that the
    owner has in a session; of an agent without a session, everything. `user_key` is of the user, who may be erased.
    """

    base_url = models.CharField(_("base URL"), max_length=500)
    user_key = models.UUIDField(_("user key"), db_index=True)
    app_id = models.CharField(_("app ID"), max_length=64)
    project_id = models.CharField(_("project ID"), max_length=64)
    owner_id = models.CharField(_("owner ID"), max_length=128)
    is_agent = models.BooleanField(_("is agent"), default=False)
    engine_session_id = models.CharField(_("engine session ID"), max_length=128, blank=True)
    memory_id = models.CharField(_("memory ID"), max_length=256, blank=True)
    queued_at = models.DateTimeField(_("queued at"))
    attempts = models.IntegerField(_("attempts"), default=0)
    retry_at = models.DateTimeField(_("retry at"))
    accepted_at = models.DateTimeField(_("accepted at"), null=True, help_text=_("When the engine accepted it."))
    accepted_count = models.IntegerField(_("accepted count"), default=0, help_text=_("As the engine counts."))

    class Meta:
        verbose_name = _("pending deletion")
        verbose_name_plural = _("pending deletions")
        ordering = ("id",)
        constraints = [
            models.UniqueConstraint(
                fields=["base_url", "owner_id", "app_id", "project_id", "engine_session_id", "memory_id"],
                name="pending_deletion_once",
            ),
            # A user's name alone would also mean a later user of the same name.
            models.CheckConstraint(
                condition=Q(is_agent=True) | ~Q(engine_session_id="") | ~Q(memory_id=""),
                name="pending_deletion_not_of_all",
            ),
        ]
        indexes = [
            models.Index(fields=["retry_at"], condition=Q(accepted_at__isnull=True), name="pending_deletion_due"),
        ]

    def __str__(self) -> str:
        return f"{self.owner_id} {self.engine_session_id} {self.memory_id}"


class IndexStatistics(Owned):
    """The size of the keyword index of one user and scope. BM25 uses no other user's text."""

    documents = models.BigIntegerField(_("documents"), default=0)
    tokens = models.BigIntegerField(_("tokens"), default=0)
    tokenizer = models.CharField(
        _("tokenizer"),
        max_length=32,
        default="",
        db_default="",
        help_text=_("The version that wrote all entries; empty if several did, with … while they are rewritten."),
    )

    class Meta:
        verbose_name = _("index statistics")
        verbose_name_plural = _("index statistics")
        constraints = [models.UniqueConstraint(fields=["user", "app_id", "project_id"], name="statistics_of_one_user")]

    def __str__(self) -> str:
        return f"{self.user_id} {self.app_id}/{self.project_id}"


# Pages of 256 memories that a search reads as a whole, vectors, and the backlogs of embedding and extraction.


class FactPage(Owned):
    """The facts that rank up to 256 indexed memories of one user and scope; written by `store.index.fact_pages`."""

    number = models.IntegerField(_("number"))
    facts = models.BinaryField(_("facts"))
    names = models.TextField(_("names"))
    # The default is the layout of the pages that were written before layouts had numbers.
    layout = models.BigIntegerField(_("layout"), db_default=1_187_811_388)

    class Meta:
        verbose_name = _("fact page")
        verbose_name_plural = _("fact pages")
        constraints = [
            models.UniqueConstraint(fields=["user", "app_id", "project_id", "number"], name="fact_page_of_one_user")
        ]

    def __str__(self) -> str:
        return f"{self.user_id} {self.app_id}/{self.project_id} {self.number}"


class EmbeddingSpace(models.Model):
    """The vectors of one model with one number of dimensions. Searches use the active space only.

    `knows_other_scripts`: a test showed that the model distinguishes Chinese sentences; None before the test.
    `reduction` is the matrix for vectors of tokens (`store.vectors.token_vectors`); None for a space without them.
    """

    model = models.CharField(_("model"), max_length=200)
    dimensions = models.IntegerField(
        _("dimensions"), help_text=_("0 until the first vector arrives, if the settings give no number.")
    )
    sends_dimensions = models.BooleanField(
        _("sends dimensions"), default=False, help_text=_("Whether requests ask the model for this number.")
    )
    is_active = models.BooleanField(_("is active"), default=False)
    knows_other_scripts = models.BooleanField(_("supports other scripts"), null=True)
    reduction = models.BinaryField(_("reduction"), null=True)
    last_error = MessageField(_("last error"), blank=True)
    failed_at = models.DateTimeField(_("failed at"), null=True, blank=True)
    created_at = models.DateTimeField(_("created at"), auto_now_add=True)

    class Meta:
        verbose_name = _("embedding space")
        verbose_name_plural = _("embedding spaces")
        constraints = [
            models.UniqueConstraint(
                fields=["is_active"], condition=models.Q(is_active=True), name="one_active_embedding_space"
            )
        ]

    def __str__(self) -> str:
        return f"{self.model} ({self.dimensions})"


class Embedding(models.Model):
    """A memory's vector of length 1, as half-precision floats, and the digest of the text that it was computed from.

    `vector` is empty if the model does not support the script of the text, or refused the text.
    """

    memory = models.ForeignKey(Memory, models.CASCADE, verbose_name=_("memory"), related_name="+")
    space = models.ForeignKey(EmbeddingSpace, models.CASCADE, verbose_name=_("space"), related_name="+")
    digest = models.BinaryField(_("digest"), max_length=16)
    vector = models.BinaryField(_("vector"))

    class Meta:
        verbose_name = _("embedding")
        verbose_name_plural = _("embeddings")
        constraints = [models.UniqueConstraint(fields=["memory", "space"], name="embedding_of_one_memory")]
        indexes = [models.Index(fields=["space", "digest"], name="embedding_by_text")]

    def __str__(self) -> str:
        return f"{self.memory_id} in {self.space_id}"


class TokenVectors(models.Model):
    """The vectors of a memory's tokens in a space of a model that runs in the process.

    `vectors` is empty for a text without any, such as one in a language that the model does not know.
    """

    memory = models.ForeignKey(Memory, models.CASCADE, verbose_name=_("memory"), related_name="+", db_index=False)
    space = models.ForeignKey(EmbeddingSpace, models.CASCADE, verbose_name=_("space"), related_name="+")
    layout = models.BigIntegerField(_("layout"))
    vectors = models.BinaryField(_("vectors"))

    class Meta:
        verbose_name = _("token vectors")
        verbose_name_plural = _("token vectors")
        constraints = [models.UniqueConstraint(fields=["memory", "space"], name="token_vectors_of_one_memory")]

    def __str__(self) -> str:
        return f"{self.memory_id} in {self.space_id}"


class VectorPage(Owned):
    """Up to 256 vectors of one user and scope, a byte per dimension; written by `store.vectors.vector_pages`."""

    space = models.ForeignKey(EmbeddingSpace, models.CASCADE, verbose_name=_("space"), related_name="+")
    number = models.IntegerField(_("number"))
    rows = models.BinaryField(_("rows"))
    codes = models.BinaryField(_("codes"))
    # As for fact pages.
    layout = models.BigIntegerField(_("layout"), db_default=2_419_599_141)

    class Meta:
        verbose_name = _("vector page")
        verbose_name_plural = _("vector pages")
        constraints = [
            models.UniqueConstraint(
                fields=["user", "app_id", "project_id", "space", "number"], name="vector_page_of_one_user"
            )
        ]

    def __str__(self) -> str:
        return f"{self.user_id} {self.app_id}/{self.project_id} {self.space_id}/{self.number}"


class PendingEmbedding(Claimable):
    """A memory without a vector: created with the memory, deleted when the vector is stored."""

    memory = models.OneToOneField(Memory, models.CASCADE, verbose_name=_("memory"), primary_key=True, related_name="+")

    class Meta:
        verbose_name = _("pending embedding")
        verbose_name_plural = _("pending embeddings")
        indexes = [models.Index(fields=["lease_holder"], condition=~Q(lease_holder=""), name="embedding_leased")]

    def __str__(self) -> str:
        return str(self.memory_id)


class PendingExtraction(Owned, PendingCall):
    """Messages of a session that are pending for extraction; without a session, a user's profile to write again.

    With a `memory`, which an operator or a tool wrote, that memory is compared with older ones instead.
    `after_seq` is the last message that was extracted, `until_seq` the last to extract (None: the end of the batch).
    """

    session = models.ForeignKey(Session, models.CASCADE, verbose_name=_("session"), null=True, related_name="+")
    batch_id = models.CharField(_("batch ID"), max_length=64, blank=True)
    after_seq = models.IntegerField(_("after seq"), default=-1)
    until_seq = models.IntegerField(_("until seq"), null=True)
    memory = models.ForeignKey(Memory, models.CASCADE, verbose_name=_("memory"), null=True, related_name="+")

    class Meta:
        verbose_name = _("pending extraction")
        verbose_name_plural = _("pending extractions")
        ordering = ("id",)
        constraints = [
            models.UniqueConstraint(
                fields=["user", "app_id", "project_id"],
                condition=Q(session__isnull=True),
                name="one_pending_profile_per_user",
            )
        ]
        indexes = [
            models.Index(fields=["id"], condition=Q(given_up_at__isnull=True), name="extraction_pending"),
            models.Index(fields=["lease_holder"], condition=~Q(lease_holder=""), name="extraction_leased"),
        ]

    def __str__(self) -> str:
        return f"{self.user_id} {self.session_id} {self.batch_id}"


class PendingMedia(PendingCall):
    """A picture that a model has to describe, or a recording that it has to transcribe.

    `memory` is the memory of the file's name, `file_key` the key of the stored file.
    """

    class Kind(TextChoices):
        VISION = "vision", _("Vision")
        TRANSCRIPTION = "transcription", _("Transcription")

    memory = models.OneToOneField(Memory, models.CASCADE, verbose_name=_("memory"), primary_key=True, related_name="+")
    kind = models.CharField(_("kind"), max_length=13, choices=Kind)
    file_key = models.CharField(_("file key"), max_length=255)
    mime_type = models.CharField(_("MIME type"), max_length=127)

    class Meta:
        verbose_name = _("pending media")
        verbose_name_plural = _("pending media")
        ordering = ("memory",)
        indexes = [
            models.Index(fields=["kind", "memory"], condition=Q(given_up_at__isnull=True), name="media_pending"),
            models.Index(fields=["lease_holder"], condition=~Q(lease_holder=""), name="media_leased"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.memory_id}"


# Counts of live memories: written by the triggers of `store.rollups`, read by `store.browse`.


class DayCount(models.Model):
    """The number of memories of an agent, a category and an origin on a UTC day, of a user or of all (`owner` "").

    The day is counted from 1970; see `store.rollups`.

    On PostgreSQL a change is a separate row, numbered by `delta`, until `store.rollups.settle` adds it to the row whose
    `delta` is 0: so writers never wait for each other. Readers sum up all rows.
    """

    owner = models.CharField(_("owner"), max_length=32)
    day = models.IntegerField(_("day"))
    agent_id = models.CharField(_("agent ID"), max_length=64)
    category = models.CharField(_("category"), max_length=40)
    origin = models.CharField(_("origin"), max_length=10)
    app_id = models.CharField(_("app ID"), max_length=64)
    project_id = models.CharField(_("project ID"), max_length=64)
    delta = models.BigIntegerField(_("delta"), default=0)
    memories = models.BigIntegerField(_("memories"))
    low = models.BigIntegerField(_("low"), help_text=_("Memories with importance below 0.34."))
    mid = models.BigIntegerField(_("mid"))
    high = models.BigIntegerField(_("high"), help_text=_("Memories with importance of 0.67 or more."))
    weight = models.BigIntegerField(_("weight"), help_text=_("Sum of importance, in millionths."))

    class Meta:
        verbose_name = _("day count")
        verbose_name_plural = _("day counts")
        default_permissions = ("view",)
        constraints = [
            models.UniqueConstraint(
                fields=["owner", "day", "agent_id", "category", "origin", "app_id", "project_id", "delta"],
                name="day_count_once",
            )
        ]
        indexes = [
            # The users with most memories in a period.
            models.Index(fields=["day"], name="day_count_of_all_users"),
            # Read by the triggers on SQLite and by `settle` on PostgreSQL.
            models.Index(fields=["id"], condition=models.Q(memories__lte=0), name="day_count_empty"),
            models.Index(fields=["id"], condition=~models.Q(delta=0), name="day_count_unsettled"),
        ]

    def __str__(self) -> str:
        return f"{self.owner} {self.day} {self.agent_id} {self.category}"


class SessionCount(models.Model):
    """The number of a session's memories, of all agents or of one (`of_agent`), with first and last time."""

    # No foreign key: during a cascade the triggers would count rows that are about to be deleted.
    session_row = models.BigIntegerField(_("session row"))
    of_agent = models.BooleanField(_("of agent"))
    agent_id = models.CharField(_("agent ID"), max_length=64)
    memories = models.BigIntegerField(_("memories"))
    first_ms = models.BigIntegerField(_("first ms"))
    last_ms = models.BigIntegerField(_("last ms"))

    class Meta:
        verbose_name = _("session count")
        verbose_name_plural = _("session counts")
        default_permissions = ("view",)
        constraints = [
            models.UniqueConstraint(fields=["session_row", "of_agent", "agent_id"], name="session_count_once")
        ]
        indexes = [
            models.Index(
                fields=["of_agent", "agent_id", "-memories", "-session_row", "first_ms", "last_ms"],
                name="session_count_most",
            ),
            models.Index(fields=["of_agent", "agent_id", "last_ms", "first_ms", "memories"], name="session_count_ends"),
            models.Index(fields=["id"], condition=models.Q(memories__lte=0), name="session_count_empty"),
        ]

    def __str__(self) -> str:
        return f"{self.session_row} {self.agent_id}"
