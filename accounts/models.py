import secrets
import uuid
from dataclasses import dataclass
from typing import ClassVar, Final
from urllib.parse import urlsplit
from uuid import UUID

from django.contrib.auth.models import User
from django.core.exceptions import ValidationError
from django.db import models
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _

from accounts.scopes import UNLIMITED
from core.background.leases import Leased
from core.ids import MAX_USER_ID_CHARS
from core.persistence.checked_rows import CheckedModel
from core.persistence.json_field import ReadableJSONField

MAX_TENANT_CHARS: Final = 64
TENANT_PATTERN: Final = r"^[A-Za-z0-9_.@+-]*$"


@dataclass(frozen=True, slots=True)
class Principal:
    """The caller: the user whose API key was presented. `request.user` in every API view.

    `scopes` are those of `accounts.scopes`. A key can be bound to an application and an agent; empty for none.
    """

    user_pk: UUID
    user_id: str
    key_id: UUID
    scopes: frozenset[str] = UNLIMITED
    app_id: str = ""
    agent_id: str = ""
    is_authenticated: ClassVar[bool] = True


class MemoryUser(CheckedModel):
    """A user whose memories are stored. Operators are Django's `User` instead."""

    id = models.UUIDField(_("ID"), primary_key=True, default=uuid.uuid4, editable=False)
    user_id = models.CharField(
        _("user ID"), max_length=MAX_USER_ID_CHARS, unique=True, help_text=_("Chosen by the application.")
    )
    # How operators know the person; no user and no agent reads it.
    name = models.CharField(_("name"), max_length=200, blank=True, default="", db_default="")
    email = models.CharField(_("e-mail"), max_length=254, blank=True, default="", db_default="")
    labels = models.CharField(
        _("labels"), max_length=500, blank=True, default="", db_default="", help_text=_("Separated by commas.")
    )
    notes = models.TextField(_("notes"), blank=True, default="", db_default="")
    tenant = models.CharField(
        _("tenant"), max_length=MAX_TENANT_CHARS, blank=True, default="", db_default="",
        help_text=_("The organization or team that the person belongs to."),
    )  # fmt: skip
    created_at = models.DateTimeField(_("created at"), auto_now_add=True)
    next_expiry_at = models.DateTimeField(
        _("next expiry at"),
        null=True,
        editable=False,
        help_text=_("No memory or session of the user expires before."),
    )
    expiry_days = models.JSONField(
        _("days until memories expire"),
        default=None,
        null=True,
        editable=False,
        help_text=_("By category or tag, for memories that are stored from then on."),
    )

    class Meta:
        verbose_name = _("memory user")
        verbose_name_plural = _("memory users")
        ordering = ("user_id",)
        default_permissions = ("add", "view", "export", "erase")
        indexes = [
            models.Index(
                fields=["next_expiry_at"],
                condition=models.Q(next_expiry_at__isnull=False),
                name="user_by_next_expiry",
            ),
            models.Index(fields=["tenant"], condition=~models.Q(tenant=""), name="user_of_tenant"),
        ]

    def __str__(self) -> str:
        return self.user_id

    @property
    def label_list(self) -> list[str]:
        """Return the labels."""
        return [label for one in self.labels.split(",") if (label := one.strip())]


class UserKey(CheckedModel):
    """An API key `uk_…`. It is found by digest and stored encrypted, because `POST /users` returns it again."""

    id = models.UUIDField(_("ID"), primary_key=True, default=uuid.uuid4, editable=False)
    user = models.ForeignKey(MemoryUser, models.CASCADE, verbose_name=_("user"), related_name="keys")
    label = models.CharField(_("label"), max_length=100, blank=True)
    prefix = models.CharField(
        _("prefix"), max_length=12, editable=False, help_text=_("First characters, to tell keys apart.")
    )
    digest = models.CharField(_("digest"), max_length=64, unique=True, editable=False)
    ciphertext = models.TextField(_("ciphertext"), editable=False)
    scopes = models.CharField(
        _("scopes"),
        max_length=100,
        blank=True,
        default="",
        db_default="",
        editable=False,
        help_text=_("Granted permissions, separated by spaces. Empty: all."),
    )
    app_id = models.CharField(
        _("application"),
        max_length=64,
        blank=True,
        default="",
        db_default="",
        editable=False,
        help_text=_("The only application whose data the key reads and writes. Empty: all."),
    )
    agent_id = models.CharField(
        _("agent"),
        max_length=64,
        blank=True,
        default="",
        db_default="",
        editable=False,
        help_text=_("The only agent as which the key reads and writes. Empty: all."),
    )
    created_at = models.DateTimeField(_("created at"), auto_now_add=True)
    expires_at = models.DateTimeField(_("expires at"), null=True, blank=True)
    revoked_at = models.DateTimeField(_("revoked at"), null=True, blank=True, editable=False)
    last_used_at = models.DateTimeField(_("last used at"), null=True, blank=True, editable=False)

    class Meta:
        verbose_name = _("API key")
        verbose_name_plural = _("API keys")
        ordering = ("-created_at",)
        default_permissions = ("add", "view", "rotate", "revoke")
        indexes = [models.Index(fields=["user", "created_at"], name="key_of_user")]

    def __str__(self) -> str:
        return f"{self.prefix}…"


