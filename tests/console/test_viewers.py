"""Operators who may only look change nothing, at any address and with any form."""

from __future__ import annotations

from typing import Any

import pytest
from django.apps import apps
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from django.test import Client

from accounts.audit import Actor
from accounts.models import AuditEvent, AuditSubject
from operations import bulk
from resources.models import Resource
from store.models import Session as MemorySession
from tests.conftest import Person
from tests.console.people import remember
from tests.console.test_access import operator_client
from tests.console.test_operators import member, roles
from tests.memory_gateway.routes import all_routes

ACTOR = Actor.operator("op")
SKIPPED = {"/admin/logout/"}  # the end of the session
__all__ = ["roles"]  # a fixture

pytestmark = pytest.mark.django_db


def snapshot() -> dict[str, list[Any]]:
    """Return the rows of all tables except those that record sign-ins and reads."""
    kept = {Session, AuditEvent, AuditSubject}
    models = [model for model in apps.get_models() if model not in kept and model._meta.managed]
    return {
        model._meta.label: sorted(
            map(
                repr,
                model._base_manager.values_list(
                    *(f.name for f in model._meta.concrete_fields if f.name != "last_login")
                ),
            )
        )
        for model in models
    }


def post_everywhere(client: Client, ids: dict[str, Any]) -> int:
    """Post to every page of operators, with the data that each of them acts on. Return the number of pages."""
    data = {
        "do": "delete", "id": str(ids["row"]), "confirmed": "1", "confirm": "alice", "reason": "x", "text": "Another.",
        "category": "user_memory_decision", "importance": "0.1", "user": "alice", "user_id": "mallory",
        "username": "eve", "is_active": "on", "session": str(ids["session"]), "cause": "all", "post": "yes",
        "scopes": "operator.admin", "grace_hours": "0", "is_superuser": "on", "operator": "1",
        "label": "x", "name": "x", "next": "/admin/memory/",
    }  # fmt: skip
    routes = [route for route in all_routes() if route.pattern.startswith("/admin/") and route.pattern not in SKIPPED]
    for route in routes:
        address = route.pattern
        for part, value in ids["parts"]:
            address = address.replace(part, str(value))
        client.post(address if "<" not in address and "(" not in address else route.address, data)
    return len(routes)


@pytest.mark.parametrize("role", ["Viewer", ""])
def test_a_viewer_changes_nothing_at_any_address(alice: Person, role: str) -> None:
    memory = remember(alice.owner)
    file = Resource.objects.create(user_id=alice.user_pk, session_id="s", filename="f.pdf", status="failed")
    job = bulk.start("categorize", bulk.of_rows([memory.row]), {"category": "user_memory_decision"}, actor=ACTOR)
    User.objects.create_user("ben", is_staff=True)
    ids = {
        "row": memory.row,
        "session": MemorySession.objects.get(session_id="chat:c1").pk,
        "parts": [
            ("<int:row>", memory.row),
            ("<str:resource_id>", file.pk),
            ("<uuid:job>", job.pk),
            ("operators/<int:pk>", f"operators/{User.objects.get(username='ben').pk}"),
            ("<uuid:pk>", alice.user_pk),
            ("<path:object_id>", alice.user_pk),
        ],
    }
    client = member(role) if role else operator_client()
    before = snapshot()
    assert post_everywhere(client, ids) > 150
    assert snapshot() == before
    delete = {"do": "delete", "id": str(memory.row), "next": "/admin/memory/"}
    member("Editor", "zoe").post("/admin/memory/bulk/", delete)  # what the snapshot would show
    assert snapshot() != before
