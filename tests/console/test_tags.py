"""Tags and metadata in the panel: in the form for a new memory, on a memory's page and as a filter of the list."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from accounts.audit import Actor
from accounts.models import AuditEvent
from memories.services.manual import NewFact, Source, store_fact
from store import browse
from store.browse import Selection
from store.models import Attribute, Memory
from tests.conftest import Person

pytestmark = pytest.mark.django_db

ACTOR = Actor.command("tests")


def keep(person: Person, text: str, **labels: Any) -> int:
    """Store a fact; return its row."""
    return store_fact(person.owner, NewFact(text, **labels), Source("tool", ACTOR)).memory.row


def submit(client: Client, **values: str) -> Any:
    given = {"user": "alice", "category": "user_memory_fact", "text": "Alice drinks tea", **values}
    return client.post(reverse("console:add"), given)


def test_a_new_memory_gets_tags_and_metadata(admin_client: Client, alice: Person) -> None:
    answer = submit(admin_client, tags=" drinks, home，tea ,", metadata='{"cups": 2}')
    memory = Memory.objects.get()
    assert answer.url == reverse("console:memory", args=[memory.pk])
    assert memory.payload["tags"] == ["drinks", "home", "tea"]
    assert memory.payload["metadata"] == {"cups": 2}
    page = admin_client.get(answer.url).content.decode()
    assert "tag=home" in page
    assert "&quot;cups&quot;: 2" in page


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("tags", "a" * 101),
        ("tags", ",".join(map(str, range(33)))),
        ("metadata", "[1]"),
        ("metadata", "no JSON"),
        ("metadata", '{"a": {"b": {"c": {"d": 1}}}}'),
        ("metadata", '{"a": "\\u0000"}'),
    ],
)
def test_invalid_labels_are_named_and_kept_in_the_form(
    admin_client: Client, alice: Person, name: str, value: str
) -> None:
    answer = submit(admin_client, **{name: value})
    assert answer.status_code == 422
    assert list(answer.context["form"].errors) == [name]
    assert answer.context["form"][name].value() == value
    assert not Memory.objects.exists()


def test_the_list_is_filtered_by_a_tag_of_all_users(admin_client: Client, alice: Person, bob: Person) -> None:
    rows = [keep(alice, "Alice drinks tea", tags=["tea"]), keep(bob, "Bob drinks tea", tags=["tea", "Tea"])]
    keep(alice, "Tea is in metadata", metadata={"tags": "tea"})
    keep(alice, "No tag")
    page = admin_client.get(reverse("console:memories"), {"tag": "tea"})
    assert {item.memory.row for item in page.context["rows"]} == set(rows)
    both = admin_client.get(reverse("console:memories"), {"tag": "tea", "user": "alice", "tab": "all"})
    assert [item.memory.row for item in both.context["rows"]] == rows[:1]
    assert AuditEvent.objects.filter(action="memory.list").exists()


def test_a_selection_by_tag_is_counted_described_and_recorded_without_it(alice: Person) -> None:
    keep(alice, "Alice drinks tea", tags=["tea"])
    keep(alice, "Alice drinks water")
    selection = Selection(user_pk=alice.user_pk, tag="tea")
    assert browse.count(selection) == 1
    assert Selection.from_json(selection.as_json()) == selection
    assert selection.as_record()["tag"] == 1


def edit(client: Client, row: int, **values: str) -> Any:
    """Open the form of a memory, change some values, and save it."""
    address = reverse("console:memory-edit", args=[row])
    initial = client.get(address).context["form"].initial
    given = {name: "" if value is None else value for name, value in initial.items()}
    return client.post(address, given | values)


def test_tags_and_metadata_of_a_memory_are_edited(admin_client: Client, alice: Person) -> None:
    row = keep(alice, "Alice drinks tea", tags=["tea", "a, b"], metadata={"cups": 2, "名": "杯"})
    copy = keep(alice, "Alice drinks tea", external_id="copy", tags=["copy"])
    form = admin_client.get(reverse("console:memory-edit", args=[row])).content.decode()
    assert "名" in form
    edit(admin_client, row, metadata='{"cups": 3}')
    memory = Memory.objects.get(pk=row)
    assert (memory.payload["tags"], memory.payload["metadata"]) == (["tea", "a, b"], {"cups": 3})
    answer = edit(admin_client, row, tags="green，tea")
    assert answer.url == reverse("console:memory", args=[row])
    assert Memory.objects.get(pk=row).payload["tags"] == ["green", "tea"]
    assert Memory.objects.get(pk=copy).payload["tags"] == ["copy"]
    edit(admin_client, row, tags="", metadata="", text="Alice drinks coffee")
    memory = Memory.objects.get(pk=row)
    assert memory.text == "Alice drinks coffee"
    assert not {"tags", "metadata"} & memory.payload.keys()
    assert not Attribute.objects.filter(memory=row).exists()
    changed = AuditEvent.objects.filter(action="memory.override", detail__has_key="fields").order_by("pk")
    assert [event.detail["fields"] for event in changed] == [["metadata"], ["tags"], ["metadata", "tags"]]


def test_an_edit_of_tags_by_another_operator_is_not_overwritten(admin_client: Client, alice: Person) -> None:
    row = keep(alice, "Alice drinks tea", tags=["tea"])
    etag = admin_client.get(reverse("console:memory-edit", args=[row])).context["form"].initial["etag"]
    edit(admin_client, row, tags="water")
    answer = edit(admin_client, row, tags="wine", metadata='{"a": 1}', etag=etag)
    assert answer.status_code == 412
    assert Memory.objects.get(pk=row).payload["tags"] == ["water"]
    page = answer.content.decode()
    assert 'name="tags" value="wine"' in page
    assert "{&quot;a&quot;: 1}" in page


def test_invalid_labels_of_an_edit_are_named(admin_client: Client, alice: Person) -> None:
    row = keep(alice, "Alice drinks tea", tags=["tea"])
    answer = edit(admin_client, row, metadata="[1]")
    assert (answer.status_code, list(answer.context["form"].errors)) == (422, ["metadata"])
    assert Memory.objects.get(pk=row).payload["tags"] == ["tea"]
