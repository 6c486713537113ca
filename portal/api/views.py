from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts import portal_links
from accounts.api.openapi import problems, request_body, success
from accounts.audit import Actor
from accounts.models import Principal
from accounts.services import find_user
from core.errors import InvalidInput
from core.messages import Translatable as _
from core.rest import parse
from core.times import isoformat
from operations.api.views import KeyOrProvisioning, Provisioner
from portal.access import open_address
from portal.api.schemas import NewPortalLink, PortalLinkBody


class PortalLinkView(APIView):
    authentication_classes = [KeyOrProvisioning]

    @extend_schema(
        operation_id="create_portal_link",
        tags=["users"],
        summary="Make a link to the user's own pages",
        request=request_body(PortalLinkBody),
        responses={200: success(NewPortalLink, "The link, for one use within ten minutes."), **problems(404, 422)},
    )
    def post(self, request: Request) -> Response:
        """Make a one-time link to the pages where a user sees, corrects and deletes what is stored of them.

        Send the user's API key, one without scopes, or the provisioning token and the `user_id`. The link is in the
        user's audit trail before it is returned.
        """
        body = parse(PortalLinkBody, request.data)
        who: Principal | Provisioner = request.user  # type: ignore[assignment]
        frame_origin = body.frame_origin or ""
        if isinstance(who, Principal):
            issued = portal_links.create(
                who.user_pk, key_id=who.key_id, frame_origin=frame_origin, actor=Actor.key(who)
            )
        else:
            if not body.user_id:
                raise InvalidInput.of_field("user_id", _("is required with the provisioning token"))
            user = find_user(body.user_id)
            issued = portal_links.create(user.pk, frame_origin=frame_origin, actor=Actor.provisioning())
        return Response(
            {
                "url": request.build_absolute_uri(open_address(issued.plaintext)),
                "expires_at": isoformat(issued.link.expires_at),
                "session_seconds": int(portal_links.SESSION_LIFETIME.total_seconds()),
            }
        )
