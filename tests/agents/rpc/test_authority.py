"""An operator's token acts within its scopes and what its operator may do at the time of each call."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.contrib.auth.models import Group, Permission, User
from django.test import Client
from django.utils import timezone

from accounts import operators, tokens
from accounts.models import AuditEvent, MemoryUser, OperatorIdentity, RpcToken
from accounts.tokens import ADMIN, READ, WRITE
from agents.rpc import methods
from agents.rpc.failures import Failure
from agents.rpc.frames import Request
from agents.rpc.handshake import Peer
from core.errors import Unauthenticated
from store.models import Memory
from tests.agents.rpc import test_requests
from tests.agents.rpc.client import Closed, connected
from tests.agents.rpc.direct import ACTOR, add, of_user
from tests.conftest import Person
from tests.roles import create_roles
from tests.server import RunningServer

METHODS = {name: permission for name, permission in test_requests.PERMISSIONS.items() if name != "tools.invoke"}
TOOLS = test_requests.TOOL_PERMISSIONS
CALLS = [*METHODS, *TOOLS]
ROLES = ("", "Viewer", "Editor", "Curator", "Privacy officer", "Administrator")


@pytest.fixture
def roles(db: Any) -> None:
    create_roles()


def operator_with(role: str, name: str = "olga") -> User:
    operator = User.objects.create_user(name, is_staff=True)
    operator.groups.set(Group.objects.filter(name=role))
    return operator


def token_of(operator: User, *scopes: str) -> str:
    return tokens.issue("desk", operator=operator, scopes=scopes or [ADMIN], actor=ACTOR).plaintext


def is_allowed(plaintext: str, name: str) -> bool:
    """Call a method or tool; return False if the token or its operator may not. Other failures are answers."""
    params: dict[str, Any] = {"agentId": "main"}
    if name in TOOLS:
        arguments = {"memory_recall": {"query": "tea"}, "memory_store": {"text": "Coffee"}, "memory_forget": {}}
        name, params = "tools.invoke", {"tool": name, "args": arguments[name]}
    elif name == "memory.admin.add":
        params |= {"text": "Coffee", "category": "user_memory_fact"}
    try:
        principal = tokens.authenticate(plaintext)
        methods.call(Peer(principal, principal.scopes, 4), Request("1", name, params))
    except Unauthenticated:
        return False
    except Failure as failure:
        return failure.error["code"] != "FORBIDDEN"
    return True


def allowed_calls(plaintext: str) -> set[str]:
    return {name for name in CALLS if is_allowed(plaintext, name)}


def calls_with(*permissions: str) -> set[str]:
    return {name for name, permission in {**METHODS, **TOOLS}.items() if permission in permissions}


VIEW, ADD, DELETE = test_requests.VIEW, test_requests.ADD, test_requests.DELETE


@pytest.mark.parametrize("role", ROLES)
def test_a_role_decides_which_methods_a_token_may_call(roles: None, alice: Person, role: str) -> None:
    expected = {"": set(), "Viewer": calls_with(VIEW), "Privacy officer": calls_with(VIEW)}
    assert allowed_calls(token_of(operator_with(role))) == expected.get(role, set(CALLS))


def test_a_superuser_a_user_and_the_token_of_the_setting_may_call_every_method(alice: Person, settings: Any) -> None:
    settings.MEMORY_GATEWAY_RPC_TOKEN = "the-token-of-the-setting"
    of_alice = tokens.issue("phone", user=MemoryUser.objects.get(), actor=ACTOR).plaintext
    for plaintext in (token_of(User.objects.create_superuser("root")), of_alice, "the-token-of-the-setting"):
        assert allowed_calls(plaintext) == set(CALLS)


def test_scopes_limit_a_token_further(roles: None, alice: Person) -> None:
    administrator = operator_with("Administrator")
    assert allowed_calls(token_of(administrator, READ)) == {"health"}
    assert allowed_calls(token_of(administrator, WRITE)) == {"health", *TOOLS}


def test_a_viewers_token_changes_nothing(roles: None, alice: Person) -> None:
    memory_id = add(of_user(alice), "Tea at four")
    principal = tokens.authenticate(token_of(operator_with("Viewer")))
    items = [{"agentId": "main", "id": memory_id}]
    for name, params in (
        ("memory.admin.delete", {"items": items}),
        ("memory.admin.add", {"agentId": "main", "text": "x", "category": "user_memory_fact"}),
        ("tools.invoke", {"tool": "memory_store", "args": {"text": "x"}}),
        ("tools.invoke", {"tool": "memory_forget", "args": {"memoryId": memory_id}}),
    ):
        with pytest.raises(Failure) as refused:
            methods.call(Peer(principal, (ADMIN,), 4), Request("1", name, params))
        assert refused.value.error["code"] == "FORBIDDEN"
        assert refused.value.error["details"]["code"] == "MISSING_PERMISSION"
    assert list(Memory.objects.values_list("memory_id", "state")) == [(memory_id, "live")]


def test_storing_a_known_text_otherwise_needs_the_permission_to_change(roles: None) -> None:
    operator = operator_with("")
    operator.user_permissions.set(Permission.objects.filter(codename__in=["view_memory", "add_memory"]))
    principal = tokens.authenticate(token_of(operator))

    def store(**arguments: Any) -> Any:
        params = {"tool": "memory_store", "args": {"text": "Tea at four", **arguments}}
        return methods.call(Peer(principal, (ADMIN,), 4), Request("1", "tools.invoke", params))

    store()
    with pytest.raises(Failure, match=r"lacks the permission store\.change_memory"):
        store(category="user_memory_decision")
    operator.user_permissions.add(Permission.objects.get(codename="change_memory"))
    assert store(category="user_memory_decision")["result"]["details"]["action"] == "updated"


def test_tools_over_http_need_the_permissions_too(roles: None, alice: Person) -> None:
    def invoke(plaintext: str, tool: str, **arguments: Any) -> int:
        headers = {"Authorization": f"Bearer {plaintext}"}
        body = {"tool": tool, "args": arguments}
        return Client().post("/tools/invoke", body, "application/json", headers=headers).status_code

    nobody, viewer, editor = (
        token_of(operator_with(role, f"op-{number}")) for number, role in enumerate(("", "Viewer", "Editor"))
    )
    assert invoke(nobody, "memory_recall", query="tea") == 403
    assert not MemoryUser.objects.filter(user_id="openclaw").exists()
    assert invoke(viewer, "memory_recall", query="tea") == 200
    assert invoke(viewer, "memory_store", text="Coffee") == 403
    assert invoke(viewer, "memory_forget", query="tea") == 403
    assert invoke(editor, "memory_store", text="Coffee") == 200


# --- roles that shrink -----------------------------------------------------------------------------------------------


def demote_in_panel(admin: Client, operator: User) -> None:
    admin.post(f"/admin/memory/operators/{operator.pk}/", {"role": "", "is_active": "on"})


def deactivate_in_panel(admin: Client, operator: User) -> None:
    admin.post(f"/admin/memory/operators/{operator.pk}/", {"role": operator.groups.get().pk})


def change_in_admin(admin: Client, operator: User, **fields: Any) -> None:
    form = {
        "username": operator.username, "is_active": "on", "is_staff": "on", "groups": [operator.groups.get().pk],
        "date_joined_0": "2026-01-01", "date_joined_1": "00:00:00", "last_login_0": "", "last_login_1": "", **fields,
    }  # fmt: skip
    form = {name: value for name, value in form.items() if value is not None}
    assert admin.post(f"/admin/auth/user/{operator.pk}/change/", form).status_code == 302


def shrink_group(admin: Client, operator: User) -> None:
    group = operator.groups.get()
    assert admin.post(f"/admin/auth/group/{group.pk}/change/", {"name": group.name}).status_code == 302


def delete_groups(admin: Client, operator: User) -> None:
    form = {"action": "delete_selected", "_selected_action": [operator.groups.get().pk], "post": "yes"}
    assert admin.post("/admin/auth/group/", form).status_code == 302


def lose_group_at_provider(admin: Client, operator: User) -> None:
    operators.follow_provider(operator, None, actor=ACTOR)


SHRINKS = {
    "no role in the panel": demote_in_panel,
    "deactivated in the panel": deactivate_in_panel,
    "no group in the admin": lambda admin, it: change_in_admin(admin, it, groups=None),
    "inactive in the admin": lambda admin, it: change_in_admin(admin, it, is_active=None),
    "not staff in the admin": lambda admin, it: change_in_admin(admin, it, is_staff=None),
    "the group loses permissions": shrink_group,
    "the group is deleted": lambda admin, it: admin.post(
        f"/admin/auth/group/{it.groups.get().pk}/delete/", {"post": "yes"}
    ),
    "groups are deleted": delete_groups,
    "deleted in the admin": lambda admin, it: admin.post(f"/admin/auth/user/{it.pk}/delete/", {"post": "yes"}),
    "no group at the provider": lose_group_at_provider,
}


@pytest.mark.parametrize("shrink", SHRINKS.values(), ids=SHRINKS.keys())
def test_what_exceeds_a_role_ends_with_it(roles: None, admin_client: Client, alice: Person, shrink: Any) -> None:
    operator = operator_with("Editor")
    plaintext, browser = token_of(operator), Client()
    browser.force_login(operator)
    assert browser.get("/admin/memory/list/").status_code == 200
    shrink(admin_client, operator)
    assert allowed_calls(plaintext) == set()
    assert browser.get("/admin/memory/list/").headers["Location"].startswith("/admin/login/")
    # It does not come back with the role.
    User.objects.filter(pk=operator.pk).update(is_active=True, is_staff=True)
    if User.objects.filter(pk=operator.pk).exists():
        operator.groups.add(Group.objects.get(name="Administrator"))
    assert allowed_calls(plaintext) == set()
    assert browser.get("/admin/memory/list/").status_code == 302
    assert admin_client.get("/admin/").status_code == 200


def test_only_what_exceeds_the_role_ends(roles: None, alice: Person) -> None:
    operator, other = operator_with("Administrator"), operator_with("Viewer", "otto")
    wide, narrow, of_other = token_of(operator), token_of(operator, READ), token_of(other)
    browser = Client()
    browser.force_login(other)
    operators.change(operator, Group.objects.get(name="Editor"), is_active=True, actor=ACTOR)
    assert allowed_calls(wide) == set(CALLS)  # it could do no more before
    operators.change(operator, Group.objects.get(name="Viewer"), is_active=True, actor=ACTOR)
    assert (allowed_calls(wide), allowed_calls(narrow)) == (set(), {"health"})
    assert allowed_calls(of_other) == calls_with(VIEW)
    assert browser.get("/admin/memory/list/").status_code == 200
    revoked = AuditEvent.objects.get(action="token.revoke")
    assert revoked.subject_id == str(RpcToken.objects.get(revoked_at__isnull=False).pk)


def test_a_role_that_grows_ends_nothing(roles: None, alice: Person) -> None:
    operator = operator_with("Viewer")
    plaintext, browser = token_of(operator), Client()
    browser.force_login(operator)
    operators.change(operator, Group.objects.get(name="Curator"), is_active=True, actor=ACTOR)
    assert browser.get("/admin/memory/list/").status_code == 200
    assert allowed_calls(plaintext) == set(CALLS)


def test_an_operator_who_gives_up_the_own_permissions_is_signed_out(roles: None, admin_client: Client) -> None:
    root = User.objects.get(is_superuser=True)
    root.groups.add(Group.objects.get(name="Viewer"))
    change_in_admin(admin_client, root, is_superuser=None)
    assert admin_client.get("/admin/").status_code == 302


def test_permissions_that_change_beside_the_panel_count_at_once(roles: None, alice: Person) -> None:
    operator = operator_with("Editor")
    plaintext = token_of(operator)
    operator.groups.clear()
    assert allowed_calls(plaintext) == set()


def test_a_token_rests_while_the_provider_does_not_confirm_its_operator(roles: None, alice: Person) -> None:
    operator = operator_with("Editor")
    OperatorIdentity.objects.create(operator=operator, issuer="https://id.example.org", subject="s")
    plaintext = token_of(operator)
    assert allowed_calls(plaintext) == set(CALLS)
    OperatorIdentity.objects.update(ended_at=timezone.now())
    assert allowed_calls(plaintext) == set()


def test_an_operator_issues_no_token_for_one_who_may_do_more(roles: None, admin_client: Client) -> None:
    issuer, root = operator_with("Administrator"), User.objects.get(is_superuser=True)
    viewer = operator_with("Viewer", "otto")
    browser = Client()
    browser.force_login(issuer)
    for operator, status in ((root, 422), (viewer, 200), (issuer, 200)):
        form = {"label": "laptop", "scopes": [ADMIN], "operator": operator.pk}
        assert browser.post("/admin/accounts/rpctoken/add/", form).status_code == status
    assert set(RpcToken.objects.values_list("operator", flat=True)) == {viewer.pk, issuer.pk}


# --- open connections ------------------------------------------------------------------------------------------------

_CREATE = """
import json
from django.contrib.auth.models import Group, User
from accounts import tokens
from accounts.audit import Actor