class SavedView(CheckedModel):
    """A list of the panel with filters, saved by an operator for themself or for all.

    `query` is that of the address. `user` is the one whom the filters name: the view is erased with them.
    """

    class Page(models.TextChoices):
        MEMORIES = "memories", _("Memories")
        RESOURCES = "resources", _("Resources")
        USERS = "users", _("Users")
        SEARCHES = "searches", _("Search log")

    operator = models.ForeignKey(User, models.CASCADE, verbose_name=_("operator"), related_name="saved_views")
    name = models.CharField(_("name"), max_length=60)
    page = models.CharField(_("page"), max_length=10, choices=Page)
    query = models.TextField(_("query"))
    is_shared = models.BooleanField(_("shared"), default=False)
    user = models.ForeignKey(MemoryUser, models.CASCADE, verbose_name=_("user"), null=True, related_name="+")
    created_at = models.DateTimeField(_("created at"), auto_now_add=True)

    class Meta:
        verbose_name = _("saved view")
        verbose_name_plural = _("saved views")
        ordering = ("name", "pk")
        default_permissions = ("view",)
        constraints = [models.UniqueConstraint(fields=["operator", "name"], name="saved_view_of_operator")]

    def __str__(self) -> str:
        return self.name


class OperatorTenant(CheckedModel):
    """A tenant whose users an operator may see. Operators without any see all users; see `accounts.tenants`."""

    operator = models.ForeignKey(User, models.CASCADE, verbose_name=_("operator"), related_name="tenants")
    tenant = models.CharField(_("tenant"), max_length=MAX_TENANT_CHARS)

    class Meta:
        verbose_name = _("tenant of an operator")
        verbose_name_plural = _("tenants of operators")
        ordering = ("operator", "tenant")
        default_permissions = ("view",)
        constraints = [models.UniqueConstraint(fields=["operator", "tenant"], name="tenant_of_operator")]

    def __str__(self) -> str:
        return self.tenant


class IdempotencyKey(Leased):
    """An `Idempotency-Key` of a user, and the result of its request: ids, counts and states, without texts.

    Key and request are stored as digests. `status` is the HTTP status, null while the request runs under its lease.
    """

    user = models.ForeignKey(MemoryUser, models.CASCADE, verbose_name=_("user"), related_name="+")
    key_digest = models.CharField(_("key digest"), max_length=64)
    request_digest = models.CharField(_("request digest"), max_length=64)
    status = models.PositiveSmallIntegerField(_("status"), null=True)
    result = models.JSONField(_("result"), default=dict)
    headers = models.JSONField(_("headers"), default=dict)
    created_at = models.DateTimeField(_("created at"))

    class Meta:
        verbose_name = _("idempotency key")
        verbose_name_plural = _("idempotency keys")
        default_permissions = ("view",)
        constraints = [models.UniqueConstraint(fields=["user", "key_digest"], name="idempotency_key_of_user")]
        indexes = [models.Index(fields=["created_at"], name="idempotency_key_by_time")]

    def __str__(self) -> str:
        return self.key_digest


