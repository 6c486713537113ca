"""Write `export-c6813ca.tar` and its JSON file: run by pytest in a checkout of that commit, then compress the archive.

Dora's rows came through the import of mem0 files, which did not check them.
"""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import call_command

from tests.conftest import Person, make_person
from tests.memories.calls import NOON_MS, call, id_of
from tests.operations.sample_data import create_sample_data, search_texts

pytestmark = pytest.mark.django_db(transaction=True)
DIGITS = "1" * 4000
MEM0 = f"""[
    {{"memory": "Dora has a cat", "id": "1b", "metadata": {{"n": {DIGITS}, "m": -9223372036854775809}}}},
    {{"memory": "Dora has a dog", "id": "2b",
      "metadata": {{"large": 1e300, "whole": 1e16, "wide": 18446744073709551615, "beyond": 1e20}}}},
    {{"memory": "Dora has an owl", "id": "3b", "metadata": {{"a": "x\\u0000y"}}}},
    {{"memory": "Dora has an elk", "id": "4\\u0000b"}},
    {{"memory": "Dora has a bat", "id": "5b", "created_at": "0001-01-01T00:00:00+00:00"}},
    {{"memory": "Dora has a fox", "id": "6b", "created_at": "9999-12-31T23:59:59+00:00",
      "metadata": {{"deep": {"[" * 200}{"]" * 200}}}}},
    {{"memory": "Dora hid a rat", "id": "7b", "metadata": {{"n": {DIGITS}}}}}
]"""
QUERIES = ("walnut", "Hamburg", "Kiel", "rumour", "cake", "Friday", "contract", "notes")


def test_write(alice: Person, bob: Person, charlie: Person, storage: Path, tmp_path: Path) -> None:
    create_sample_data(alice)
    calls = [{"id": "t1", "type": "function", "function": {"name": "find", "arguments": "{}"}}]
    message = {"sender_id": "helper", "role": "assistant", "timestamp": NOON_MS, "content": "Looking it up."}
    call(alice, "post", "/memories/add", session_id="chat:tools", messages=[{**message, "tool_calls": calls}])
    call(alice, "post", "/memories/flush", session_id="chat:tools")
    create_sample_data(bob, "chestnut")
    text = "pangolin " + " ".join(f"gripper{number % 1000}" for number in range(100_000))
    message = {"sender_id": "charlie", "role": "user", "timestamp": NOON_MS, "content": text[:900_000]}
    call(charlie, "post", "/memories/add", session_id="chat:long", messages=[message])
    call(charlie, "post", "/memories/flush", session_id="chat:long")
    dora, file = make_person("dora"), tmp_path / "mem0.json"
    file.write_text(MEM0)
    call_command("import_from", "mem0", str(file), "--user", "dora", "--apply", stdout=StringIO(), stderr=StringIO())
    call(dora, "delete", f"/memories/{id_of('Dora hid a rat')}")
    call_command("export_memory", "export-c6813ca.tar", "--all", "--with-keys", stdout=StringIO(), stderr=StringIO())
    keys = {person.user_id: person.user_key for person in (alice, bob, charlie, dora)}
    found = {query: search_texts(alice, query) for query in QUERIES}
    Path("export-c6813ca.json").write_text(json.dumps({"keys": keys, "found": found}, indent=1, ensure_ascii=False))
