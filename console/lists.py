"""The states of the lists besides memories: files, users, the trash, jobs, the audit trail."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from django.utils import timezone
from django.utils.translation import gettext, pgettext_lazy
from django.utils.translation import gettext_lazy as _

from console.filters import Chip, position
from console.keyset import Paged
from console.state import Cleaner, State, moment, one_of, parse_moment, text

RESOURCE_STATES: Final = {
    "pending": _("pending"),
    "ingesting": _("ingesting"),
    "extracted": _("extracted"),
    "failed": _("failed"),
    "empty": _("empty"),
    "deleted": _("deleted"),
}
FILE_TYPES: Final = {
    "pdf": "PDF",
    "doc": _("Document"),
    "html": "HTML",
    "image": _("Image"),
    "audio": _("Audio"),
    "text": _("Text"),
}
ACTORS: Final = {
    "operator": _("operator"),
    "key": pgettext_lazy("who acts", "a user's key"),
    "token": pgettext_lazy("who acts", "a token"),
    "command": pgettext_lazy("who acts", "a command"),
    "provisioning": _("whoever makes users"),
    "system": _("the gateway itself"),
}
USER_VIEWS: Final = ("overview", "sessions", "audit")
_DIGEST = re.compile(r"[0-9a-f]{16}")


def digest(value: str) -> str:
    """A cleaner for what `console.failures` calls a cause. Errors: ValueError."""
    if not _DIGEST.fullmatch(value):
        raise ValueError(gettext("is not one of the choices"))
    return value


@dataclass(frozen=True, slots=True, kw_only=True)
class Filtered(Paged):
    """A list with filters whose labels stand in `named`."""

    @classmethod
    def named(cls) -> Mapping[str, Any]:
        raise NotImplementedError

    def chips(self) -> list[Chip]:
        """The filters in force, each with the address without it."""
        return [
            Chip(str(label), self.shown(name), self.first_page(**{name: ""}))
            for name, label in self.named().items()
            if getattr(self, name)
        ]

    def shown(self, name: str) -> str:
        """A filter's value in words."""
        value: str = getattr(self, name)
        return value

    def clear(self) -> str:
        return self.path


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceState(Filtered):
    state: str = ""
    q: str = ""
    user: str = ""
    type: str = ""
    cause: str = ""

    @classmethod
    def cleaners(cls) -> Mapping[str, Cleaner]:
        return {
            "state": one_of(*RESOURCE_STATES),
            "q": text(255),
            "user": text(64),
            "type": one_of(*FILE_TYPES),
            "cause": digest,
            **cls.places(),
        }

    @classmethod
    def named(cls) -> Mapping[str, Any]:
        return {"q": _("File name, owner or id"), "user": _("User"), "type": pgettext_lazy("of a file", "Type")}

    def shown(self, name: str) -> str:
        return str(FILE_TYPES[self.type]) if name == "type" else super(ResourceState, self).shown(name)


@dataclass(frozen=True, slots=True, kw_only=True)
class UserState(State):
    """Users in the order of their ids."""

    q: str = ""
    after: str = ""

    @classmethod
    def cleaners(cls) -> Mapping[str, Cleaner]:
        return {"q": text(64), "after": text(64)}


@dataclass(frozen=True, slots=True, kw_only=True)
class UserPageState(Paged):
    view: str = "overview"

    @classmethod
    def defaults(cls) -> Mapping[str, str]:
        return {"view": "overview"}

    @classmethod
    def cleaners(cls) -> Mapping[str, Cleaner]:
        return {"view": one_of(*USER_VIEWS), **cls.places()}


@dataclass(frozen=True, slots=True, kw_only=True)
class TrashState(State):
    """Hidden memories in the order in which they were written: those that were deleted, or those set aside."""

    kind: str = ""
    user: str = ""
    after: str = ""
    before: str = ""

    @classmethod
    def cleaners(cls) -> Mapping[str, Cleaner]:
        return {"kind": one_of("aside"), "user": text(64), "after": position, "before": position}

    def first_page(self, **changes: str) -> str:
        return self.url(**{"after": "", "before": "", **changes})

    def clear(self) -> str:
        """The same list of everybody."""
        return self.first_page(user="")


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionTrashState(Paged):
    """Deleted sessions, the last deleted first."""

    kind: str = "sessions"
    user: str = ""

    @classmethod
    def cleaners(cls) -> Mapping[str, Cleaner]:
        return {"kind": one_of("sessions"), "user": text(64), **cls.places()}

    def clear(self) -> str:
        """The same list of everybody."""
        return self.first_page(user="")


@dataclass(frozen=True, slots=True, kw_only=True)
class JobsState(Paged):
    @classmethod
    def cleaners(cls) -> Mapping[str, Cleaner]:
        return cls.places()


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditState(Filtered):
    user: str = ""
    actor: str = ""
    kind: str = ""
    action: str = ""
    subject: str = ""
    since: str = ""
    until: str = ""

    @classmethod
    def cleaners(cls) -> Mapping[str, Cleaner]:
        return {
            "user": text(64),
            "actor": text(150),
            "kind": one_of(*ACTORS),
            "action": text(64),
            "subject": text(256),
            "from": moment,
            "to": moment,
            **cls.places(),
        }

    @classmethod
    def named(cls) -> Mapping[str, Any]:
        return {
            "user": _("User"),
            "kind": _("Kind of actor"),
            "actor": _("Actor"),
            "action": _("Action"),
            "subject": _("Subject"),
            "since": _("From"),
            "until": _("To"),
        }

    @property
    def since_input(self) -> str:
        """As a field for day and time wants it; a day begins at midnight."""
        return f"{self.since}T00:00" if len(self.since) == 10 else self.since

    @property
    def until_input(self) -> str:
        if len(self.until) != 10:
            return self.until
        return f"{timezone.localtime(parse_moment(self.until, is_end=True)):%Y-%m-%dT%H:%M}"

    def shown(self, name: str) -> str:
        return str(ACTORS[self.kind]) if name == "kind" else super(AuditState, self).shown(name).replace("T", " ")