class RpcToken(models.Model):
    """A token `rpc_…` for OpenClaw's WebSocket protocol, of an operator or of one user; found by its digest."""

    id = models.UUIDField(_("ID"), primary_key=True, default=uuid.uuid4, editable=False)
    label = models.CharField(_("label"), max_length=100, blank=True)
    operator = models.ForeignKey(
        User, models.CASCADE, verbose_name=_("operator"), null=True, blank=True, related_name="+"
    )
    user = models.ForeignKey(
        MemoryUser, models.CASCADE, verbose_name=_("user"), null=True, blank=True, related_name="rpc_tokens"
    )
    scopes = models.CharField(_("scopes"), max_length=100, help_text=_("Granted permissions, separated by spaces."))
    prefix = models.CharField(
        _("prefix"), max_length=12, editable=False, help_text=_("First characters, to tell tokens apart.")
    )
    digest = models.CharField(_("digest"), max_length=64, unique=True, editable=False)
    created_at = models.DateTimeField(_("created at"), auto_now_add=True)
    expires_at = models.DateTimeField(_("expires at"), null=True, blank=True)
    revoked_at = models.DateTimeField(_("revoked at"), null=True, blank=True, editable=False)
    last_used_at = models.DateTimeField(_("last used at"), null=True, blank=True, editable=False)

    class Meta:
        verbose_name = _("RPC token")
        verbose_name_plural = _("RPC tokens")
        ordering = ("-created_at",)
        default_permissions = ("add", "view", "revoke")
        constraints = [
            models.CheckConstraint(
                condition=models.Q(operator__isnull=True, user__isnull=False)
                | models.Q(operator__isnull=False, user__isnull=True),
                name="token_of_one_holder",
            )
        ]

    def __str__(self) -> str:
        return f"{self.prefix}…"

    @property
    def holder(self) -> str:
        """Return the operator or user, for display."""
        return f"operator {self.operator}" if self.operator else f"user {self.user}"


class OperatorIdentity(models.Model):
    """The account of an operator at the OpenID Connect provider. The subject never changes; names and addresses may."""

    operator = models.OneToOneField(User, models.CASCADE, verbose_name=_("operator"), related_name="identity")
    issuer = models.CharField(_("issuer"), max_length=255)
    subject = models.CharField(_("subject"), max_length=255)
    created_at = models.DateTimeField(_("created at"), auto_now_add=True)
    sealed_refresh_token = models.TextField(
        _("sealed refresh token"), blank=True, default="", db_default="", editable=False
    )
    confirmed_at = models.DateTimeField(
        _("confirmed at"), null=True, editable=False, help_text=_("When the provider was last asked for the role.")
    )
    ended_at = models.DateTimeField(
        _("ended at"), null=True, editable=False, help_text=_("Set while the provider does not confirm the operator.")
    )

    class Meta:
        verbose_name = _("operator identity")
        verbose_name_plural = _("operator identities")
        default_permissions = ("view",)
        constraints = [models.UniqueConstraint(fields=["issuer", "subject"], name="operator_identity_by_subject")]

    def __str__(self) -> str:
        return self.subject


class SecondFactor(models.Model):
    """The second factor of an operator. `last_step` is the time step of the last code: each is accepted once."""

    operator = models.OneToOneField(User, models.CASCADE, verbose_name=_("operator"), related_name="second_factor")
    sealed_secret = models.CharField(_("sealed secret"), max_length=255, editable=False)
    last_step = models.BigIntegerField(_("last time step"), editable=False)
    recovery_digests = models.JSONField(_("digests of the recovery codes"), editable=False)
    created_at = models.DateTimeField(_("created at"), auto_now_add=True)

    class Meta:
        verbose_name = _("second factor")
        verbose_name_plural = _("second factors")
        default_permissions = ("view",)

    def __str__(self) -> str:
        return str(self.operator)


def destination_of(redirect_uri: str) -> str:
    """Return host and port of a web address, or scheme and host of an application's own address."""
    parts = urlsplit(redirect_uri)
    if parts.scheme in {"http", "https"}:
        return parts.netloc
    return f"{parts.scheme}://{parts.netloc}" if parts.netloc else f"{parts.scheme}:"


