from datetime import datetime, timedelta
from typing import Any

from django import forms
from django.conf import settings
from django.contrib.admin.forms import AdminAuthenticationForm
from django.contrib.auth.models import User
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from accounts import scopes, second_factor, services, sessions, sign_in, tokens
from core.errors import TooManyRequests
from core.ids import MAX_USER_ID_CHARS, check_name
from core.localization import localized


class OperatorSignInForm(AdminAuthenticationForm):
    """The admin's sign-in form with a limit on failed attempts, and the code of operators with a second factor."""

    code = forms.CharField(max_length=32, required=False)

    def clean(self) -> dict[str, Any]:
        username, password = self.cleaned_data.get("username"), self.cleaned_data.get("password")
        if not username or not password:
            return super().clean()
        address = self.request.META.get("REMOTE_ADDR", "") if self.request else ""
        if not settings.MEMORY_GATEWAY_PASSWORD_SIGN_IN:
            sign_in.record_failure(username, address)
            raise forms.ValidationError(_("Passwords are turned off here. Use single sign-on."))
        try:
            sign_in.begin(username, address)
        except TooManyRequests as error:
            sign_in.record_failure(username, address)
            minutes = -(-(error.retry_after_seconds or 0) // 60)
            message = _("Too many failed attempts. Try again in %(minutes)s minutes.")
            raise forms.ValidationError(message, params={"minutes": minutes}) from None
        try:
            cleaned = super().clean()
            self._check_code()
        except forms.ValidationError:
            sign_in.fail(username, address)
            raise
        sign_in.succeed(username, address)
        if self.request:
            sessions.forget(self.request)
        return cleaned

    def _check_code(self) -> None:
        operator = self.get_user()
        if second_factor.is_on(operator) and not second_factor.accept(operator, self.cleaned_data.get("code", "")):
            raise forms.ValidationError(_("Enter the present code of your authenticator app, or a recovery code."))

    def confirm_login_allowed(self, user: Any) -> None:
        super().confirm_login_allowed(user)
        if hasattr(user, "identity"):
            raise forms.ValidationError(_("This operator has no password and signs in by single sign-on."))


class PanelField(forms.BoundField):
    """A field with the panel's look."""

    def build_widget_attrs(self, attrs: dict[str, Any], widget: forms.Widget | None = None) -> dict[str, Any]:
        attrs = super().build_widget_attrs(attrs, widget)
        is_line = not isinstance(widget or self.field.widget, forms.CheckboxInput | forms.CheckboxSelectMultiple)
        return {"class": "mg-input", **attrs} if is_line else attrs


class CredentialForm(forms.Form):
    bound_field_class = PanelField


class CreateUserForm(CredentialForm):
    user_id = forms.CharField(
        max_length=MAX_USER_ID_CHARS,
        strip=False,
        label=_("User ID"),
        help_text=_("The ID at your identity source, such as an e-mail address or auth0|12."),
    )


def _days_field() -> forms.IntegerField:
    return forms.IntegerField(
        min_value=1,
        max_value=services.MAX_LIFETIME.days,
        required=False,
        label=_("Expires after (days)"),
        help_text=_("Leave empty to never expire."),
    )


def expiry_of(form: forms.Form) -> datetime | None:
    """Return the expiry time from a valid form's field `days`."""
    days = form.cleaned_data["days"]
    return timezone.now() + timedelta(days=days) if days else None


def _check_id(value: str) -> None:
    """Check the id of an application or agent. Raises: `ValidationError`."""
    try:
        check_name(value)
    except ValueError as error:
        raise forms.ValidationError(localized(error.args[0])) from None


class IssueKeyForm(CredentialForm):
    user_id = forms.CharField(max_length=MAX_USER_ID_CHARS, label=_("User ID"))
    label = forms.CharField(
        max_length=services.MAX_LABEL_CHARS,
        label=_("Label"),
        required=False,
        help_text=_("For your reference, for example the application's name."),
    )
    days = _days_field()
    scopes = forms.MultipleChoiceField(
        choices=[
            (scopes.SEARCH, _("search: read memories and profiles")),
            (scopes.ADD, _("add: store memories")),
            (scopes.DECIDE, _("decide: change, delete and restore")),
            (scopes.FILES, _("files: read, upload and delete files")),
            (scopes.CONTROLS, _("controls: tighten controls")),
        ],
        required=False,
        label=_("Scopes"),
        help_text=_("Select none for a key that may do everything but tighten controls."),
        widget=forms.CheckboxSelectMultiple,
    )
    app_id = forms.CharField(
        max_length=64, required=False, validators=[_check_id], label=_("Only application"), help_text=_("Empty: all.")
    )
    agent_id = forms.CharField(
        max_length=64, required=False, validators=[_check_id], label=_("Only agent"), help_text=_("Empty: all.")
    )


class IssueTokenForm(CredentialForm):
    label = forms.CharField(
        max_length=services.MAX_LABEL_CHARS, label=_("Label"), help_text=_("The person or program that uses the token.")
    )
    operator = forms.ModelChoiceField(
        User.objects.filter(is_active=True, is_staff=True).order_by("username"),
        required=False,
        label=_("Operator"),
        help_text=_("Can access all users. New memories belong to the user openclaw."),
    )
    user_id = forms.CharField(
        max_length=MAX_USER_ID_CHARS, required=False, label=_("Or user ID"), help_text=_("Can access only this user.")
    )
    scopes = forms.MultipleChoiceField(
        choices=[
            (tokens.ADMIN, _("operator.admin: full access")),
            (tokens.WRITE, _("operator.write: agent tools")),
            (tokens.READ, _("operator.read: health only")),
        ],
        initial=[tokens.ADMIN],
        label=_("Token scopes"),
        widget=forms.CheckboxSelectMultiple,
    )
    days = _days_field()


class RotateKeyForm(CredentialForm):
    grace_hours = forms.IntegerField(
        min_value=0,
        max_value=services.MAX_GRACE.days * 24,
        initial=0,
        label=_("Grace period (hours)"),
        help_text=_("The old key keeps working during this time. 0 revokes it at once."),
    )
