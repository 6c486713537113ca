"""The audit trail: kinds of events, labels, and the export."""

from __future__ import annotations

import csv
import io
import json
import re
from html import unescape
from itertools import chain
from typing import Any

import pytest
from django.test import Client

from accounts.audit import Actor, record
from accounts.models import AuditEvent, UserKey
from console.audit_labels import ACTIONS
from tests.conftest import Person
from tests.test_documentation import PROJECT

pytestmark = pytest.mark.django_db
AUDIT = "/admin/memory/audit/"
ACTIONS_BY_KIND = {
    "change": ["memory.delete", "memory.export", "job.purge", "operator.change", "profile.write"],
    "read": ["memory.view", "memory.list", "resource.download", "trash.view", "lab.search", "panel.find"],
    "sign_in": ["operator.sign_in", "operator.lock_out", "operator.sign_out", "provisioning.refuse"],
}


@pytest.fixture(autouse=True)
def events(alice: Person) -> None:
    AuditEvent.objects.all().delete()
    for actions in ACTIONS_BY_KIND.values():
        for action in actions:
            record(Actor.operator("op"), action, f"of {action}", subject_type="memory", user_id="alice")


def shown(client: Client, query: str) -> list[str]:
    page = client.get(f"{AUDIT}?{query}").content.decode()
    return re.findall(r"<code>of ([a-z_.]+)</code>", page)[::-1]


def exported(client: Client, query: str) -> list[dict[str, str]]:
    answer: Any = client.get(f"{AUDIT}export/?{query}")
    assert answer.headers["Content-Disposition"] == 'attachment; filename="audit.csv"'
    return list(csv.DictReader(io.StringIO(b"".join(answer.streaming_content).decode())))


def test_each_tab_shows_its_kind_and_changes_are_the_first(admin_client: Client) -> None:
    for kind, actions in ACTIONS_BY_KIND.items():
        assert shown(admin_client, f"tab={kind}") == actions
    assert shown(admin_client, "") == ACTIONS_BY_KIND["change"]
    assert shown(admin_client, "tab=all&user=alice") == [*chain(*ACTIONS_BY_KIND.values())]


def test_a_key_as_subject_has_its_short_name_and_a_link_to_what_it_did(admin_client: Client) -> None:
    key = UserKey.objects.get(user__user_id="alice")
    record(Actor.operator("op"), "key.rotate", str(key.pk), user_id="alice")
    page = admin_client.get(f"{AUDIT}?action=key.").content.decode()
    assert f'actor={key.prefix}" title="{key.pk}"><code>{key.prefix}…</code></a>' in page
    assert f"<code>{key.pk}</code>" not in page


def test_a_link_to_an_action_or_a_subject_shows_events_of_every_kind(admin_client: Client) -> None:
    assert shown(admin_client, "action=memory.") == ["memory.delete", "memory.export", "memory.view", "memory.list"]
    assert shown(admin_client, "subject=of+memory.view") == ["memory.view"]


def test_events_are_labeled_and_grouped_by_day(admin_client: Client) -> None:
    AuditEvent.objects.filter(action="memory.delete").update(at="2026-01-02T12:00:00Z")
    page = admin_client.get(AUDIT).content.decode()
    assert ">Deleted memories</a>" in page
    assert page.count('class="mg-day"') == 2
    assert '<th role="rowheader" scope="rowgroup" colspan="5">2026-01-02</th>' in page


def test_reads_in_the_django_admin_are_named_after_the_model(admin_client: Client, alice: Person) -> None:
    admin_client.get(f"/admin/profiles/profilememory/of/{alice.user_pk}/user/")
    page = admin_client.get(f"{AUDIT}?tab=read").content.decode()
    assert ">Viewed profile</a>" in page
    assert "profilememory</span>" not in page


def test_the_overview_of_a_user_shows_changes_and_who_looked(admin_client: Client, alice: Person) -> None:
    page = admin_client.get(f"/admin/memory/users/{alice.user_pk}/").content.decode()
    activity, readers = page.partition('id="h-au"')[2].split('id="h-rd"')
    assert re.search(r"<li>\s*Deleted memories<br>", activity)
    assert "Viewed a memory" not in activity
    assert "Viewed a memory" in readers
    assert "Deleted memories" not in readers


def test_the_export_has_the_events_of_the_filter_and_no_formulas(admin_client: Client) -> None:
    record(Actor.operator("=1+1"), "memory.delete", 'a "b", c', detail={"n": "茶"})
    rows = exported(admin_client, "action=memory.delete")
    assert [row["subject_id"] for row in rows] == ['a "b", c', "of memory.delete"]
    assert (rows[0]["actor"], rows[0]["detail"]) == ("'=1+1", '{"n": "茶"}')
    changes = [row["action"] for row in exported(admin_client, "")][::-1]
    assert changes == [*ACTIONS_BY_KIND["change"], "memory.delete", "audit.export", "audit.export"]


def test_the_export_as_json_has_the_same_events(admin_client: Client) -> None:
    record(Actor.operator("=1+1"), "memory.delete", "a", detail={"n": "茶"})
    page = admin_client.get(AUDIT, {"action": "memory.delete"}).content.decode()
    answer = admin_client.get(unescape(re.findall(r'href="([^"]+format=json)"', page)[0]))
    assert answer.headers["Content-Disposition"] == 'attachment; filename="audit.jsonl"'
    lines = [json.loads(line) for line in b"".join(answer.streaming_content).splitlines()]  # type: ignore[attr-defined]
    assert [line["subject_id"] for line in lines] == ["a", "of memory.delete"]
    assert (lines[0]["actor"], lines[0]["detail"]) == ("=1+1", {"n": "茶"})
    assert lines[0].keys() == exported(admin_client, "")[0].keys()


def test_an_unknown_format_of_the_export_is_refused(admin_client: Client) -> None:
    answer = admin_client.get(f"{AUDIT}export/?format=xml")
    assert answer.status_code == 400
    assert "The format must be csv or json." in answer.content.decode()


def test_every_label_is_of_an_action_that_is_recorded() -> None:
    """Names that are composed, such as those of profiles, are found by their verb."""
    files = [path for path in PROJECT.glob("*/**/*.py") if path.parts[len(PROJECT.parts)] not in {".venv", "tests"}]
    text = "".join(path.read_text(encoding="utf-8") for path in files if path.name != "audit_labels.py")
    verbs = {action: action.rpartition(".")[2] for action in ACTIONS}
    assert [action for action, verb in verbs.items() if f'"{action}"' not in text and f'"{verb}"' not in text] == []
