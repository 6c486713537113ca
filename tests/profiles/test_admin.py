"""The admin's pages of documents: editing, comparing and restoring, with permissions and audit, without scripts."""

from __future__ import annotations

import html
import re
from typing import Any

import pytest
from django.contrib.auth.models import Permission
from django.http import QueryDict
from django.test import Client
from django.urls import reverse
from hypothesis import HealthCheck, given, settings

from accounts.audit import Actor
from accounts.models import AuditEvent
from profiles import document_form, services
from profiles.models import ProfileMemory
from profiles.schemas import MODELS, Kind
from tests.admin.rows import MARKUP
from tests.conftest import Person
from tests.profiles.documents import FULL, documents
from tests.profiles.form_data import form_data_of

OPERATOR = Actor.operator("olga")
pytestmark = pytest.mark.django_db


def address(person: Person, kind: str = "user", page: str = "edit", *more: Any) -> str:
    return reverse(f"admin:profiles_profilememory_{page}", args=[person.user_pk, kind, *more])


def opened_form(client: Client, path: str) -> dict[str, Any]:
    """Return the data that a browser would send with the form of a page."""
    return form_data_of(client.get(path).content.decode())


@pytest.mark.parametrize("kind", ["user", "work"])
def test_saving_an_unchanged_document_changes_nothing(admin_client: Client, alice: Person, kind: Kind) -> None:
    services.write(alice.user_pk, kind, FULL[kind], actor=OPERATOR)
    form = opened_form(admin_client, address(alice, kind))
    assert admin_client.post(address(alice, kind), form).status_code == 302
    document = services.read(alice.user_pk, kind)
    assert (document.content.model_dump(), document.version) == (FULL[kind], 1)


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(document=documents)
def test_any_document_survives_its_form(admin_client: Client, alice: Person, document: Any) -> None:
    """Differences that no browser can send do not count: empty texts in lists, line ends, the order of weekdays."""
    kind, content = document
    model = MODELS[kind]
    written = services.write(alice.user_pk, kind, content, actor=OPERATOR).content.model_dump()
    page = admin_client.get(address(alice, kind))
    form = form_data_of(page.content.decode())
    parsed = document_form.without_blanks(document_form.read(model, _query(form)))
    assert _plain(model.model_validate(parsed).model_dump()) == _plain(document_form.without_blanks(written))


def _query(form: dict[str, Any]) -> Any:
    query = QueryDict(mutable=True)
    for name, value in form.items():
        query.setlist(name, value if isinstance(value, list) else [value])
    return query


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            key: sorted(set(part)) if key == "weekdays" else _plain(part)
            for key, part in value.items()
            if key != "meta"
        }
    if isinstance(value, list):
        return [_plain(part) for part in value]
    return (" ".join(value.split()) or None) if isinstance(value, str) else value


def test_a_field_can_be_changed(admin_client: Client, alice: Person) -> None:
    services.write(alice.user_pk, "user", FULL["user"], actor=Actor("key", "k1"))
    form = opened_form(admin_client, address(alice))
    form |= {"occupation": "baker", "people.0.role": "chief editor", "places.0.commute_minutes": ""}
    saved = admin_client.post(address(alice), form, follow=True)
    assert "Document saved." in saved.content.decode()
    content = services.read(alice.user_pk, "user").content.model_dump()
    assert (content["occupation"], content["places"][0]["commute_minutes"]) == ("baker", None)
    person = content["people"][0]
    assert (person["role"], person["notes"]) == ("chief editor", "Lives in Porto.\nCalls on Sundays.")
    assert person["meta"]["source"] == "operator"
    assert content["recurring_routines"] == FULL["user"]["recurring_routines"]
    [event] = AuditEvent.objects.filter(action="profile.write", actor_kind="operator")
    assert (event.user_id, event.subject_id, event.detail) == ("alice", "user", {"version": 2})


