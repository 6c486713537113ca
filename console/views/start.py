"""The first steps with an empty database: addresses and commands for the dashboard, and demo data."""

from typing import Any, Final

from django.contrib import messages
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.utils.translation import gettext as _

from accounts.admin_base import actor_of
from accounts.models import MemoryUser
from console import queries
from console.access import page
from console.views.users import ADD_USERS
from core.errors import Conflict
from operations import demo

DEMO_USER: Final = "demo"
DEMO_WAIT_SECONDS: Final = 5.0


def first_steps(request: HttpRequest) -> dict[str, Any]:
    """Return the context of the checklist. One statement."""
    base = f"{request.scheme}://{request.get_host()}"
    key = '-H "Authorization: Bearer $KEY"'
    body = '{"query": "What do I prefer?"}'
    return {
        "has_users": MemoryUser.objects.exists(),
        "demo_user": DEMO_USER,
        "commands": {
            "curl": f"curl -sS {base}/memories/search {key} -H 'Content-Type: application/json' -d '{body}'",
            "claude": f'claude mcp add --transport http memory {base}/mcp --header "Authorization: Bearer $KEY"',
            "openclaw": "openclaw plugins install npm-pack:./memory-gateway-openclaw-0.1.0.tgz --force",
        },
        "mcp": f"{base}/mcp",
    }


@page(ADD_USERS, "POST")
def demo_data(request: HttpRequest) -> HttpResponseBase:
    """Create a user with demo data."""
    if queries.user_pk(DEMO_USER) is not None:
        raise Conflict(_("The user %(user)s exists already.") % {"user": DEMO_USER})
    demo.make(DEMO_USER, actor=actor_of(request), wait_seconds=DEMO_WAIT_SECONDS)
    text = _("The user %(user)s has demo data. Its files are searchable in a moment.")
    messages.success(request, text % {"user": DEMO_USER})
    return redirect("console:dashboard")
