"""Settings for agents and applications that connect to this gateway, and the first call of a user as it arrives."""

import json
from typing import Any, Final

from django.conf import settings
from django.db.models import Max
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.urls import reverse
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts.admin_base import actor_of
from accounts.audit import record
from accounts.models import UserKey
from console import queries
from console.access import address_of_gateway, page, render
from console.filters import ConnectFilters
from console.forms import unknown_user
from console.views.people import VIEW_USERS

_KEY: Final = "${MEMORY_GATEWAY_USER_KEY}"
_LABELS: Final[tuple[tuple[str, str | Promise, Promise], ...]] = (
    ("claude", "Claude Code", gettext_lazy("Run this once; the key is in the variable MEMORY_GATEWAY_USER_KEY.")),
    ("mcp", gettext_lazy("Other MCP clients"), gettext_lazy("Add this to the settings of the client.")),
    ("openclaw_install", "OpenClaw", gettext_lazy("Install the plugin from a checkout of Memory Gateway,")),
    ("openclaw", "openclaw.json", gettext_lazy("then name the user and the key of all senders.")),
    ("curl", "REST", gettext_lazy("Store a fact, and search.")),
    ("python", "Python", gettext_lazy("With the package memory-gateway-client.")),
)


def commands_of(base: str, user_id: str) -> dict[str, str]:
    """Return the command or settings of each client for a gateway's address. The key is a variable."""
    header = '-H "Authorization: Bearer $MEMORY_GATEWAY_USER_KEY"'
    body = "-H 'Content-Type: application/json' -d"
    server = {"type": "http", "url": f"{base}/mcp", "headers": {"Authorization": f"Bearer {_KEY}"}}
    plugin = {"url": base, "users": {"*": {"userId": user_id, "apiKey": _KEY}}}
    openclaw = {
        "plugins": {
            "slots": {"memory": "memory-gateway"},
            "entries": {"memory-gateway": {"hooks": {"allowConversationAccess": True}, "config": plugin}},
        }
    }
    version = settings.SPECTACULAR_SETTINGS["VERSION"]
    claude_header = '--header "Authorization: Bearer $MEMORY_GATEWAY_USER_KEY"'
    return {
        "claude": f"claude mcp add --transport http memory {base}/mcp {claude_header}",
        "mcp": _written({"mcpServers": {"memory": server}}),
        "openclaw_install": "npm pack ./clients/openclaw\n"
        f"openclaw plugins install npm-pack:./memory-gateway-openclaw-{version}.tgz --force --accept-capabilities",
        "openclaw": _written(openclaw),
        "curl": f'curl -sS {base}/memories {header} {body} \'{{"text": "I prefer tea."}}\'\n'
        f'curl -sS {base}/memories/search {header} {body} \'{{"query": "What do I prefer?"}}\'',
        "python": "import os\nfrom memory_gateway_client import Client\n\n"
        f'client = Client("{base}", os.environ["MEMORY_GATEWAY_USER_KEY"])\n'
        'print(client.memories.search("What do I prefer?"))',
    }


@page(VIEW_USERS, reach="lists")
def connect(request: HttpRequest) -> HttpResponseBase:
    """Show the settings of clients. With `part=1`, return only whether a call of the user arrived."""
    filters = ConnectFilters(reverse("console:connect"), request.GET)
    user_id = filters.data["user"]
    user_pk = queries.user_pk(user_id)
    context: dict[str, Any] = {"title": _("Connect"), "filters": filters}
    if user_pk is not None:
        context |= {"user_pk": user_pk, "user_id": user_id, "used": _last_call(user_pk)}
        if request.GET.get("part") == "1":
            return render(request, "console/parts/first_call.html", context)
        record(actor_of(request), "user.view", str(user_pk), user_id=user_id, detail={"view": "connect"})
    elif user_id:
        filters.problems.append(unknown_user(user_id))
    commands = commands_of(address_of_gateway(request), user_id or "ann")
    context["clients"] = [(name, label, hint, commands[name]) for name, label, hint in _LABELS]
    return render(request, "console/connect.html", context)


def _last_call(user_pk: Any) -> Any:
    return UserKey.objects.filter(user=user_pk).aggregate(last=Max("last_used_at"))["last"]


def _written(document: dict[str, Any]) -> str:
    return json.dumps(document, indent=2, ensure_ascii=False)