def test_buttons_add_move_and_remove_rows_without_saving(admin_client: Client, alice: Person) -> None:
    path = address(alice, "work")

    def press(form: dict[str, Any], action: str) -> dict[str, Any]:
        page = admin_client.post(path, form | {"do": action})
        assert page.status_code == 200
        assert "Not saved." in page.content.decode()
        return form_data_of(page.content.decode())

    form = press(opened_form(admin_client, path), "add:current_projects")
    form = press(form | {"current_projects.0.name": "Bridge"}, "add:current_projects")
    form = press(form | {"current_projects.1.name": "Tower"}, "add:current_projects.1.key_milestones")
    form = press(form | {"current_projects.1.key_milestones.0.name": "Permit"}, "up:current_projects.1")
    assert (form["current_projects.0.name"], form["current_projects.1.name"]) == ("Tower", "Bridge")
    form = press(form, "add:work_habits.available_hours")
    days = {"work_habits.available_hours.0.weekdays": ["mon", "sun"]}
    form = press(form | days | {"work_habits.available_hours.0.start": "09:00"}, "add:work_rules")
    form = press(form | {"work_rules.0": "first"}, "add:work_rules")
    form = press(form | {"work_rules.1": "second"}, "add:work_rules")
    form = press(form | {"work_rules.2": "third"}, "remove:work_rules.0")
    form = press(form, "down:work_rules.0")
    form = press(form, "add:expertise")  # and left empty
    assert not ProfileMemory.objects.exists()
    assert admin_client.post(path, form | {"work_habits.available_hours.0.end": "12:00"}).status_code == 302
    content = services.read(alice.user_pk, "work").content.model_dump()
    assert [project["name"] for project in content["current_projects"]] == ["Tower", "Bridge"]
    assert [milestone["name"] for milestone in content["current_projects"][0]["key_milestones"]] == ["Permit"]
    assert content["work_habits"]["available_hours"] == [{"weekdays": ["mon", "sun"], "start": "09:00", "end": "12:00"}]
    assert (content["work_rules"], content["expertise"]) == (["third", "second"], [])


@pytest.mark.parametrize(
    "action",
    [
        "remove:people.9",
        "up:people.0",
        "down:people.0",
        "add:occupation",
        "remove:people.-1",
        "up:nothing.0",
        "",
        ":",
        "x",
        "add:meta",
        "remove:people.0.name",
        f"remove:people.{'9' * 5000}",
        "add:people.0.0.0",
        "up:people.٣",
    ],
)
def test_invalid_button_actions_are_ignored(admin_client: Client, alice: Person, action: str) -> None:
    services.write(alice.user_pk, "user", FULL["user"], actor=OPERATOR)
    form = opened_form(admin_client, address(alice))
    page = admin_client.post(address(alice), form | {"do": action})
    assert page.status_code in {200, 302}
    assert services.read(alice.user_pk, "user").content.model_dump() == FULL["user"]


def test_errors_are_shown_at_their_fields_and_input_is_kept(admin_client: Client, alice: Person) -> None:
    form = form_data_of(admin_client.post(address(alice), {"do": "add:places"}).content.decode())
    invalid = form | {"places.0.name": "", "places.0.address": "3 Harbour Lane", "places.0.commute_minutes": "soon"}
    page = admin_client.post(address(alice), invalid).content.decode()
    assert "Please correct the errors below." in page
    assert len(re.findall(r'aria-invalid="true"', page)) == 2
    resubmitted = form_data_of(page)
    assert (resubmitted["places.0.address"], resubmitted["places.0.commute_minutes"]) == ("3 Harbour Lane", "soon")
    assert not ProfileMemory.objects.exists()


def test_a_concurrent_change_is_shown_before_it_is_overwritten(admin_client: Client, alice: Person) -> None:
    services.write(alice.user_pk, "user", {"occupation": "architect"}, actor=OPERATOR)
    form = opened_form(admin_client, address(alice)) | {"timezone": "UTC"}
    services.patch(alice.user_pk, "user", {"occupation": "baker"}, actor=Actor("key", "k1"))
    page = admin_client.post(address(alice), form).content.decode()
    assert "The document has changed since you opened it." in page
    assert re.search(r"Occupation</th>\s*<td[^>]*>architect</td>\s*<td[^>]*>baker", page)
    assert services.read(alice.user_pk, "user").version == 2
    assert admin_client.post(address(alice), form_data_of(page)).status_code == 302
    content = services.read(alice.user_pk, "user").content.model_dump()
    assert (content["occupation"], content["timezone"]) == ("architect", "UTC")


def test_versions_can_be_compared_and_restored(admin_client: Client, alice: Person) -> None:
    services.write(alice.user_pk, "user", {"people": [{"name": "Ana", "role": "engineer"}]}, actor=OPERATOR)
    changes = {"people": [{"name": "Ana", "role": "chief"}, {"name": "Li"}], "interests": ["tea"]}
    services.write(alice.user_pk, "user", changes, actor=OPERATOR)
    listed = admin_client.get(address(alice, "user", "versions")).content.decode()
    assert address(alice, "user", "version", 1) in listed
    version = admin_client.get(address(alice, "user", "version", 2))
    changed = [(row.where, row.before, row.after) for row in version.context["changed"]]
    assert changed == [
        ("People", "Ana", "Ana, Li"),
        ("People › Ana › Role", "engineer", "chief"),
        ("Interests", "", "tea"),
    ]
    form = opened_form(admin_client, address(alice, "user", "version", 1))
    assert admin_client.post(address(alice, "user", "version", 1), form).status_code == 302
    restored = services.read(alice.user_pk, "user")
    assert (restored.version, restored.content.model_dump()["interests"]) == (3, [])
    stale = admin_client.post(address(alice, "user", "version", 2), form, follow=True)
    assert "has changed" in stale.content.decode()
    assert services.read(alice.user_pk, "user").version == 3
    assert admin_client.get(address(alice, "user", "version", 9)).status_code == 302