made = {}
for role in ("Viewer", "Editor"):
    operator = User.objects.create_user("of-" + role, is_staff=True)
    operator.groups.add(Group.objects.get(name=role))
    made[role] = tokens.issue(role, operator=operator, actor=Actor.command("tests")).plaintext
print(json.dumps(made))
"""
_CLEAR = "from django.contrib.auth.models import User; User.objects.get(username='of-Editor').groups.clear()"
_DEMOTE = """
from django.contrib.auth.models import User
from accounts import operators
from accounts.audit import Actor

operators.change(User.objects.get(username="of-Viewer"), None, is_active=True, actor=Actor.command("tests"))
"""


def test_an_open_connection_loses_its_permissions_at_once(server: RunningServer) -> None:
    created = server.manage("shell", "--no-imports", "--command", _CREATE)
    assert created.returncode == 0, created.stderr
    made = json.loads(created.stdout)
    with connected(server, made["Viewer"]) as viewer, connected(server, made["Editor"]) as editor:
        refused = viewer.request("memory.admin.add", {"agentId": "main", "text": "x", "category": "user_memory_fact"})
        assert refused["error"]["details"] == {"code": "MISSING_PERMISSION", "missingPermission": ADD}
        assert viewer.call("memory.admin.facets")
        assert editor.call("memory.admin.add", agentId="main", text="x", category="user_memory_fact")
        assert server.manage("shell", "--no-imports", "--command", _CLEAR).returncode == 0
        for name in METHODS:
            assert editor.request(name, {"agentId": "main"})["error"]["code"] == "FORBIDDEN"
        assert server.manage("shell", "--no-imports", "--command", _DEMOTE).returncode == 0
        answer = viewer.request("memory.admin.facets")
        while not isinstance(answer, Closed):
            answer = viewer.receive()
        assert answer.code == 4001
