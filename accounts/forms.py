from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django import forms
from django.contrib.admin.forms import AdminAuthenticationForm
from django.utils import timezone

from accounts import services, sign_in
from memory_gateway.core.errors import TooManyRequests


class OperatorSignInForm(AdminAuthenticationForm):
    """The admin's sign-in form with a limit on guesses."""

    def clean(self) -> dict[str, Any]:
        username, password = self.cleaned_data.get("username"), self.cleaned_data.get("password")
        if not username or not password:
            return super().clean()
        address = self.request.META.get("REMOTE_ADDR", "") if self.request else ""
        try:
            sign_in.begin(username, address)
        except TooManyRequests as error:
            minutes = -(-(error.retry_after_seconds or 0) // 60)
            raise forms.ValidationError(f"Too many failed attempts: try again in {minutes} minutes.") from None
        return self._check_password(username, address)

    def _check_password(self, username: str, address: str) -> dict[str, Any]:
        try:
            cleaned = super().clean()
        except forms.ValidationError:
            sign_in.fail(username, address)
            raise
        sign_in.succeed(username, address)
        return cleaned


class CreateUserForm(forms.Form):
    user_id = forms.CharField(
        max_length=64, strip=False, label="User id", help_text="1 to 64 characters of A-Z a-z 0-9 _ . @ + -"
    )


class IssueKeyForm(forms.Form):
    user_id = forms.CharField(max_length=64, label="User id")
    label = forms.CharField(
        max_length=services.MAX_LABEL_CHARS, required=False, help_text="What the key is for, in your words."
    )
    days = forms.IntegerField(
        min_value=1,
        max_value=services.MAX_LIFETIME.days,
        required=False,
        label="Expires after (days)",
        help_text="Empty: never.",
    )

    def expires_at(self) -> datetime | None:
        """Of a valid form."""
        days = self.cleaned_data["days"]
        return timezone.now() + timedelta(days=days) if days else None


class RotateKeyForm(forms.Form):
    grace_hours = forms.IntegerField(
        min_value=0,
        max_value=services.MAX_GRACE.days * 24,
        initial=int(services.DEFAULT_GRACE.total_seconds() // 3600),
        label="Old key works for (hours)",
        help_text="Time to put the new key into the applications. 0 ends the old key at once.",
    )


class RevokeKeyForm(forms.Form):
    """Nothing but the confirmation."""