def test_a_document_can_be_disabled_and_enabled(admin_client: Client, alice: Person) -> None:
    admin_client.post(address(alice, "user", "status"), {"status": "disabled"})
    assert services.read(alice.user_pk, "user").is_disabled
    page = admin_client.get(address(alice)).content.decode()
    assert "This document is disabled" in page
    assert 'value="Save"' not in page
    assert admin_client.post(address(alice), {"occupation": "x"}).status_code == 200
    admin_client.post(address(alice, "user", "status"), {"status": "active"})
    assert not services.read(alice.user_pk, "user").is_disabled


def operator(django_user_model: Any, *verbs: str) -> Client:
    user = django_user_model.objects.create_user("helper", is_staff=True)
    names = [f"{verb}_profilememory" for verb in verbs]
    user.user_permissions.set(Permission.objects.filter(codename__in=names))
    client = Client()
    client.force_login(user)
    return client


ACTIONS = {"change": ("edit", ()), "restore": ("version", (1,)), "disable": ("status", ())}


@pytest.mark.parametrize("verb", [None, "view", "change", "restore", "disable"])
def test_each_action_needs_a_separate_permission(django_user_model: Any, alice: Person, verb: str | None) -> None:
    services.write(alice.user_pk, "user", FULL["user"], actor=OPERATOR)
    client = operator(django_user_model, *{"view", verb} - {None} if verb else ())
    for page, more in (("edit", ()), ("versions", ()), ("version", (1,))):
        assert client.get(address(alice, "user", page, *more)).status_code == (200 if verb else 403)
    for needed, (page, more) in ACTIONS.items():
        answer = client.post(address(alice, "user", page, *more), {"etag": '"user-1"', "do": "x"})
        assert (answer.status_code != 403) == (needed == verb), needed
    page = client.get(address(alice)).content.decode()
    assert ('is-main">Save</button>' in page) == (verb == "change")
    assert (" disabled>" in page.partition('class="pf-all"')[2][:12]) == (verb in {"view", "restore", "disable"})


def test_views_are_audited_without_text(admin_client: Client, alice: Person) -> None:
    services.write(alice.user_pk, "work", FULL["work"], actor=OPERATOR)
    AuditEvent.objects.all().delete()
    for page, more in (("edit", ()), ("versions", ()), ("version", (1,))):
        admin_client.get(address(alice, "work", page, *more))
    events = AuditEvent.objects.order_by("id").values_list("action", "actor", "user_id", "subject_id", "detail")
    assert list(events) == [
        ("profilememory.view", "admin", "alice", "work", {"page": page}) for page in ("edit", "versions", "version")
    ]


def test_markup_in_texts_is_escaped(admin_client: Client, alice: Person) -> None:
    entry = {"name": MARKUP, "notes": f"</textarea>{MARKUP}"}
    services.write(alice.user_pk, "user", {"occupation": MARKUP, "people": [entry]}, actor=OPERATOR)
    services.write(alice.user_pk, "user", {"interests": [MARKUP]}, actor=OPERATOR)
    for page, more in (("edit", ()), ("versions", ()), ("version", (1,)), ("version", (2,))):
        text = admin_client.get(address(alice, "user", page, *more)).content.decode()
        assert MARKUP not in text
        assert "<script>alert" not in text
    assert html.escape(MARKUP) in admin_client.get(address(alice)).content.decode()


def test_unknown_kinds_and_users_are_404(admin_client: Client, alice: Person, bob: Person) -> None:
    assert admin_client.get(address(alice, "play")).status_code == 404
    unknown = address(bob).replace(str(bob.user_pk), "00000000-0000-4000-8000-000000000000")
    assert admin_client.get(unknown).status_code == 404


def test_a_document_with_hundreds_of_entries_can_be_edited(admin_client: Client, alice: Person) -> None:
    people = [{"name": f"person {number}"} for number in range(500)]
    services.write(alice.user_pk, "user", {"people": people}, actor=OPERATOR)
    form = opened_form(admin_client, address(alice)) | {"people.499.role": "the last"}
    assert admin_client.post(address(alice), form).status_code == 302
    content = services.read(alice.user_pk, "user").content.model_dump()
    assert (len(content["people"]), content["people"][499]["role"]) == (500, "the last")
