"""Statements of a user's calls name the user, or single rows by their keys, so that no call scans rows of others.

A database that is divided by user sends a statement that names the user to one part.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from memories.models import Override, OverrideRevision, Tombstone
from resources.models import Attachment, Resource
from store.models import Attribute, Memory, Session
from tests.conftest import Person
from tests.memories.calls import NOON_MS, call, search, upload

pytestmark = pytest.mark.django_db(transaction=True)
MODELS = (Memory, Session, Attribute, Tombstone, Override, OverrideRevision, Resource, Attachment)
TABLES = re.compile("|".join(f'"{model._meta.db_table}"' for model in MODELS))
KEYS = ("id", "tombstone_id", "resource_id", "override_id", "cause", 'store_memory"."session_id')
BY_KEY = re.compile(rf'WHERE .*"(?:{"|".join(KEYS)})" (?:= |IN \()(?!SELECT)')


def use(person: Person) -> None:
    """Make each common call once."""
    said = {"sender_id": person.user_id, "role": "user", "timestamp": NOON_MS, "content": "I live in Oslo."}
    call(person, "post", "/memories/add", session_id="chat:c1", messages=[said])
    call(person, "post", "/memories/flush", session_id="chat:c1")
    call(person, "post", "/memories", status=201, text="I take tea without sugar.")
    [memory] = [one["id"] for one in call(person, "get", "/memories", session_id="chat:c1")["memories"]]
    search(person, "Oslo", scope=["all_user_memory", "resources"])
    search(person, "Oslo", scope=["current_chat"], conversation_id="c1")
    call(person, "post", "/memories/context", query="Oslo")
    call(person, "get", "/memories")
    call(person, "get", f"/memories/{memory}")
    call(person, "patch", f"/memories/{memory}", override_text="I live in Bergen.")
    call(person, "delete", f"/memories/{memory}/override")
    call(person, "delete", f"/memories/{memory}")
    call(person, "get", "/memories/trash")
    call(person, "post", f"/memories/{memory}/restore")
    file = upload(person)
    call(person, "get", f"/resources/{file['resource_id']}")
    call(person, "get", "/resources")
    call(person, "delete", f"/resources/{file['resource_id']}")
    call(person, "post", f"/resources/{file['resource_id']}/restore")
    call(person, "delete", "/sessions/chat%3Ac1")
    call(person, "post", "/sessions/chat%3Ac1/restore")


def test_every_statement_names_the_user_or_rows_by_their_keys(alice: Person, storage: Path) -> None:
    with CaptureQueriesContext(connection) as captured:
        use(alice)
    of_users = [query["sql"] for query in captured if " WHERE " in query["sql"] and TABLES.search(query["sql"])]
    without = [sql for sql in of_users if alice.user_pk.hex not in sql.replace("-", "")]
    assert len(of_users) > 2 * len(without) > 0
    assert [sql for sql in without if not BY_KEY.search(sql)] == []
