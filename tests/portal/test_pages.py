"""The pages: what a person sees and does there, and that nothing of another user is in any of them."""

from __future__ import annotations

import io
import json
import re
import zipfile
from typing import Any
from uuid import uuid4

import pytest

from accounts import services
from accounts.audit import Actor, record
from accounts.models import MemoryUser
from core.events import changed
from memories.models import Tombstone
from store.models import Memory, Session
from tests.conftest import Person
from tests.memories.calls import call
from tests.portal.visits import Visit, visit

pytestmark = pytest.mark.django_db(transaction=True)

OF_BOB = "Bob hides his diary under the stairs"
PAGES = (
    "/portal/", "/portal/?kind=user", "/portal/?q=tea", "/portal/memories/forget?q=tea", "/portal/profile",
    "/portal/profile/user", "/portal/profile/work", "/portal/files", "/portal/conversations", "/portal/connections",
    "/portal/looks", "/portal/looks?all=1", "/portal/trash", "/portal/everything", "/portal/everything/erase",
)  # fmt: skip


def say(person: Person, text: str, session: str = "c1") -> None:
    body = {
        "session_id": f"chat:{session}",
        "messages": [
            {"sender_id": person.user_id, "role": "user", "timestamp": 1_780_000_000_000, "content": text},
            {"sender_id": "a", "role": "assistant", "timestamp": 1_780_000_001_000, "content": f"I see: {text}"},
        ],
    }
    for path, sent in (("/memories/add", body), ("/memories/flush", {"session_id": body["session_id"]})):
        answer = person.client.post(path, sent, "application/json")
        assert answer.status_code == 200, answer.content


def note(person: Person, text: str) -> Memory:
    answer = person.client.post("/memories", {"text": text, "category": "user_memory_fact"}, "application/json")
    assert answer.status_code == 201, answer.content
    return Memory.objects.get(user=person.user_pk, text=text)


@pytest.fixture
def here(alice: Person, bob: Person) -> Visit:
    say(alice, "I drink green tea every morning.")
    note(alice, "Alice lives in Lyon.")
    say(bob, OF_BOB)
    note(bob, f"{OF_BOB}.")
    return visit(alice)


def test_every_page_shows_the_person_alone(here: Visit, bob: Person) -> None:
    for path in PAGES:
        page = here.get(path)
        assert OF_BOB not in page
        assert bob.user_id not in page


def test_the_list_is_newest_first_and_found_by_words(here: Visit) -> None:
    page = here.get("/portal/")
    assert page.index("Alice lives in Lyon.") < page.index("I drink green tea")
    found = here.get("/portal/?q=green+tea")
    assert "Lyon" not in found
    assert "<mark>tea</mark>" in found
    assert "Nothing has these words" in here.get("/portal/?q=giraffe")


def test_a_memory_says_why_it_is_known(here: Visit, alice: Person) -> None:
    row = Memory.objects.get(user=alice.user_pk, text__startswith="I drink green").pk
    page = here.get(f"/portal/memories/{row}")
    assert "said it in a conversation" in page
    assert "Read the conversation" in page


def test_another_users_rows_do_not_exist(here: Visit, bob: Person) -> None:
    row = Memory.objects.filter(user=bob.user_pk)[0].pk
    session = Session.objects.get(user=bob.user_pk, kind="chat").pk
    key = services.keys_of(bob.user_pk)[0].pk
    here.get(f"/portal/memories/{row}", 404)
    here.get(f"/portal/conversations/{session}", 404)
    here.get("/portal/memories/9223372036854775809", 404)
    for path in (
        f"/portal/memories/{row}/delete",
        f"/portal/memories/{row}/restore",
        f"/portal/memories/{row}/revert",
        f"/portal/conversations/{session}/delete",
        f"/portal/connections/key/{key}/revoke",
        f"/portal/connections/token/{key}/revoke",
        f"/portal/connections/application/{key}/revoke",
        "/portal/files/r_x/delete",
    ):
        assert here.post(path).status_code == 404, path
    assert here.post(f"/portal/memories/{row}/correct", text="x", before=OF_BOB).status_code == 404
    assert "0 memories are deleted" in here.post("/portal/memories/forget", q="diary", row=[row]).content.decode()
    for deletion in (uuid4(), "x"):
        assert here.post("/portal/memories/undo", deletion=deletion).status_code == 404
    assert Memory.objects.get(pk=row).state == "live"
    assert not Tombstone.objects.exists()


