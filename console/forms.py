"""Forms that operators fill in, and the base class of the panel's forms."""

import re
from collections.abc import Iterable, Mapping
from datetime import date, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, Self
from uuid import UUID

import orjson
from django import forms
from django.conf import settings
from django.contrib.auth.models import Group, User
from django.core.exceptions import ValidationError
from django.core.validators import RegexValidator
from django.utils import timezone
from django.utils.functional import Promise
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from accounts.forms import PanelField
from accounts.models import MAX_TENANT_CHARS, TENANT_PATTERN, Case, SavedView
from accounts.services import labels_of
from console import queries
from console.text import language_of
from core.ids import MAX_USER_ID_CHARS, check_name
from core.labels import check_metadata, check_tags
from core.localization import localized
from core.messages import MANAGE
from memories.services.decisions import OverrideValues
from store.categories import CATEGORIES, label
from store.expiry import has_ended
from store.types import METADATA, TAGS, Owner, StoredMemory

if TYPE_CHECKING:
    GroupField = forms.ModelChoiceField[Group]
else:
    GroupField = forms.ModelChoiceField

MAX_EDIT_CHARS: Final = 100_000
MAX_TEXT_CHARS: Final = 8000


def unknown_user(user_id: str) -> str:
    return gettext("There is no user %(user)s.") % {"user": user_id}


class _TextPanelField(PanelField):
    def build_widget_attrs(self, attrs: dict[str, Any], widget: forms.Widget | None = None) -> dict[str, Any]:
        attrs = super().build_widget_attrs(attrs, widget)
        if isinstance(widget or self.field.widget, forms.Textarea):
            attrs |= {"lang": language_of(self.value() or ""), "dir": "auto"}
        return attrs


FIRST_DAY, LAST_DAY = date(2000, 1, 1), date(2100, 12, 31)


class PanelForm(forms.Form):
    """A form with the panel's look: see `parts/field.html`."""

    bound_field_class = _TextPanelField

    def __init__(self, data: Any = None, files: Any = None, *, auto_id: str = "%s", **kwargs: Any) -> None:
        super().__init__(data, files, auto_id=auto_id, **kwargs)


class TextField(forms.CharField):
    """A text of several lines. The CRLF line ends of browsers become LF, as agents write them."""

    widget = forms.Textarea(attrs={"rows": 9})

    def to_python(self, value: Any) -> str:
        return (super().to_python(value) or "").replace("\r\n", "\n").strip()

    def widget_attrs(self, widget: forms.Widget) -> dict[str, Any]:
        return {}  # with `maxlength`, browsers would silently cut a longer text


class TimeField(forms.Field):
    """A day, or a time in the operator's time zone. With `is_end`, a day means its end."""

    widget = forms.TextInput(attrs={"type": "datetime-local", "step": "1"})

    def __init__(self, *, is_end: bool = False, **kwargs: Any) -> None:
        super().__init__(required=False, **kwargs)
        self.is_end = is_end

    def to_python(self, value: Any) -> datetime | None:
        if not value:
            return None
        try:
            found = datetime.fromisoformat(value)
        except ValueError:
            found = None
        if found is None or not FIRST_DAY <= found.date() <= LAST_DAY:
            raise ValidationError(_("The time is not valid. Use a format such as 2026-11-20 or 2026-11-20T16:42."))
        if self.is_end and len(value) <= 10:
            found += timedelta(days=1)
        return timezone.make_aware(found) if found.tzinfo is None else found

    def prepare_value(self, value: Any) -> Any:
        """Convert a day to a time, as the browser's input requires."""
        found = self.to_python(value) if value and len(value) <= 10 else None
        return f"{timezone.localtime(found):%Y-%m-%dT%H:%M}" if found else value