class OAuthClient(models.Model):
    """An application that registered itself, or whose client id is the `address` of a document that describes it.

    It has no secret: PKCE protects its codes instead. The id of one with an address follows from the address.
    """

    id = models.UUIDField(_("ID"), primary_key=True, default=uuid.uuid4, editable=False)
    name = models.CharField(_("name"), max_length=100, blank=True)
    address = models.TextField(_("address of its document"), blank=True, default="", db_default="")
    read_at = models.DateTimeField(_("document read at"), null=True)
    redirect_uris = models.JSONField(_("redirect addresses"))
    created_at = models.DateTimeField(_("created at"), auto_now_add=True)
    expires_at = models.DateTimeField(_("expires at"), help_text=_("Unless it is connected to a user."))

    class Meta:
        verbose_name = _("OAuth client")
        verbose_name_plural = _("OAuth clients")
        default_permissions = ("view",)
        indexes = [models.Index(fields=["expires_at"], name="oauth_client_by_expiry")]

    def __str__(self) -> str:
        return self.name or self.host or destination_of(self.redirect_uris[0])

    @property
    def client_id(self) -> str:
        """The id that the application sends."""
        return self.address or str(self.pk)

    @property
    def host(self) -> str:
        """The host that describes the application; empty for one that registered itself."""
        return destination_of(self.address) if self.address else ""


class OAuthConnection(models.Model):
    """An application that may act for a user at `/mcp`, until the connection is deleted or the key is no longer live.

    `key` is the API key that approved it, null if `operator` did: it then needs any live key of the user, and an
    operator who may still connect applications. Connections that operators approved earlier name none.
    """

    id = models.UUIDField(_("ID"), primary_key=True, default=uuid.uuid4, editable=False)
    client = models.ForeignKey(OAuthClient, models.CASCADE, verbose_name=_("OAuth client"), related_name="connections")
    user = models.ForeignKey(MemoryUser, models.CASCADE, verbose_name=_("user"), related_name="connections")
    key = models.ForeignKey(UserKey, models.CASCADE, verbose_name=_("API key"), null=True, related_name="+")
    operator = models.ForeignKey(
        User, models.CASCADE, verbose_name=_("operator"), null=True, related_name="+", db_index=False
    )
    scopes = models.CharField(_("scopes"), max_length=100, help_text=_("Granted permissions, separated by spaces."))
    resource = models.TextField(_("resource"))
    redirect_uri = models.TextField(_("redirect address"))
    code_challenge = models.CharField(_("code challenge"), max_length=43)
    created_at = models.DateTimeField(_("created at"), auto_now_add=True)
    last_used_at = models.DateTimeField(_("last used at"), null=True)

    class Meta:
        verbose_name = _("OAuth connection")
        verbose_name_plural = _("OAuth connections")
        default_permissions = ("view",)
        indexes = [models.Index(fields=["user", "created_at"], name="oauth_connection_of_user")]

    def __str__(self) -> str:
        return str(self.client)

    @property
    def host(self) -> str:
        """Return host and port of the redirect address, with its scheme if it opens an application."""
        return destination_of(self.redirect_uri)

    @property
    def may_write(self) -> bool:
        return "memories:write" in self.scopes.split()


class OAuthToken(models.Model):
    """A code or token of a connection, found by its digest. A used code or refresh token stays until it expires."""

    class Kind(models.TextChoices):
        CODE = "code", _("Code")
        ACCESS = "access", _("Access token")
        REFRESH = "refresh", _("Refresh token")

    connection = models.ForeignKey(
        OAuthConnection, models.CASCADE, verbose_name=_("OAuth connection"), related_name="tokens"
    )
    kind = models.CharField(_("kind"), max_length=8, choices=Kind)
    digest = models.CharField(_("digest"), max_length=64, unique=True)
    scopes = models.CharField(_("scopes"), max_length=100)
    expires_at = models.DateTimeField(_("expires at"))
    used_at = models.DateTimeField(_("used at"), null=True)

    class Meta:
        verbose_name = _("OAuth token")
        verbose_name_plural = _("OAuth tokens")
        default_permissions = ("view",)
        indexes = [models.Index(fields=["expires_at"], name="oauth_token_by_expiry")]

    def __str__(self) -> str:
        return f"{self.kind} {self.pk}"


