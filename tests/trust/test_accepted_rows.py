"""Whatever is accepted as a memory, resource or profile, by any entrance, can be found, moved and erased."""

from __future__ import annotations

import json
import logging
import zipfile
from collections.abc import Callable
from io import BytesIO, StringIO
from itertools import count
from pathlib import Path
from typing import Any, Final

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import call_command
from django.test import Client
from django.urls import reverse
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from accounts.audit import Actor
from agents import tools
from agents.mcp import catalog
from agents.rpc import frames
from agents.rpc.failures import Failure
from agents.rpc.frames import BadFrame, NotJson
from agents.tools.caller import caller_for
from core.errors import InvalidInput
from operations import erase, jobs, tables
from store.models import Memory
from tests.agents.rpc import direct
from tests.conftest import Person, make_person
from tests.core.test_storable import TEXTS, VALUES
from tests.memories.calls import NOON_MS, say

pytestmark = pytest.mark.django_db(transaction=True)
ACTOR: Final = Actor.command("tests")
WORD: Final = "walnut"
"""A word of every text, which searches find."""
NUMBERS: Final = count(1)
TIMES: Final = st.sampled_from(
    [
        "2026-01-02T03:04:05Z",
        "0001-01-01T00:00:00+14:00",
        "9999-12-31T23:59:59-14:00",
        "0000-00-00",
        1_781_172_177,
        NOON_MS,
        0,
        -1,
        10**16,
        10**30,
        1e308,
        float("nan"),
    ]
)
RECORDS: Final = st.fixed_dictionaries(
    {
        "text": TEXTS.map(lambda text: f"{WORD} {text}"),
        "name": TEXTS,
        "value": VALUES,
        "metadata": st.dictionaries(TEXTS, VALUES, max_size=3),
        "at": st.just(NOON_MS) | TIMES,
        "importance": st.floats() | st.just(0.5),
    }
)
Record = dict[str, Any]
Accept = Callable[[Person, Client, Record], bool]
ENTRANCES: Final[dict[str, Accept]] = {}
"""The entrances by name. Each returns whether it accepted a record, and fails for a defect."""


def entrance(accept: Accept) -> Accept:
    ENTRANCES[accept.__name__] = accept
    return accept


def as_json(value: Any) -> bytes:
    """Return JSON as Python writes it: with lone surrogates, NaN and integers of any length."""
    return json.dumps(value).encode()


def sent(client: Client, method: str, path: str, body: Any) -> bool:
    """Send JSON; return whether it was accepted."""
    answer = client.generic(method, path, as_json(body), "application/json")
    assert answer.status_code < 500, answer.content
    if answer.status_code >= 400:
        problem = answer.json()
        assert problem.get("detail") or problem.get("error"), problem
    return answer.status_code < 400


@entrance
def rest_add(person: Person, _operator: Client, record: Record) -> bool:
    item = {"type": "text", "text": record["text"], "extras": record["metadata"]}
    message = {"sender_id": person.user_id, "role": "user", "timestamp": record["at"], "content": [item]}
    names = {"sender_name": record["name"]} if record["name"] else {}
    body = {"session_id": "chat:rest", "messages": [{**message, **names}]}
    return sent(person.client, "POST", "/memories/add", body)


@entrance
def rest_session(person: Person, _operator: Client, record: Record) -> bool:
    message = {"sender_id": person.user_id, "role": "user", "timestamp": NOON_MS, "content": record["text"]}
    return sent(person.client, "POST", "/memories/add", {"session_id": record["name"], "messages": [message]})


@entrance
def rest_tool_calls(person: Person, _operator: Client, record: Record) -> bool:
    function = {"name": f"{WORD}{record['name']}", "arguments": record["text"]}
    message = {
        "sender_id": "agent",
        "role": "assistant",
        "timestamp": NOON_MS,
        "tool_calls": [{"id": record["name"] or "1", "type": "function", "function": function}],
    }
    return sent(person.client, "POST", "/memories/add", {"session_id": "chat:calls", "messages": [message]})


@entrance
def rest_patch(person: Person, _operator: Client, record: Record) -> bool:
    memory = Memory.objects.filter(user_id=person.user_pk, text__contains=WORD, state="live").first()
    assert memory is not None
    body = {"override_text": record["text"], "importance": record["importance"]}
    return sent(person.client, "PATCH", f"/memories/{memory.memory_id}", body)


