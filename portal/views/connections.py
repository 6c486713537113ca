"""The applications that act for a person: API keys, OAuth connections and tokens, with last use and permissions."""

from typing import Final
from uuid import UUID

from django.db.models import QuerySet
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext as _

from accounts import oauth, services, tokens
from accounts.models import RpcToken
from core.errors import NotFound, existing
from portal.access import Visit, actor_of, page, render

ROWS: Final = 100


@page()
def connections(request: Visit) -> HttpResponseBase:
    """List the keys, connections and tokens that work."""
    user_pk = request.link.user.pk
    context = {
        "title": _("Connected applications"),
        "keys": list(services.keys_of(user_pk).filter(services.live_key_condition())[:ROWS]),
        "applications": list(oauth.connections_of(user_pk)[:ROWS]),
        "tokens": list(_tokens(user_pk)[:ROWS]),
        "own_key": request.link.key.pk if request.link.key else None,
        "done": request.GET.get("done", ""),
    }
    return render(request, "connections.html", context)


@page("POST")
def revoke(request: Visit, kind: str, pk: UUID) -> HttpResponseBase:
    """End the access of an application at once.

    The last key of a person can be ended only by a link of the provisioning token, whose application can make another.
    """
    user_pk, actor = request.link.user.pk, actor_of(request)
    if kind == "key":
        services.revoke_key(user_pk, pk, actor=actor, may_be_last=request.link.key is None)
    elif kind == "application":
        oauth.revoke(pk, user_pk=user_pk, actor=actor)
    elif kind == "token":
        existing(_tokens(user_pk).filter(pk=pk), _("There is no such token."))
        tokens.revoke(pk, actor=actor)
    else:
        raise NotFound(_("There is nothing at this address. Check the path."))
    return redirect(reverse("portal:connections", query={"done": "revoked"}))


def _tokens(user_pk: UUID) -> QuerySet[RpcToken]:
    return RpcToken.objects.filter(services.live_key_condition(), user=user_pk).order_by("-created_at")
