"""The pages of operators: who may sign in, with which role, and when they last did."""

from typing import Any

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.models import User
from django.db import IntegrityError
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from accounts import operators as services
from accounts import second_factor, tenants
from accounts.admin_base import actor_of
from console.access import page, render
from console.forms import ROLES, NewOperatorForm, OperatorForm
from console.views import invitation
from core.errors import existing
from core.rest import Forbidden

VIEW_OPERATORS, ADD_OPERATORS, CHANGE_OPERATORS = (f"auth.{verb}_user" for verb in ("view", "add", "change"))


@page(VIEW_OPERATORS)
def operators(request: HttpRequest) -> HttpResponseBase:
    return _list(request, NewOperatorForm())


@page(ADD_OPERATORS, "POST")
def add(request: HttpRequest) -> HttpResponseBase:
    """Create an operator and show the link of the invitation once."""
    form = NewOperatorForm(request.POST)
    if form.is_valid():
        values = form.cleaned_data
        try:
            created = services.create(values["username"], values["role"], actor=actor_of(request))
        except IntegrityError:
            form.add_error("username", _("An operator with this name exists."))
        else:
            return _list(request, NewOperatorForm(), invited=created)
    return _list(request, form, status=422)


@page(VIEW_OPERATORS, "GET", "POST")
def operator(request: HttpRequest, pk: int) -> HttpResponseBase:
    """Show an operator, and change the role and whether they may sign in."""
    found = _get(pk)
    limit = ", ".join(found.tenants.order_by("tenant").values_list("tenant", flat=True))
    form = OperatorForm(initial={"role": found.groups.first(), "tenants": limit, "is_active": found.is_active})
    if request.method == "POST":
        _require_change(request, found)
        form = OperatorForm(request.POST)
        if form.is_valid():
            values = form.cleaned_data
            services.change(found, values["role"], is_active=values["is_active"], actor=actor_of(request))
            tenants.limit(found, values["tenants"], actor=actor_of(request))
            messages.success(request, _("Operator changed."))
            return redirect("console:operators")
    context = {
        "title": found.get_username(),
        "operator": found,
        "form": form,
        "roles": _labels(found),
        "limit": limit,
        "can_change": _can_change(request, found),
        "has_factor": second_factor.is_on(found),
        "is_role_of_provider": hasattr(found, "identity") and settings.MEMORY_GATEWAY_OIDC_ROLES,
    }
    return render(request, "console/operator.html", context, status=422 if form.errors else 200)


@page(CHANGE_OPERATORS, "POST")
def sign_out(request: HttpRequest, pk: int) -> HttpResponseBase:
    found = _get(pk)
    _require_change(request, found)
    count = services.sign_out(found, actor=actor_of(request))
    message = ngettext("%(count)s session ended.", "%(count)s sessions ended.", count)
    messages.success(request, message % {"count": count})
    return redirect("console:operator", pk=pk)


@page(CHANGE_OPERATORS, "POST")
def reset_password(request: HttpRequest, pk: int) -> HttpResponseBase:
    """End the password of an operator and show the link by which they set another one."""
    found = _get(pk)
    _require_change(request, found)
    services.reset_password(found, actor=actor_of(request))
    return _list(request, NewOperatorForm(), invited=found)


@page(CHANGE_OPERATORS, "POST")
def remove_factor(request: HttpRequest, pk: int) -> HttpResponseBase:
    """Turn the second factor of an operator off, who has lost it."""
    found = _get(pk)
    _require_change(request, found)
    second_factor.turn_off(found, actor=actor_of(request))
    messages.success(request, _("Second factor turned off."))
    return redirect("console:operator", pk=pk)


def _list(
    request: HttpRequest, form: NewOperatorForm, *, invited: User | None = None, status: int = 200
) -> HttpResponseBase:
    rows = (
        User.objects.filter(is_staff=True)
        .select_related("identity")
        .prefetch_related("groups", "user_permissions")
        .order_by("-is_active", "username")
    )
    context: dict[str, Any] = {
        "title": _("Operators"),
        "rows": [{"operator": row, "roles": _labels(row), "is_invited": services.is_invited(row)} for row in rows],
        "form": form,
        "roles": ROLES.values(),
        "by_password": settings.MEMORY_GATEWAY_PASSWORD_SIGN_IN,
    }
    if invited and settings.MEMORY_GATEWAY_PASSWORD_SIGN_IN:
        days = settings.PASSWORD_RESET_TIMEOUT // 86_400
        context |= {"invited": invited, "link": invitation.address_of(request, invited), "days": days}
    return render(request, "console/operators.html", context, status=status)


def _labels(operator: User) -> list[str]:
    if operator.is_superuser:
        return [_("Superuser")]
    labels = [str(ROLES[name][0]) if name in ROLES else name for name in services.roles_of(operator)]
    return [*labels, _("individual permissions")] if operator.user_permissions.all() else labels


def _can_change(request: HttpRequest, operator: User) -> bool:
    """Return False for the own account, to prevent lock-outs, and for superusers unless a superuser asks."""
    user = request.user
    return (
        operator.pk != user.pk and user.has_perm(CHANGE_OPERATORS) and (user.is_superuser or not operator.is_superuser)
    )


def _require_change(request: HttpRequest, operator: User) -> None:
    if not _can_change(request, operator):
        raise Forbidden(_("You cannot change your own account here, and only superusers change superusers."))


def _get(pk: int) -> User:
    return existing(User.objects.filter(is_staff=True, pk=pk), _("There is no such operator."))