@entrance
def rest_delete(person: Person, _operator: Client, record: Record) -> bool:
    say(person, "chat:deleted", f"{WORD} {next(NUMBERS)}")
    memory = Memory.objects.filter(user_id=person.user_pk, session__session_id="chat:deleted", state="live").first()
    assert memory is not None
    return sent(person.client, "DELETE", f"/memories/{memory.memory_id}", {"reason": record["text"]})


@entrance
def tool_over_http(person: Person, _operator: Client, record: Record) -> bool:
    arguments = {"text": record["text"], "importance": record["importance"], "category": "user_memory_fact"}
    return sent(person.client, "POST", "/tools/invoke", {"tool": "memory_store", "args": arguments})


@entrance
def tool_over_mcp(person: Person, _operator: Client, record: Record) -> bool:
    caller = caller_for(person.owner, ACTOR, interface="mcp")
    try:
        tools.invoke(caller, "memory_store", {"text": record["text"]}, catalog.TOOLS)
    except InvalidInput:
        return False
    return True


@entrance
def rpc(person: Person, _operator: Client, record: Record) -> bool:
    params = {"agentId": record["name"] or "main", "text": record["text"], "category": "user_memory_fact"}
    frame = {"type": "req", "id": "1", "method": "memory.admin.add", "params": {**params, "more": record["value"]}}
    try:
        request = frames.read(as_json(frame))
        direct.call(direct.of_user(person), request.method, **request.params)
    except (BadFrame, NotJson, Failure):
        return False
    return True


@entrance
def panel_form(person: Person, operator: Client, record: Record) -> bool:
    text = record["text"].encode(errors="surrogatepass").decode(errors="replace")
    form = {"user": person.user_id, "app": "default", "project": "default", "text": text, "again": "on"}
    answer = operator.post(reverse("console:add"), {**form, "category": "user_memory_fact"})
    assert answer.status_code in {200, 302, 422}, answer.content
    return bool(answer.status_code == 302)


def panel_upload(person: Person, operator: Client, source: str, content: bytes) -> bool:
    form = {"user": person.user_id, "source": source, "category": "user_memory_fact"}
    file = SimpleUploadedFile(f"{WORD}.json", content)
    planned = operator.post(reverse("console:import"), {**form, "file": file})
    assert planned.status_code == 200, planned.content
    operator.post(reverse("console:import-run"), {"plan": planned.context["sealed"]})
    job = jobs.run_next()
    assert job is not None
    assert job.status == "done", job.error
    return bool(job.result["made"])


@entrance
def panel_import(person: Person, operator: Client, record: Record) -> bool:
    item = {"memory": record["text"], "metadata": record["metadata"], "categories": [record["value"]]}
    named = {"id": record["name"], "created_at": record["at"], "run_id": record["value"]}
    return panel_upload(person, operator, "mem0", as_json([{**item, **named}, "not a memory"]))


@entrance
def panel_import_of_markdown(person: Person, operator: Client, record: Record) -> bool:
    made = BytesIO()
    text = f"---\ndate: {record['at']}\n---\n# {record['name']}\n\n{record['text']}\n"
    with zipfile.ZipFile(made, "w") as archive:
        archive.writestr(f"{next(NUMBERS)}.md", text.encode(errors="surrogatepass"))
    return panel_upload(person, operator, "markdown", made.getvalue())


@entrance
def panel_import_of_an_export(person: Person, operator: Client, record: Record) -> bool:
    head = {"id": record["name"], "created_at": record["at"], "category": "", "session_id": record["value"]}
    marked = f"<!-- memory {json.dumps({**head, 'importance': record['importance']})} -->\n{record['text']}\n"
    made = BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        archive.writestr("a.md", f"{marked}<!-- /memory -->\n".encode(errors="surrogatepass"))
    return panel_upload(person, operator, "markdown", made.getvalue())


@entrance
def panel_import_of_episodes(person: Person, operator: Client, record: Record) -> bool:
    made = BytesIO()
    fields = f"**timestamp**: {record['at']}\n**session_id**: {record['name']}\n"
    entry = f"entry:e{next(NUMBERS)} -->\n"
    text = f"<!-- {entry}{fields}\n### Content\n{record['text']}\n<!-- /{entry}"
    with zipfile.ZipFile(made, "w") as archive:
        name = "users/ann/episodes/episode-2026-05-28.md"
        archive.writestr(name, text.encode(errors="surrogatepass"))
    return panel_upload(person, operator, "everos-markdown", made.getvalue())


@entrance
def profile(person: Person, _operator: Client, record: Record) -> bool:
    entry = {"name": record["name"], "notes": record["text"], "meta": {"confidence": record["importance"]}}
    content = {"people": [entry], "interests": [record["text"]], **record["metadata"]}
    return sent(person.client, "PATCH", "/api/v1/memories/user", {"content": content})


