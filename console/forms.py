"""What operators type, checked before a service sees it."""

from __future__ import annotations

from typing import Any, Final, Self

from django import forms
from django.utils.translation import gettext_lazy as _

from core.ids import check_name
from core.sentences import told
from memories.services.decisions import OverrideValues
from store.categories import CATEGORIES, label
from store.types import StoredMemory

MAX_EDIT_CHARS: Final = 100_000
MAX_TEXT_CHARS: Final = 8000


def _lines(text: str) -> str:
    """Browsers send CRLF; what agents wrote has plain line ends."""
    return text.replace("\r\n", "\n")


class _TextField(forms.CharField):
    """Words of which every character counts, the ends trimmed."""

    widget = forms.Textarea

    def to_python(self, value: Any) -> str:
        return _lines(super().to_python(value) or "").strip()


class EditForm(forms.Form):
    """A correction. `etag` is the wording that it was made from."""

    text = _TextField(max_length=MAX_EDIT_CHARS)
    category = forms.ChoiceField(required=False)
    importance = forms.FloatField(required=False, min_value=0, max_value=1)
    etag = forms.CharField(max_length=64)

    def __init__(self, data: Any = None, *, memory: StoredMemory, **kwargs: Any) -> None:
        super().__init__(data, **kwargs)
        known = list(CATEGORIES) if memory.category in CATEGORIES else [memory.category, *CATEGORIES]
        self.fields["category"].choices = [(one, label(one)) for one in known]  # type: ignore[attr-defined]

    @classmethod
    def of(cls, memory: StoredMemory, etag: str) -> Self:
        """The form as it is opened."""
        initial = {
            "text": memory.text,
            "category": memory.category,
            "importance": "" if memory.importance is None else memory.importance,
            "etag": etag,
        }
        return cls(initial=initial, memory=memory)

    def correction(self) -> OverrideValues:
        given = self.cleaned_data
        return OverrideValues(text=given["text"], category=given["category"], importance=given["importance"])


class ReasonForm(forms.Form):
    reason = forms.CharField(max_length=200, required=False)


class AddForm(forms.Form):
    """A memory by hand. `again` says that the same text may be there twice."""

    user = forms.CharField(max_length=64)
    agent = forms.CharField(max_length=64, required=False)
    app = forms.CharField(max_length=64, required=False)
    project = forms.CharField(max_length=64, required=False)
    category = forms.ChoiceField(
        choices=[(one, label(one)) for one in CATEGORIES],
        error_messages={"required": _("Choose a category."), "invalid_choice": _("Choose a category.")},
    )
    text = _TextField(
        max_length=MAX_TEXT_CHARS,
        error_messages={
            "required": _("Write the text."),
            "max_length": _(
                "The text has %(show_value)d characters; at most %(limit_value)d can be kept. "
                "Shorten it, or upload it as a file."
            ),
        },
    )
    again = forms.BooleanField(required=False)

    def clean_agent(self) -> str:
        return self._name("agent")

    def clean_app(self) -> str:
        return self._name("app") or "default"

    def clean_project(self) -> str:
        return self._name("project") or "default"

    def _name(self, field: str) -> str:
        value: str = self.cleaned_data[field]
        if value:
            try:
                check_name(value)
            except ValueError as error:
                raise forms.ValidationError(told(str(error))) from None
        return value
