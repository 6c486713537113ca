"""The page on which operators turn their own second factor on and off."""

from typing import Any, cast

from django.contrib import messages
from django.contrib.auth.models import User
from django.core import signing
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.utils.translation import gettext as _

from accounts import second_factor as services
from accounts import sign_in
from accounts.admin_base import actor_of
from console.access import page, render
from console.forms import SecondFactorForm
from core.errors import Conflict

_SALT = "console.second-factor"
_MAX_SECONDS = 3600


@page("", "GET", "POST", reach="lists")
def second_factor(request: HttpRequest) -> HttpResponseBase:
    operator = cast(User, request.user)
    if not operator.has_usable_password():
        raise Conflict(_("You sign in without a password. Your identity provider asks for a second factor."))
    return _turn_off(request, operator) if services.is_on(operator) else _turn_on(request, operator)


def _turn_on(request: HttpRequest, operator: User) -> HttpResponseBase:
    """Show a secret, which is stored when the operator has entered a code of it."""
    form = SecondFactorForm(request.POST if request.method == "POST" else None)
    secret = _read(request.POST.get("sealed", "")) or services.new_secret()
    if form.is_valid():
        step = services.step_of(secret, form.cleaned_data["code"])
        if step is not None:
            codes = services.turn_on(operator, secret, step, actor=actor_of(request))
            return render(request, "console/second_factor.html", {"title": _("Recovery codes"), "codes": codes})
        form.add_error("code", _("This is not the present code. Check the time of your device."))
    context: dict[str, Any] = {
        "title": _("Second factor"),
        "form": form,
        "secret": secret,
        "sealed": signing.dumps(secret, salt=_SALT),
        "setup_address": services.setup_address(operator.get_username(), secret),
    }
    return render(request, "console/second_factor.html", context, status=422 if form.errors else 200)


def _turn_off(request: HttpRequest, operator: User) -> HttpResponseBase:
    form = SecondFactorForm(request.POST if request.method == "POST" else None)
    if form.is_valid():
        name, address = operator.get_username(), request.META.get("REMOTE_ADDR", "")
        sign_in.begin(name, address)
        if services.accept(operator, form.cleaned_data["code"]):
            sign_in.forgive(name, address)
            services.turn_off(operator, actor=actor_of(request))
            messages.success(request, _("Second factor turned off."))
            return redirect("console:second-factor")
        form.add_error("code", _("This is neither the present code nor a recovery code."))
    context = {"title": _("Second factor"), "form": form, "is_on": True}
    return render(request, "console/second_factor.html", context, status=422 if form.errors else 200)


def _read(sealed: str) -> str:
    """Return the secret of the form, which was shown at most an hour ago; else nothing."""
    try:
        found: str = signing.loads(sealed, salt=_SALT, max_age=_MAX_SECONDS)
    except signing.BadSignature:
        return ""
    return found