class PortalLink(CheckedModel):
    """A one-time link to the pages of a user, and then the session that it opened.

    `digest` and `expires_at` are those of the link, and from `opened_at` on those of the session. `key` is the API key
    that made the link, null if the provisioning token did. `frame_origin` is the origin whose pages may frame it.
    """

    id = models.UUIDField(_("ID"), primary_key=True, default=uuid.uuid4, editable=False)
    user = models.ForeignKey(MemoryUser, models.CASCADE, verbose_name=_("user"), related_name="portal_links")
    key = models.ForeignKey(UserKey, models.CASCADE, verbose_name=_("API key"), null=True, related_name="+")
    digest = models.CharField(_("digest"), max_length=64, unique=True)
    frame_origin = models.CharField(_("origin of the frame"), max_length=255, blank=True)
    created_at = models.DateTimeField(_("created at"), auto_now_add=True)
    opened_at = models.DateTimeField(_("opened at"), null=True)
    expires_at = models.DateTimeField(_("expires at"))

    class Meta:
        verbose_name = _("portal link")
        verbose_name_plural = _("portal links")
        default_permissions = ("view",)
        indexes = [models.Index(fields=["expires_at"], name="portal_link_by_expiry")]

    def __str__(self) -> str:
        return str(self.pk)


MAX_NEVER_WORDS = 200
MAX_NEVER_WORD_CHARS = 100


def check_words(value: object) -> None:
    """Check words that are never to be remembered, which an archive may bring. Raises: `ValidationError`."""
    words = value if isinstance(value, list) else [None]
    are_valid = all(isinstance(one, str) and 0 < len(one) <= MAX_NEVER_WORD_CHARS for one in words)
    if len(words) > MAX_NEVER_WORDS or not are_valid:
        raise ValidationError(_("This is no list of words."))


def check_topics(value: object) -> None:
    """Check topics that are never to be remembered, which an archive may bring. Raises: `ValidationError`."""
    known = {str(topic) for topic in Controls.Topic}
    if not isinstance(value, list) or not known.issuperset(map(str, value)):
        raise ValidationError(_("This is no list of topics."))


def new_salt() -> str:
    """Return a random salt for the digests of one user."""
    return secrets.token_hex(16)


class Controls(CheckedModel):
    """The limits that a person set on what is kept; there is a row once they have. See `accounts.controls`.

    `salt` is that of the digests of refused messages. What has one of `words`, or is about one of `topics`, is never
    kept.
    """

    class Topic(models.TextChoices):
        HEALTH = "health", _("Body and health")
        MONEY = "money", _("Money")
        RELIGION = "religion", _("Religion")
        POLITICS = "politics", _("Politics")
        SEXUALITY = "sexuality", _("Sexuality")
        LOCATION = "location", _("Places where you live and go")
        FAMILY = "family", _("Family")
        WORK = "work", _("Work")

    user = models.OneToOneField(
        MemoryUser, models.CASCADE, verbose_name=_("user"), primary_key=True, related_name="controls"
    )
    salt = models.CharField(_("salt"), max_length=32, default=new_salt, editable=False)
    words = models.JSONField(_("words"), default=list, blank=True, validators=[check_words])
    topics = models.JSONField(_("topics"), default=list, blank=True, validators=[check_topics])

    class Meta:
        verbose_name = _("controls of a user")
        verbose_name_plural = _("controls of users")
        default_permissions = ("view",)

    def __str__(self) -> str:
        return str(self.pk)


class Pause(CheckedModel):
    """A span of time in which nothing of a source is kept; `ended_at` is null while it lasts.

    `actor_kind` and `actor` began it, as in the audit trail.
    """

    class Source(models.TextChoices):
        CHATS = "chats", _("Conversations")
        FILES = "files", _("Files")
        AGENTS = "agents", _("What agents note")

    user = models.ForeignKey(MemoryUser, models.CASCADE, verbose_name=_("user"), related_name="pauses", db_index=False)
    source = models.CharField(_("source"), max_length=8, choices=Source)
    began_at = models.DateTimeField(_("began at"))
    ended_at = models.DateTimeField(_("ended at"), null=True)
    actor_kind = models.CharField(_("actor type"), max_length=16)
    actor = models.CharField(_("actor"), max_length=150, blank=True)

    class Meta:
        verbose_name = _("pause")
        verbose_name_plural = _("pauses")
        default_permissions = ("view",)
        constraints = [
            models.UniqueConstraint(fields=["user", "source", "began_at"], name="pause_of_user"),
            models.UniqueConstraint(
                fields=["user", "source"], condition=models.Q(ended_at__isnull=True), name="pause_open_of_user"
            ),
        ]

    def __str__(self) -> str:
        return self.source