class NameField(forms.CharField):
    """The name of an app, a project or an agent."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(max_length=64, required=False, **kwargs)

    def clean(self, value: Any) -> str:
        name: str = super().clean(value)
        try:
            return check_name(name) if name else name
        except ValueError as error:
            raise forms.ValidationError(localized(error.args[0])) from None


class TagsField(forms.CharField):
    """Tags, separated by commas. The value is a list."""

    def __init__(self) -> None:
        super().__init__(label=_("Tags (optional, separated by commas)"), required=False)

    def clean(self, value: Any) -> Any:
        written = super().clean(value).replace("，", ",").split(",")
        try:
            return check_tags([tag for tag in written if tag.strip()])
        except ValueError as error:
            raise ValidationError(localized(error.args[0])) from None


def indented(metadata: Any) -> str:
    """Return metadata as JSON to read and edit; empty without any."""
    return orjson.dumps(metadata, option=orjson.OPT_INDENT_2).decode() if metadata else ""


class MetadataField(forms.CharField):
    """Metadata as JSON. The value is an object."""

    widget = forms.Textarea(attrs={"rows": 3, "spellcheck": "false", "placeholder": '{"source": "…"}'})

    def __init__(self) -> None:
        super().__init__(label=_("Metadata (optional, a JSON object)"), required=False)

    def clean(self, value: Any) -> Any:
        written = super().clean(value)
        try:
            metadata = orjson.loads(written) if written else {}
        except orjson.JSONDecodeError:
            metadata = None
        if not isinstance(metadata, dict):
            raise ValidationError(_('Enter a JSON object, such as {"source": "phone"}.'))
        try:
            return check_metadata(metadata)
        except ValueError as error:
            raise ValidationError(localized(error.args[0])) from None


class OwnerForm(PanelForm):
    """The owner of a new memory or file."""

    user = forms.CharField(
        label=_("User"), max_length=MAX_USER_ID_CHARS, widget=forms.TextInput(attrs={"list": "d-user"})
    )
    app = NameField(label=_("App"), empty_value="default", widget=forms.TextInput(attrs={"placeholder": "default"}))
    project = NameField(
        label=_("Project"), empty_value="default", widget=forms.TextInput(attrs={"placeholder": "default"})
    )
    user_pk: UUID

    def clean_user(self) -> str:
        user_id: str = self.cleaned_data["user"]
        pk = queries.user_pk(user_id)
        if pk is None:
            raise forms.ValidationError(unknown_user(user_id))
        self.user_pk = pk
        return user_id

    @property
    def owner(self) -> Owner:
        values = self.cleaned_data
        return Owner(self.user_pk, values["user"], values["app"], values["project"])


class AddForm(OwnerForm):
    """A new memory. `again` allows a text that another memory has already."""

    agent = NameField(label=_("Agent (optional)"), widget=forms.TextInput(attrs={"list": "d-agent"}))
    category = forms.ChoiceField(
        label=_("Category"),
        choices=[(one, label(one)) for one in CATEGORIES],
        error_messages={"required": _("Choose a category."), "invalid_choice": _("Choose a category.")},
    )
    text = TextField(
        label=_("Text"),
        max_length=MAX_TEXT_CHARS,
        widget=forms.Textarea(
            attrs={"rows": 9, "data-count": "n", "data-max": MAX_TEXT_CHARS, "aria-describedby": "n-line text_error"}
        ),
        error_messages={
            "required": _("Enter the text."),
            "max_length": _(
                "The text has %(show_value)d characters; the limit is %(limit_value)d. Shorten it, or "
                "upload it as a file."
            ),
        },
    )
    tags = TagsField()
    metadata = MetadataField()
    expires_at = TimeField(label=_("Expires (empty: never)"))
    again = forms.BooleanField(required=False)

    def clean_expires_at(self) -> datetime | None:
        expires_at: datetime | None = self.cleaned_data["expires_at"]
        if has_ended(expires_at):
            raise forms.ValidationError(_("The time has passed."))
        return expires_at


class FilesInput(forms.FileInput):
    allow_multiple_selected = True


class FilesField(forms.FileField):
    """One or more files. The value is a list."""

    widget = FilesInput

    def clean(self, data: Any, initial: Any = None) -> list[Any]:
        return [super(FilesField, self).clean(one, initial) for one in data or [None]]


class UploadForm(OwnerForm):
    file = FilesField(
        label=_("Files"),
        max_length=255,
        allow_empty_file=True,
        error_messages={
            "required": _("Choose a file."),
            "max_length": _("The file name is too long. Rename the file."),
        },
    )
    title = forms.CharField(label=_("Title (optional)"), max_length=500, required=False)
    description = forms.CharField(
        label=_("Description (optional)"), max_length=4000, required=False, widget=forms.Textarea(attrs={"rows": 3})
    )
    tags = TagsField()
    metadata = MetadataField()


class ImportForm(OwnerForm):
    """A file of another store, to import for a user."""

    source = forms.ChoiceField(
        label=_("Source"),
        choices=[
            ("mem0", _("mem0 (JSON)")),
            ("chatgpt", _("ChatGPT (zip or conversations.json)")),
            ("claude", _("Claude (zip or conversations.json)")),
            ("mcp-memory", _("MCP memory server (JSON lines)")),
            ("markdown", _("Markdown (zip)")),
            ("everos-markdown", _("EverOS Markdown (zip)")),
        ],
    )
    file = forms.FileField(label=_("File"), max_length=255, error_messages={"required": _("Choose a file.")})
    of_user = forms.CharField(label=_("User in the source (if it has several)"), max_length=256, required=False)
    category = forms.ChoiceField(
        label=_("Category of memories without one"), choices=[(one, label(one)) for one in CATEGORIES]
    )

    def clean_file(self) -> Any:
        file = self.cleaned_data["file"]
        most: int = settings.MEMORY_GATEWAY_MAX_UPLOAD_BYTES
        if file.size > most:
            message = gettext("The file is too large. Import it with %(manage)s import_from.")
            raise forms.ValidationError(message % {"manage": MANAGE})
        return file


def _tags_of(memory: StoredMemory) -> str:
    return ", ".join(memory.payload.get(TAGS) or ())


class EditForm(PanelForm):
    """An edit of a memory. `etag` identifies the version that the form was opened with."""

    text = TextField(label=_("Text"), max_length=MAX_EDIT_CHARS)
    category = forms.ChoiceField(label=_("Category"), required=False)
    importance = forms.FloatField(label=_("Importance (0–1)"), required=False, min_value=0, max_value=1)
    tags = TagsField()
    metadata = MetadataField()
    reason = forms.CharField(label=_("Reason (optional)"), max_length=200, required=False)
    etag = forms.CharField(max_length=64, widget=forms.HiddenInput)

    def __init__(self, data: Any = None, *, memory: StoredMemory, **kwargs: Any) -> None:
        super().__init__(data, **kwargs)
        known = list(CATEGORIES) if memory.category in CATEGORIES else [memory.category, *CATEGORIES]
        self.fields["category"].choices = [(one, label(one)) for one in known]  # type: ignore[attr-defined]

    @classmethod
    def of(cls, memory: StoredMemory, etag: str) -> Self:
        """Return the form with the values of a memory."""
        initial = {
            "text": memory.text,
            "category": memory.category,
            "importance": memory.importance,
            "tags": _tags_of(memory),
            "metadata": indented(memory.payload.get(METADATA)),
            "etag": etag,
        }
        return cls(initial=initial, memory=memory)

    def changed_values(self, memory: StoredMemory) -> OverrideValues:
        """Return the values that differ from those of the memory: its copies keep the others."""
        names = ("text", "category", "importance")
        values = {name: self.cleaned_data[name] for name in names}
        return OverrideValues(**{name: one for name, one in values.items() if one != getattr(memory, name)})

    def changed_labels(self, memory: StoredMemory) -> dict[str, Any]:
        """Return the tags and the metadata that were sent and differ from those of the memory."""
        sent = {name: self.cleaned_data[name] for name in (TAGS, METADATA) if name in self.data}
        if self.data.get(TAGS) == _tags_of(memory):  # a tag that an application gave may have a comma
            del sent[TAGS]
        return {name: value for name, value in sent.items() if value != (memory.payload.get(name) or type(value)())}


class ReasonForm(PanelForm):
    reason = forms.CharField(label=_("Reason (optional)"), max_length=200, required=False)


class RestoreForm(PanelForm):
    """When a memory that has expired expires again."""

    expires_at = TimeField(label=_("Expires (empty: never)"))


class PersonForm(PanelForm):
    """The name, e-mail address, labels, notes and tenant by which operators know a user."""

    name = forms.CharField(label=_("Name"), max_length=200, required=False)
    email = forms.EmailField(label=_("E-mail"), max_length=254, required=False)
    labels = forms.CharField(
        label=_("Labels"), max_length=500, required=False, help_text=_("Separated by commas, e.g. pilot, Berlin")
    )
    tenant = forms.CharField(
        label=_("Tenant"), max_length=MAX_TENANT_CHARS, required=False, validators=[RegexValidator(TENANT_PATTERN)],
        help_text=_("The organization or team. Operators can be limited to tenants."),
    )  # fmt: skip
    notes = forms.CharField(
        label=_("Notes"), max_length=10_000, required=False, widget=forms.Textarea(attrs={"rows": 5}),
        help_text=_("For operators; agents never read them."),
    )  # fmt: skip

    def clean_labels(self) -> str:
        return labels_of(self.cleaned_data["labels"].split(","))


class CaseForm(forms.Form):
    """The case of the subject of a page."""

    subject_type = forms.ChoiceField(choices=Case.Subject.choices)
    subject_id = forms.CharField(max_length=64)
    note = forms.CharField(label=_("Note"), max_length=4000, required=False)
    assignee = forms.ModelChoiceField(User.objects.none(), label=_("Assignee"), required=False)
    is_closed = forms.BooleanField(required=False)

    def __init__(self, data: Mapping[str, Any], *, assignees: Iterable[User]) -> None:
        super().__init__(data)
        self.fields["assignee"].queryset = User.objects.filter(  # type: ignore[attr-defined]
            pk__in=[one.pk for one in assignees]
        )


class SavedViewForm(forms.Form):
    """The name of a list with its filters."""

    name = forms.CharField(label=_("Name"), max_length=60)
    page = forms.ChoiceField(choices=SavedView.Page.choices)
    query = forms.CharField(max_length=8_000)
    is_shared = forms.BooleanField(required=False)


class EraseForm(PanelForm):
    """The confirmation of an erasure: the user id, typed by the operator."""

    confirm = forms.CharField(
        required=False, widget=forms.TextInput(attrs={"autocomplete": "off", "maxlength": 64, "required": True})
    )

    def __init__(self, data: Any = None, *, user_id: str) -> None:
        super().__init__(data)
        self.user_id = user_id
        self.fields["confirm"].label = gettext("Type %(user)s to confirm") % {"user": user_id}

    def clean_confirm(self) -> None:
        if self.cleaned_data["confirm"] != self.user_id:
            raise forms.ValidationError(_("The user ID does not match. Nothing was erased."))


# The groups that a migration creates. Administrators may have others.
ROLES: Final[dict[str, tuple[Promise, Promise]]] = {
    "Viewer": (_("Viewer"), _("Reads memories, resources, users and profiles.")),
    "Editor": (
        _("Editor"),
        _("Also adds, edits, deletes and restores memories and resources, and edits profiles."),
    ),
    "Curator": (
        _("Curator"),
        _("Also purges the trash, restores profile versions and reads the audit trail."),
    ),
    "Privacy officer": (
        _("Privacy officer"),
        _("Reads, exports and erases users, turns off profiles and reads the audit trail."),
    ),
    "Administrator": (
        _("Administrator"),
        _("All of these, and manages users, API keys, tokens, webhooks and operators."),
    ),
}


class RoleField(GroupField):
    def __init__(self) -> None:
        super().__init__(
            Group.objects.order_by("pk"), required=False, label=_("Role"), empty_label=_("No role: can sign in only")
        )

    def label_from_instance(self, obj: Group) -> str:
        return str(ROLES[obj.name][0]) if obj.name in ROLES else obj.name


class OperatorForm(PanelForm):
    role = RoleField()
    tenants = forms.CharField(
        label=_("Only tenants"), max_length=2_000, required=False,
        help_text=_("Separated by commas. Empty: all users. A limited operator sees and changes users of these only."),
    )  # fmt: skip
    is_active = forms.BooleanField(label=_("May sign in"), required=False)

    def clean_tenants(self) -> list[str]:
        names = [name for one in self.cleaned_data["tenants"].split(",") if (name := one.strip())]
        if any(len(name) > MAX_TENANT_CHARS or not re.fullmatch(TENANT_PATTERN, name) for name in names):
            raise ValidationError(_("A tenant has at most 64 letters, digits and the signs _ . @ + -"))
        return names


class NewOperatorForm(PanelForm):
    username = forms.CharField(label=_("Name"), max_length=150, validators=[User.username_validator])
    role = RoleField()


class SecondFactorForm(PanelForm):
    code = forms.CharField(
        label=_("Code of your authenticator app"),
        max_length=32,
        widget=forms.TextInput(attrs={"autocomplete": "one-time-code", "inputmode": "text", "autocapitalize": "none"}),
    )
