"""What an operator says about a file of a user's."""

from __future__ import annotations

from django import forms
from django.utils.translation import gettext_lazy as _

from core.ids import check_name
from core.sentences import told


class UploadForm(forms.Form):
    user = forms.CharField(max_length=64)
    app = forms.CharField(max_length=64, required=False)
    project = forms.CharField(max_length=64, required=False)
    title = forms.CharField(max_length=500, required=False)
    description = forms.CharField(max_length=4000, required=False, widget=forms.Textarea)
    file = forms.FileField(
        max_length=255,
        allow_empty_file=True,
        error_messages={"required": _("Choose a file."), "max_length": _("The name of the file is too long.")},
    )

    def clean_app(self) -> str:
        return self._scope("app")

    def clean_project(self) -> str:
        return self._scope("project")

    def _scope(self, field: str) -> str:
        value: str = self.cleaned_data[field] or "default"
        try:
            check_name(value)
        except ValueError as error:
            raise forms.ValidationError(told(str(error))) from None
        return value