def test_an_address_that_no_page_writes_is_no_failure(here: Visit) -> None:
    for value in ("9" * 5000, "-1", "x", "%00", "1.x", "%F0%9F%98%80"):
        for page in ("?deleted=", "?after=", "?q=", "?kind=", "conversations?before=", "conversations?deleted=",
                     "files?after=", "files?deleted=", "looks?before=", "memories/forget?q="):  # fmt: skip
            here.get(f"/portal/{page}{value}")


def test_correct_and_undo(here: Visit, alice: Person) -> None:
    memory = Memory.objects.get(user=alice.user_pk, text="Alice lives in Lyon.")
    path = f"/portal/memories/{memory.pk}"
    assert here.post(f"{path}/correct", text=" ", before=memory.text).status_code == 422
    assert here.post(f"{path}/correct", text="x", before="other").status_code == 409
    events: list[tuple[str, Any]] = []

    def note_event(event_type: str, data: Any, **_: Any) -> None:
        events.append((event_type, data.get("memory_ids")))

    changed.connect(note_event)
    try:
        assert here.post(f"{path}/correct", text="Alice lives in Nice.", before=memory.text).status_code == 302
        call(alice, "patch", f"/memories/{memory.memory_id}", override_text="Alice lives in Nice.")
    finally:
        changed.disconnect(note_event)
    corrected = [("memory.overridden", [memory.memory_id]), ("memory.corrected_by_user", [memory.memory_id])]
    assert events[:2] == corrected
    assert "memory.corrected_by_user" not in [name for name, _ids in events[2:]]
    page = here.get(path)
    assert "Alice lives in Nice." in page
    assert "Before your correction" in page
    assert re.search(r"\s\s+you\s\s+", page)
    assert "the person" not in page
    assert here.post(f"{path}/revert").status_code == 302
    assert Memory.objects.get(pk=memory.pk).text == "Alice lives in Lyon."


def test_delete_and_undo(here: Visit, alice: Person) -> None:
    row = Memory.objects.get(user=alice.user_pk, text="Alice lives in Lyon.").pk
    answer = here.post(f"/portal/memories/{row}/delete")
    page = here.get(answer.headers["Location"])
    assert "Deleted." in page
    assert "Lyon" not in page
    assert "Lyon" in here.get("/portal/trash")
    assert here.post(f"/portal/memories/{row}/restore").status_code == 302
    assert "Lyon" in here.get("/portal/")


def test_delete_by_words_takes_what_is_ticked_and_undoes_it(here: Visit, alice: Person, bob: Person) -> None:
    page = here.get("/portal/memories/forget?q=green+tea")
    rows = re.findall(r'name="row" value="(\d+)"', page)
    assert len(rows) == 2
    done = here.post("/portal/memories/forget", q="green tea", row=rows).content.decode()
    assert "2 memories are deleted" in done
    deletion = re.findall(r'name="deletion" value="([^"]+)"', done)[0]
    assert "Nothing has these words" in here.get("/portal/?q=green+tea")
    assert visit(bob).post("/portal/memories/undo", deletion=deletion).status_code == 404
    assert "2 memories are restored" in here.post("/portal/memories/undo", deletion=deletion).content.decode()
    assert here.post("/portal/memories/undo", deletion=deletion).status_code == 409


def test_delete_by_words_takes_the_copies_of_what_is_ticked(here: Visit, alice: Person) -> None:
    for session in ("c2", "c3"):
        say(alice, "My diary is under the stairs.", session)
    page = here.get("/portal/memories/forget?q=diary+stairs")
    said, answered = re.findall(r'name="row" value="(\d+)"', page)
    done = here.post("/portal/memories/forget", q="diary stairs", row=[answered]).content.decode()
    assert "2 memories are deleted" in done
    assert re.findall(r'name="row" value="(\d+)"', here.get("/portal/memories/forget?q=diary+stairs")) == [said]


def test_conversations_are_read_deleted_and_restored(here: Visit, alice: Person) -> None:
    session = Session.objects.get(user=alice.user_pk, kind="chat").pk
    assert "I drink green tea" in here.get("/portal/conversations")
    assert "I see: I drink" in here.get(f"/portal/conversations/{session}")
    answer = here.post(f"/portal/conversations/{session}/delete")
    assert "with its memories" in here.get(answer.headers["Location"])
    assert "green tea" not in here.get("/portal/")
    assert here.post(f"/portal/conversations/{session}/restore").status_code == 302
    assert "green tea" in here.get("/portal/")


