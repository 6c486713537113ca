"""The admin's pages of every table: lists, search, filters, escaping, permissions, and no writes."""

from __future__ import annotations

from typing import Any

import pytest
from django.apps import apps
from django.contrib import admin
from django.contrib.admin.utils import quote
from django.db import connection
from django.db.models import Model
from django.test import Client, RequestFactory
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from accounts.models import MemoryUser, RpcToken, SignInThrottle, UserKey
from tests.admin.rows import MAKERS, MARKUP

OWN_APPS = {
    "remote",
    "accounts",
    "store",
    "resources",
    "memories",
    "profiles",
    "operations",
    "agents",
    "console",
    "webhooks",
}
MODELS = list(MAKERS)
NAMES = [model.__name__ for model in MODELS]

pytestmark = pytest.mark.django_db

each_table = pytest.mark.parametrize("model", MODELS, ids=NAMES)


def url(model: type[Model], page: str, *args: Any) -> str:
    """Return an address as the admin writes it, with quoted keys."""
    return reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_{page}", args=[quote(arg) for arg in args])


def test_every_model_has_an_admin_page_and_a_test_row() -> None:
    tables = {model for model in apps.get_models() if model._meta.app_label in OWN_APPS}
    assert tables <= set(admin.site._registry)
    assert tables == set(MODELS)


@each_table
def test_lists_can_be_searched_and_filtered(
    admin_client: Client, admin_user: Any, rf: RequestFactory, model: type[Model]
) -> None:
    MAKERS[model](1)
    page = admin.site._registry[model]
    assert page.search_fields
    assert page.list_filter
    found = admin_client.get(url(model, "changelist"), {"q": "nothing like this"})
    assert found.status_code == 200
    assert found.context["cl"].result_count == 0
    shown = admin_client.get(url(model, "changelist")).context["cl"]
    for link in shown.filter_specs:
        for choice in link.choices(shown):  # one page is rendered above: it takes ten times as long as its rows
            request = rf.get(url(model, "changelist") + choice["query_string"])
            request.user = admin_user
            filtered = page.get_changelist_instance(request)
            assert len(filtered.result_list) <= filtered.result_count


@each_table
def test_a_list_takes_the_same_statements_for_any_number_of_rows(admin_client: Client, model: type[Model]) -> None:
    counts = []
    for numbers in (range(2), range(2, 12)):
        for number in numbers:
            MAKERS[model](number)
        with CaptureQueriesContext(connection) as queries:
            assert admin_client.get(url(model, "changelist")).status_code == 200
        counts.append(len(queries))
    assert counts[0] == counts[1] <= 15  # three of them are of the audit event, one of what has expired


@each_table
def test_markup_in_texts_is_escaped(admin_client: Client, model: type[Model]) -> None:
    row = MAKERS[model](1)
    for address in (url(model, "changelist"), url(model, "change", row.pk)):
        response = admin_client.get(address)
        assert response.status_code == 200
        assert MARKUP not in response.content.decode()
        assert "<script>alert" not in response.content.decode()
        assert 'href="javascript:' not in response.content.decode()


@each_table
def test_rows_are_read_only(admin_client: Client, model: type[Model]) -> None:
    row = MAKERS[model](1)
    page = admin_client.get(url(model, "change", row.pk))
    assert page.context["has_change_permission"] is False
    assert admin_client.post(url(model, "change", row.pk), {"_save": "1"}).status_code == 403
    if model is not SignInThrottle:
        assert admin_client.post(url(model, "delete", row.pk), {"post": "yes"}).status_code == 403
    if model not in {MemoryUser, RpcToken, UserKey}:
        assert admin_client.get(url(model, "add")).status_code == 403


@each_table
def test_pages_need_the_view_permission(client: Client, django_user_model: Any, model: type[Model]) -> None:
    assert client.get(url(model, "changelist")).status_code == 302
    client.force_login(django_user_model.objects.create_user("helper", is_staff=True))
    row = MAKERS[model](1)
    assert client.get(url(model, "changelist")).status_code == 403
    assert client.get(url(model, "change", row.pk)).status_code == 403


@each_table
def test_an_unknown_row_redirects(admin_client: Client, model: type[Model]) -> None:
    assert admin_client.get(url(model, "change", "nothing")).status_code == 302


def test_the_hidden_labels_of_the_index_are_translated(admin_client: Client) -> None:
    page = admin_client.get("/admin/", headers={"Accept-Language": "zh-CN"}).content.decode()
    for label in ("模型名称", "添加链接", "修改或查看列表的链接"):
        assert f">{label}</th>" in page