class RefusedMessage(CheckedModel):
    """The salted digest of a message that was refused during a pause, so that it is not stored when it is repeated."""

    user = models.ForeignKey(MemoryUser, models.CASCADE, verbose_name=_("user"), related_name="+", db_index=False)
    digest = models.CharField(_("digest"), max_length=64)
    refused_at = models.DateTimeField(_("refused at"))

    class Meta:
        verbose_name = _("refused message")
        verbose_name_plural = _("refused messages")
        default_permissions = ("view",)
        constraints = [models.UniqueConstraint(fields=["user", "digest"], name="refused_message_of_user")]
        indexes = [models.Index(fields=["refused_at"], name="refused_message_by_time")]

    def __str__(self) -> str:
        return self.digest


class AuditEvent(models.Model):
    """An event of the audit trail: actor, action, subject and time, without memory text and keys.

    Whom it shows or concerns is in `AuditSubject`. `user_id` is the user to whom the event belongs, empty for none.
    `count` is how often it happened until `last_at`; equal events have the same `digest` for ten minutes.
    """

    class ActorKind(models.TextChoices):
        KEY = "key", _("API key")
        TOKEN = "token", _("Token")
        OPERATOR = "operator", _("Operator")
        COMMAND = "command", _("Command")
        PROVISIONING = "provisioning", _("Provisioning")
        PERSON = "person", _("Person")
        SYSTEM = "system", _("System")

    class Kind(models.TextChoices):
        CHANGE = "change", _("Changes")
        READ = "read", _("Reads")
        SIGN_IN = "sign_in", _("Sign-ins")

    at = models.DateTimeField(_("time"), db_default=Now())
    actor_kind = models.CharField(_("actor type"), max_length=16, choices=ActorKind)
    actor = models.CharField(
        _("actor"), max_length=150, blank=True, help_text=_("API key or token ID, operator name or command.")
    )
    action = models.CharField(_("action"), max_length=64)
    kind = models.CharField(_("kind"), max_length=8, choices=Kind, default=Kind.CHANGE)
    # No foreign keys: events remain when their user and subject are deleted.
    user_id = models.CharField(_("user ID"), max_length=MAX_USER_ID_CHARS, blank=True)
    subject_type = models.CharField(_("subject type"), max_length=32)
    subject_id = models.CharField(_("subject ID"), max_length=256, blank=True)
    request_id = models.CharField(_("request ID"), max_length=64, blank=True)
    address = models.CharField(_("network address"), max_length=64, blank=True, default="", db_default="")
    client = models.CharField(_("client"), max_length=200, blank=True, default="", db_default="")
    count = models.PositiveIntegerField(_("count"), default=1, db_default=1)
    last_at = models.DateTimeField(_("last time"), null=True, blank=True, default=None)
    digest = models.CharField(_("digest"), max_length=32, blank=True, default="", db_default="", editable=False)
    salt = models.CharField(_("salt"), max_length=32, blank=True, default=new_salt, db_default="", editable=False)
    detail = ReadableJSONField(_("detail"), default=dict, blank=True)

    class Meta:
        verbose_name = _("audit event")
        verbose_name_plural = _("audit events")
        ordering = ("-at", "-id")
        default_permissions = ("view",)
        indexes = [
            models.Index(fields=["user_id", "at"], name="audit_of_user"),
            models.Index(fields=["at"], name="audit_by_time"),
            models.Index(fields=["kind", "id"], name="audit_of_kind"),
            models.Index(fields=["digest"], condition=~models.Q(digest=""), name="audit_by_digest"),
        ]

    def __str__(self) -> str:
        return f"{self.action} {self.subject_type} {self.subject_id}"


class AuditSubject(models.Model):
    """A user whom an event shows or concerns. Events are ordered by key, so the constraint is a user's trail in order.

    The user is named without a foreign key: events remain when their user is deleted, except by an erasure.
    """

    # The migration adds a constraint that deletes, because the version before deletes events without their rows.
    event = models.ForeignKey(
        AuditEvent, models.CASCADE, verbose_name=_("audit event"), related_name="subjects", db_constraint=False
    )
    user_id = models.CharField(_("user ID"), max_length=MAX_USER_ID_CHARS)

    class Meta:
        verbose_name = _("subject of an audit event")
        verbose_name_plural = _("subjects of audit events")
        default_permissions = ("view",)
        constraints = [models.UniqueConstraint(fields=["user_id", "event"], name="audit_trail_of_user")]

    def __str__(self) -> str:
        return self.user_id