def test_the_profile_is_a_form(here: Visit, alice: Person) -> None:
    page = here.get("/portal/profile/user")
    etag = re.findall(r'name="etag" value="([^"]+)"', page)[0].replace("&quot;", '"')
    assert here.post("/portal/profile/user", etag=etag, occupation="Gardener").status_code == 302
    assert "Gardener" in here.get("/portal/profile")
    assert here.post("/portal/profile/user", etag=etag, occupation="Old").status_code == 412
    here.get("/portal/profile/other", 404)


def test_files_are_opened_and_deleted(here: Visit, alice: Person) -> None:
    upload = {"file": io.BytesIO(b"The roses need water on Sunday.\n")}
    upload["file"].name = "roses.txt"
    answer = alice.client.post("/resources", upload)
    assert answer.status_code == 200, answer.content
    name = answer.json()["resource_id"]
    assert "roses.txt" in here.get("/portal/files")
    opened = here.client.get(f"/portal/files/{name}")
    assert b"".join(opened.streaming_content) == b"The roses need water on Sunday.\n"
    assert "sandbox" in opened.headers["Content-Security-Policy"]
    assert "attachment" in opened.headers["Content-Disposition"]
    assert here.post(f"/portal/files/{name}/delete").status_code == 302
    assert "roses.txt" in here.get("/portal/trash")
    assert here.post(f"/portal/files/{name}/restore").status_code == 302


def test_applications_are_listed_and_ended(here: Visit, alice: Person) -> None:
    spare = services.issue_key(alice.user_pk, label="Old phone", granted=["search"], actor=Actor.command("tests"))
    assert "Old phone" in here.get("/portal/connections")
    assert here.post(f"/portal/connections/key/{spare.key.pk}/revoke").status_code == 302
    assert "Old phone" not in here.get("/portal/connections")
    last = services.keys_of(alice.user_pk).get(revoked_at__isnull=True).pk
    assert here.post(f"/portal/connections/key/{last}/revoke").status_code == 409


def test_looks_name_operators_and_no_other_user(here: Visit, alice: Person, bob: Person) -> None:
    record(
        Actor.operator("chen.yu"), "memory.list", subject_type="memory", users=[alice.user_id, bob.user_id],
        detail={"filter": {"user": bob.user_id}},
    )  # fmt: skip
    page = here.get("/portal/looks")
    assert "Listed memories" in page
    assert "chen.yu" in page
    assert bob.user_id not in page


def test_the_download_has_everything_of_the_person_alone(here: Visit, alice: Person, bob: Person) -> None:
    answer = here.post("/portal/everything/download")
    packed = b"".join(answer.streaming_content)
    with zipfile.ZipFile(io.BytesIO(packed)) as archive:
        names = archive.namelist()
        content = b"".join(archive.read(name) for name in names)
    assert {"index.html", "memories.jsonl", "profiles.jsonl"} <= set(names)
    assert b"Alice lives in Lyon." in content
    assert OF_BOB.encode() not in content
    assert "Exported all data of a user" in here.get("/portal/looks")


def test_everything_is_deleted_once_the_person_has_typed_the_name(here: Visit, alice: Person, bob: Person) -> None:
    assert here.post("/portal/everything/erase", confirm="yes").status_code == 422
    page = here.post("/portal/everything/erase", confirm=alice.user_id).content.decode()
    signed = re.findall(r'name="receipt" value="([^"]+)"', page)[0]
    receipt: Any = json.loads(here.client.post("/portal/receipt", {"receipt": signed}).content)
    assert receipt["user_id"] == alice.user_id
    assert not MemoryUser.objects.filter(pk=alice.user_pk).exists()
    assert Memory.objects.filter(user=bob.user_pk).exists()
    here.get("/portal/", 401)
    assert here.client.post("/portal/receipt", {"receipt": "x"}).status_code == 400


def test_pages_are_chinese_for_those_who_read_it(here: Visit) -> None:
    answer = here.client.get("/portal/", headers={"accept-language": "zh-CN"})
    assert 'lang="zh-hans"' in answer.content.decode()
