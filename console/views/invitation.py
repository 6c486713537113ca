"""The page of an invitation: by a one-time link an operator sets a password that no other operator sees."""

from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.contrib.auth.views import PasswordResetConfirmView
from django.http import HttpRequest
from django.http.response import HttpResponse, HttpResponseBase
from django.urls import reverse_lazy
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts import operators
from console.views.sign_in import open_page
from core.errors import NotFound


class _Invitation(PasswordResetConfirmView):
    """Django's page of a password reset: its link works once, because it is signed with the former password."""

    template_name = "console/invitation.html"
    title = gettext_lazy("Choose a password")
    success_url = reverse_lazy("console:dashboard")

    def get_user(self, uidb64: str) -> Any:
        user = super().get_user(uidb64)
        return user if operators.may_have_password(user) else None

    def form_valid(self, form: Any) -> HttpResponse:
        response = super().form_valid(form)
        operators.accept_invitation(form.user)
        return response

    def render_to_response(self, context: dict[str, Any], **kwargs: Any) -> HttpResponse:
        if not context["validlink"]:
            raise NotFound(_("The link has been used or has expired. Ask an administrator for another one."))
        context["form"].fields["new_password1"].label = _("Password")
        context["operator"] = self.user
        status = 422 if context["form"].errors else 200
        return super().render_to_response(context, status=status, **kwargs)


_view = _Invitation.as_view()


@open_page
def invitation(request: HttpRequest, uidb64: str, token: str) -> HttpResponseBase:
    if not settings.MEMORY_GATEWAY_PASSWORD_SIGN_IN:
        raise NotFound(_("Passwords are turned off here. Use single sign-on."))
    return _view(request, uidb64=uidb64, token=token)


def address_of(request: HttpRequest, operator: User) -> str:
    """Return the link of the operator's invitation."""
    return request.build_absolute_uri(operators.invitation_path(operator))