@entrance
def upload(person: Person, _operator: Client, record: Record) -> bool:
    parts = {
        "title": record["name"],
        "description": record["text"],
        'file"; filename="a.txt': f"{WORD} {next(NUMBERS)}",
    }
    body = "".join(
        f'--b\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{text}\r\n' for name, text in parts.items()
    )
    data = f"{body}--b--\r\n".encode(errors="surrogatepass")
    answer = person.client.generic("POST", "/resources", data, "multipart/form-data; boundary=b")
    assert answer.status_code < 500, answer.content
    return bool(answer.status_code < 400)


@entrance
def external_resource(person: Person, _operator: Client, record: Record) -> bool:
    named = {"filename": f"{WORD}{record['name']}.txt", "title": record["text"], "description": record["name"]}
    body = {"source_uri": f"https://example.org/{next(NUMBERS)}.txt", **named}
    return sent(person.client, "POST", "/resources/external", body)


def require_whole(person: Person, folder: Path) -> None:
    """Check that all of a user's rows can be searched, listed, exported, imported after an erasure, and erased."""
    rows = table_counts(person)
    for with_raw in (True, False):
        body = {"query": WORD, "scope": ["all_user_memory", "resources"], "top_k": 100, "raw": with_raw}
        found = person.client.post("/memories/search", json.dumps(body), "application/json")
        assert found.status_code == 200, found.content
        assert found.json()["results"]
    for path in ("/memories", "/memories?deleted=true", "/resources", "/sessions", "/trash", "/api/v1/memories/"):
        listed = person.client.get(path)
        assert listed.status_code in {200, 404, 422}, listed.content
    for is_again in (False, True):
        archive = folder / f"{person.user_id}-{is_again}.tar"
        run("export_memory", str(archive), "--user", person.user_id)
        erase.erase(person.user_pk, actor=ACTOR)
        assert set(table_counts(person).values()) == {0}
        if not is_again:
            run("import_memory", str(archive), "--even-erased")
            assert {name: rows[name] for name in IMPORTED} == {name: table_counts(person)[name] for name in IMPORTED}


IMPORTED: Final = ("memories", "sessions", "resources", "tombstones", "overrides", "profiles")


def table_counts(person: Person) -> dict[str, int]:
    return {
        table.name: tables.QuerySet(table.model).filter(**{table.user: person.user_pk}).count()
        for table in tables.PORTABLE
        if not table.is_by_name
    }


def run(command: str, *arguments: str) -> None:
    call_command(command, *arguments, "--json", stdout=StringIO(), stderr=StringIO())


@pytest.mark.parametrize("examples", [3, pytest.param(300, marks=pytest.mark.torture)])
def test_what_is_accepted_can_be_found_moved_and_erased(examples: int, admin_client: Client, tmp_path: Path) -> None:
    # Without shrinking, which would take minutes: a failure shows its record.
    @settings(
        max_examples=examples,
        phases=[Phase.explicit, Phase.reuse, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(st.lists(RECORDS, min_size=1, max_size=3))
    def try_all(records: list[Record]) -> None:
        person = make_person(f"u{next(NUMBERS)}")
        say(person, "chat:first", f"A {WORD} tree.")
        for record in records:
            for accept in ENTRANCES.values():
                accept(person, admin_client, record)
        require_whole(person, tmp_path)

    try_all()
    plain: Record = {
        "text": WORD, "name": "n", "value": 1, "metadata": {}, "at": NOON_MS, "importance": 0.5
    }  # fmt: skip
    person = make_person("plain")
    say(person, "chat:first", f"A {WORD} tree.")
    refused = [name for name, accept in ENTRANCES.items() if not accept(person, admin_client, plain)]
    assert refused == [], "every entrance accepts a plain record"


@pytest.mark.parametrize("examples", [5, pytest.param(300, marks=pytest.mark.torture)])
@pytest.mark.parametrize("name", ENTRANCES)
def test_no_record_fails_an_entrance(
    name: str, examples: int, alice: Person, admin_client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    say(alice, "chat:first", f"A {WORD} tree.")

    @settings(max_examples=examples, phases=[Phase.reuse, Phase.generate], suppress_health_check=list(HealthCheck))
    @given(RECORDS)
    def try_one(record: Record) -> None:
        ENTRANCES[name](alice, admin_client, record)

    try_one()
    assert not [entry for entry in caplog.records if entry.levelno >= logging.ERROR]
