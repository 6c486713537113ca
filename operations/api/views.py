from __future__ import annotations

from typing import Any

from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.utils import extend_schema
from rest_framework.authentication import BaseAuthentication
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts import provisioning
from accounts.api.authentication import UserKeyAuthentication, bearer
from accounts.api.openapi import problems, query_parameters
from accounts.audit import Actor
from accounts.principal import Principal
from core.errors import InvalidInput, NotFound
from core.rest import parse_query
from operations import erase
from operations.api.schemas import ErasureQuery, ErasureReceipt


class Provisioner:
    """The bearer of the provisioning token."""

    is_authenticated = True


class KeyOrProvisioning(BaseAuthentication):
    """The user's own key, or the provisioning token. Errors: those of the key."""

    _key = UserKeyAuthentication()

    def authenticate(self, request: Request) -> tuple[Principal | Provisioner, None] | None:
        if provisioning.is_token(bearer(request)):
            return Provisioner(), None
        return self._key.authenticate(request)

    def authenticate_header(self, request: Request) -> str:
        return self._key.authenticate_header(request)


class KeyOrProvisioningScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    target_class = "operations.api.views.KeyOrProvisioning"
    name = "keyOrProvisioningAuth"

    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:
        return {
            "type": "http",
            "scheme": "bearer",
            "description": "The user's own key `uk_…`, or the provisioning token.",
        }


class UserErasureView(APIView):
    authentication_classes = [KeyOrProvisioning]

    @extend_schema(
        operation_id="erase_user",
        tags=["users"],
        summary="Erase a user and everything that is theirs, for good",
        parameters=query_parameters(ErasureQuery),
        responses={200: ErasureReceipt, **problems(400, 401, 404, 422, 503)},
    )
    def delete(self, request: Request, user_id: str) -> Response:
        """With the user's own key for themselves, or the provisioning token for anybody. Keep the receipt: it is the
        only record that still names the user.
        """
        query = parse_query(ErasureQuery, request)
        who: Principal | Provisioner = request.user  # type: ignore[assignment]
        if isinstance(who, Principal):
            if who.user_id != user_id:
                raise NotFound("There is no such user.")
            user_pk, actor = who.user_pk, Actor.key(who)
        else:
            user_pk, actor = erase.find(user_id), Actor.provisioning()
        if query.confirm != f"erase:{user_id}":
            raise InvalidInput.of_field("confirm", f"must be erase:{user_id}, because nothing brings it back")
        return Response(erase.erase(user_pk, actor=actor))
