from datetime import timedelta

from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts import portal_links, services
from accounts.api.openapi import problems, request_body, success
from accounts.api.schemas import NewKey
from accounts.api.views import new_key
from accounts.audit import Actor
from accounts.models import Principal
from accounts.services import find_user
from core.errors import InvalidInput
from core.messages import Translatable as _
from core.rest import parse
from core.times import isoformat
from operations.api.views import KeyOrProvisioning, Provisioner
from portal.access import open_address
from portal.api.schemas import BrowserKeyBody, NewPortalLink, PortalLinkBody

LABEL = "browser"


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


class BrowserKeyView(APIView):
    authentication_classes = [KeyOrProvisioning]

    @extend_schema(
        operation_id="create_browser_key",
        tags=["keys"],
        summary="Make a short-lived key for a page of the application",
        request=request_body(BrowserKeyBody),
        responses={
            200: success(
                NewKey,
                "The key, of at most an hour.",
                label=LABEL,
                scopes=["search", "decide"],
                expires_at="2026-06-10T10:15:00+00:00",
            ),
            **problems(404, 409, 422),
        },
    )
    def post(self, request: Request) -> Response:
        """Make a key of at most an hour, for a page that calls the API from the user's browser.

        Send the provisioning token, so that the application's server keeps no keys of users, or the user's API key,
        one without scopes. The user sees the key under *Connected applications* and can end it there.
        """
        body = parse(BrowserKeyBody, request.data)
        who: Principal | Provisioner = request.user  # type: ignore[assignment]
        issued = services.issue_key(
            who.user_pk if isinstance(who, Principal) else find_user(body.user_id).pk,
            label=LABEL,
            expires_at=timezone.now() + timedelta(seconds=body.expires_in),
            granted=body.scopes,
            actor=Actor.key(who) if isinstance(who, Principal) else Actor.provisioning(),
        )
        return Response(new_key(issued))