class AuditBatch(models.Model):
    """A link of the chain over the audit trail: see `accounts.audit_chain`."""

    last_event = models.BigIntegerField(_("last event"))
    count = models.PositiveIntegerField(_("count"))
    root = models.CharField(_("root"), max_length=64)
    sealed_at = models.DateTimeField(_("sealed at"))
    is_dropped = models.BooleanField(_("events dropped"), default=False)

    class Meta:
        verbose_name = _("batch of audit events")
        verbose_name_plural = _("batches of audit events")
        ordering = ("-id",)
        default_permissions = ("view",)

    def __str__(self) -> str:
        return self.root


class AuditDigest(models.Model):
    """The digest of an audit event. It stays when an erasure removes the event with its salt, and is released then."""

    event_id = models.BigIntegerField(_("event"), primary_key=True)
    batch = models.ForeignKey(AuditBatch, models.CASCADE, verbose_name=_("batch"), related_name="digests")
    value = models.CharField(_("digest"), max_length=64)
    is_released = models.BooleanField(_("released"), default=False)

    class Meta:
        verbose_name = _("digest of an audit event")
        verbose_name_plural = _("digests of audit events")
        ordering = ("-event_id",)
        default_permissions = ("view",)

    def __str__(self) -> str:
        return self.value


class Case(CheckedModel):
    """A note of operators about a memory, file, search, webhook or user, with the operator who takes care of it."""

    class Subject(models.TextChoices):
        MEMORY = "memory", _("Memory")
        RESOURCE = "resource", _("Resource")
        SEARCH = "search", _("Search")
        USER = "user", _("User")
        WEBHOOK = "webhook", _("Webhook")

    subject_type = models.CharField(_("subject type"), max_length=8, choices=Subject)
    subject_id = models.CharField(_("subject ID"), max_length=64)
    user = models.ForeignKey(MemoryUser, models.CASCADE, verbose_name=_("user"), related_name="cases")
    note = models.TextField(_("note"), blank=True, max_length=4000)
    assignee = models.ForeignKey(
        User, models.SET_NULL, verbose_name=_("assignee"), related_name="cases", null=True, blank=True
    )
    is_closed = models.BooleanField(_("closed"), default=False)
    created_at = models.DateTimeField(_("created at"), auto_now_add=True)
    updated_at = models.DateTimeField(_("updated at"), auto_now=True)

    class Meta:
        verbose_name = _("case")
        verbose_name_plural = _("cases")
        ordering = ("-updated_at", "-pk")
        default_permissions = ("view",)
        constraints = [models.UniqueConstraint(fields=["subject_type", "subject_id"], name="case_of_subject")]

    def __str__(self) -> str:
        return f"{self.subject_type} {self.subject_id}"


class QueueLevel(models.Model):
    """The level of a queue at the last look, so that an alert is sent once for each growth."""

    name = models.CharField(_("name"), max_length=40, unique=True)
    level = models.PositiveSmallIntegerField(_("level"), default=0)

    class Meta:
        verbose_name = _("level of a queue")
        verbose_name_plural = _("levels of queues")
        ordering = ("name",)
        default_permissions = ("view",)

    def __str__(self) -> str:
        return self.name


class SignInThrottle(models.Model):
    """The failed sign-ins of operators: one row per name and network, and one per network.

    Names are stored only as digests, because people type passwords into the wrong field.
    """

    network = models.CharField(_("network"), max_length=64)
    name_digest = models.CharField(_("name digest"), max_length=64, blank=True)
    failures = models.IntegerField(_("failures"), default=0)
    counted_since = models.DateTimeField(_("counted since"))
    locked_until = models.DateTimeField(_("locked until"), null=True, blank=True)

    class Meta:
        verbose_name = _("sign-in throttle")
        verbose_name_plural = _("sign-in throttles")
        ordering = ("-counted_since",)
        default_permissions = ("view", "delete")
        constraints = [models.UniqueConstraint(fields=["network", "name_digest"], name="throttle_of_one_name")]
        indexes = [models.Index(fields=["counted_since"], name="throttle_by_time")]

    def __str__(self) -> str:
        return self.network
