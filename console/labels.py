"""The names of our tables, fields and choices in Django's own admin, in the language of the page.

Django asks models for them once and keeps what it got; said lazily, they follow the language. The words stand here and
not in the models, so that no migration speaks of them.
"""

from __future__ import annotations

from typing import Any, Final

from django.apps import apps
from django.db.models import Field, Model
from django.utils.translation import gettext_lazy, pgettext_lazy
from django.utils.translation import gettext_noop as _

APPS: Final = ("accounts", "store", "resources", "memories", "profiles", "operations")
WORDS: Final = (
    # apps
    _("Accounts"), _("Memories"), _("Operations"), _("Profiles"), _("Resources"), _("Store"),
    # tables
    _("attachment"), _("attachments"), _("audit event"), _("audit events"), _("embedding"), _("embeddings"),
    _("embedding space"), _("embedding spaces"), _("fact page"), _("fact pages"), _("hour count"), _("hour counts"),
    _("index statistics"), _("index version"), _("index versions"), _("job"), _("jobs"), _("job step"),
    _("job steps"), _("lease"), _("leases"), _("memory"), _("memories"), _("memory user"), _("memory users"),
    _("name left upstream"), _("names left upstream"), _("override"), _("overrides"), _("override revision"),
    _("override revisions"), _("owed embedding"), _("owed embeddings"), _("owed extraction"), _("owed extractions"),
    _("profile"), _("profiles"), _("profile revision"), _("profile revisions"), _("resource"), _("resources"),
    _("RPC token"), _("RPC tokens"), _("session"), _("sessions"), _("session count"), _("session counts"),
    _("sign-in throttle"), _("sign-in throttles"), _("storage identity"), _("storage identities"), _("tombstone"),
    _("tombstones"), _("unmatched decision"), _("unmatched decisions"), _("user key"), _("user keys"),
    _("vector page"), _("vector pages"),
    # fields
    _("ID"), _("action"), _("actor"), _("actor kind"), _("after seq"), _("agent id"), _("app id"), _("at"),
    _("attempts"), _("batch id"), _("bound at"), _("built at"), _("category"), _("changes"), _("chunk index"),
    _("ciphertext"), _("cleanup owed"), _("codes"), _("content"), _("content type"), _("counted since"),
    _("created at"), _("created at ms"), _("cursor"), _("deleted at"), _("delta"), _("description"), _("detail"),
    _("digest"), _("dimensions"), _("documents"), _("done"), _("engine session id"), _("error"), _("error message"),
    _("expires at"), _("facts"), _("failed at"), _("failures"), _("filename"), _("finished at"), _("first failed at"),
    _("first ms"), _("flush sent at"), _("flushed at"), _("given up at"), _("hidden at"), _("hides"), _("high"),
    _("holder"), _("id"), _("importance"), _("internal uri"), _("is active"), _("is indexed"), _("key"), _("kind"),
    _("knows other scripts"), _("label"), _("last error"), _("last ms"), _("last used at"), _("lease holder"),
    _("leased until"), _("locked until"), _("low"), _("member"), _("memory id"), _("memory type"), _("mid"),
    _("mime type"), _("model"), _("name"), _("name digest"), _("names"), _("network"), _("noted at"), _("number"),
    _("of agent"), _("operator"), _("origin"), _("original text"), _("override id"), _("owner"), _("params"),
    _("payload"), _("prefix"), _("project id"), _("reason"), _("refusals"), _("request id"), _("resource id"),
    _("result"), _("retry at"), _("revoked at"), _("row"), _("rows"), _("scopes"), _("searchable at"), _("sender id"),
    _("sends dimensions"), _("seq"), _("session id"), _("session row"), _("sha256"), _("size bytes"), _("slice"),
    _("source"), _("source uri"), _("space"), _("span"), _("speaker"), _("start"), _("started at"), _("status"),
    _("stop asked at"), _("storage path"), _("subject id"), _("subject type"), _("text"), _("title"),
    _("token count"), _("tokenizer"), _("tokens"), _("tombstone id"), _("total"), _("type"), _("undone at"),
    _("until seq"), _("updated at"), _("user"), _("user id"), _("uuid"), _("vector"), _("version"), _("weight"),
    # what fields are for
    _("0 until the first vector came, where the settings name no number."),
    _("After this, never sent again."),
    _("Below the storage folder; uploads only."),
    _("Counts every change; the ETag is made of it."),
    _("Deleted by its user; restorable until purged."),
    _("Deleted, but its file or what the engine keeps of it is not gone yet."),
    _("How many of importance 0.67 or more."),
    _("How many of importance below 0.34."),
    _("Key or token id, operator name or command."),
    _("Retried for seven days from here."),
    _("Set for good: late writes are refused."),
    _("The engine's own id: the same, unless another user already holds that id upstream."),
    _("The first characters, to tell keys apart."),
    _("The first characters, to tell tokens apart."),
    _("The id that the application gave."),
    _("The memories that are held back."),
    _("The sum of their importance in millionths."),
    _("What it may do, separated by spaces."),
    _("When somebody began to undo it."),
    _("When unconfirmed calls are retried."),
    _("Where a registered file lies."),
    _("Whether the model is asked for that number."),
    _("Who says it, as questions name them."),
    # choices
    _("Active"), _("Agent Case"), _("Agent Skill"), _("Chat"), _("Command"), _("Deleted"), _("Disable"),
    _("Disabled"), _("Done"), _("Embedded"), _("Empty"), _("Enable"), _("Episode"), _("External"),
    _("External Resource"), _("Extracted"), _("Failed"), _("Ingesting"), _("Key"), _("Memory Add"), _("Memory Edit"),
    _("Operator"), _("Other"), _("Panel"), _("Patch"), _("Pending"), _("Profile"), _("Provisioning"), _("Queued"),
    _("Resource"), _("Restore"), _("Running"), _("Stopped"), _("System"), _("Token"), _("Tool"),
    _("Unprocessed Message"), _("Upload"), _("Upstream"), _("User"), _("Work"), _("Write"),
)  # fmt: skip
SUBJECTS: Final = {
    "memory": gettext_lazy("memory"),
    "session": gettext_lazy("session"),
    "user": gettext_lazy("user"),
    "resource": gettext_lazy("resource"),
    "profile": gettext_lazy("profile"),
    "job": gettext_lazy("job"),
    "archive": pgettext_lazy("line of the audit trail", "archive"),
    "key": pgettext_lazy("line of the audit trail", "key"),
    "token": pgettext_lazy("line of the audit trail", "token"),
    "operator": gettext_lazy("operator"),
    "network": gettext_lazy("network"),
    "address": pgettext_lazy("line of the audit trail", "address"),
}
"""What lines of the audit trail are about."""


def translate() -> None:
    """Has every label of our tables follow the language. Call once, when all models are there."""
    for name in APPS:
        config = apps.get_app_config(name)
        config.verbose_name = _lazy(config.verbose_name)
        for model in config.get_models():
            _translate(model)


def _translate(model: type[Model]) -> None:
    options = model._meta  # noqa: SLF001
    options.verbose_name = _lazy(options.verbose_name)
    options.verbose_name_plural = _lazy(options.verbose_name_plural)
    for field in options.get_fields():
        if isinstance(field, Field):
            field.verbose_name = _lazy(field.verbose_name)
            field.help_text = _lazy(field.help_text)
            if field.choices:
                field.choices = [(value, _lazy(label)) for value, label in field.flatchoices]


def _lazy(said: Any) -> Any:
    """`gettext` of nothing would be the head of the catalogue."""
    return gettext_lazy(str(said)) if said else ""
