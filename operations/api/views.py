from collections.abc import Sequence
from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework.permissions import IsAuthenticated
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.api.authentication import UserKeyAuthentication, bearer, is_provisioning_token
from accounts.api.openapi import BearerScheme, path_parameter, problems, query_parameters, success
from accounts.api.schemas import UserId
from accounts.api.views import UserViewSet
from accounts.audit import Actor
from accounts.models import Principal
from core.errors import InvalidInput, NotFound
from core.ids import user_id_form
from core.messages import Translatable as _
from core.rest import parse_query
from operations import erase
from operations.api.schemas import ErasureQuery, ErasureReceipt, NamedErasureQuery


class Provisioner:
    """The bearer of the provisioning token."""

    is_authenticated = True


class KeyOrProvisioning(UserKeyAuthentication):
    """Authenticates by the user's own API key or the provisioning token. Raises: the errors of the key."""

    def authenticate(self, request: Request) -> tuple[Any, None] | None:
        return (Provisioner(), None) if is_provisioning_token(bearer(request)) else super().authenticate(request)


class KeyOrProvisioningScheme(BearerScheme):  # type: ignore[no-untyped-call]
    target_class = "operations.api.views.KeyOrProvisioning"
    name = "keyOrProvisioningAuth"
    description = "The user's own API key `uk_…`, or the provisioning token."


class UsersViewSet(UserViewSet):
    def get_authenticators(self) -> list[Any]:
        return [KeyOrProvisioning()] if self._erases else super().get_authenticators()

    def get_permissions(self) -> Sequence[Any]:
        return [IsAuthenticated()] if self._erases else super().get_permissions()

    @property
    def _erases(self) -> bool:
        return self.request is not None and self.request.method == "DELETE"

    @extend_schema(
        operation_id="erase_user_by_id",
        tags=["users"],
        summary="Erase a user by an id of any form",
        parameters=query_parameters(NamedErasureQuery),
        responses={200: success(ErasureReceipt, "The receipt of the erasure."), **problems(404, 422)},
    )
    def erase(self, request: Request) -> Response:
        """Erase the user that the query names, also by an id with a slash: else as `DELETE /users/{user_id}`."""
        query = parse_query(NamedErasureQuery, request)
        return _erase(request, query.user_id, query.confirm)


class UserErasureView(APIView):
    authentication_classes = [KeyOrProvisioning]

    @extend_schema(
        operation_id="erase_user",
        tags=["users"],
        summary="Erase a user",
        parameters=[path_parameter("user_id", UserId), *query_parameters(ErasureQuery)],
        responses={200: success(ErasureReceipt, "The receipt of the erasure."), **problems(404, 422)},
    )
    def delete(self, request: Request, user_id: str) -> Response:
        """Erase a user with all rows, files, keys and audit entries. It cannot be undone.

        Send the user's own API key or the provisioning token.
        """
        return _erase(request, user_id, parse_query(ErasureQuery, request).confirm)


def _erase(request: Request, user_id: str, confirm: str) -> Response:
    """Erase a user, and return the receipt. Raises: `NotFound`, `InvalidInput` without the confirmation."""
    user_id = user_id_form(user_id)
    who: Principal | Provisioner = request.user  # type: ignore[assignment]
    if isinstance(who, Principal):
        if who.user_id != user_id:
            raise NotFound(_("There is no such user."))
        user_pk, actor = who.user_pk, Actor.key(who)
    else:
        user_pk, actor = erase.find(user_id), Actor.provisioning()
    if user_id_form(confirm) != f"erase:{user_id}":
        raise InvalidInput.of_field(
            "confirm", _("must be erase:%(user_id)s, because an erasure cannot be undone", user_id=user_id)
        )
    return Response(erase.erase(user_pk, actor=actor))
