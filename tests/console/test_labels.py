"""Translation of the labels of tables in the Django admin."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.apps import apps
from django.contrib import admin
from django.db.models import Field
from django.test import Client
from django.utils import translation

from tests.conftest import Person
from tests.console.people import remember

APPS = ("accounts", "store", "resources", "memories", "profiles", "operations")
SAME_IN_BOTH = {"ID", "Webhook", "SHA-256", "REST", "MCP", "RPC"}


def labels() -> Iterator[str]:
    """Yield all labels of tables that the admin can show. It never shows the row numbers that Django adds."""
    for name in APPS:
        config = apps.get_app_config(name)
        yield str(config.verbose_name)
        for model in config.get_models():
            yield from (str(model._meta.verbose_name), str(model._meta.verbose_name_plural))
            for field in model._meta.get_fields():
                if isinstance(field, Field) and not field.auto_created:
                    yield from (str(field.verbose_name), str(field.help_text))
                    yield from (str(label) for _value, label in field.flatchoices)


def test_every_label_is_translated_to_chinese() -> None:
    with translation.override("zh-hans"):
        found = {label for label in labels() if label} - SAME_IN_BOTH
        assert sorted(label for label in found if not any("\u4e00" <= char <= "\u9fff" for char in label)) == []


@pytest.mark.django_db
def test_lists_and_forms_of_the_admin_are_translated_to_chinese(admin_client: Client, alice: Person) -> None:
    remember(alice.owner)
    for model, words in (
        ("store/memory", "记忆 ID"),
        ("accounts/userkey", "有效"),
        ("accounts/userkey/add", "有效期（天）"),
        ("operations/job", "任务"),
        ("profiles/profilerevision", "版本"),
    ):
        page = admin_client.get(f"/admin/{model}/", headers={"Accept-Language": "zh-CN"}).content.decode()
        assert words in page, model


def test_the_search_help_of_the_admin_is_translated_to_chinese() -> None:
    with translation.override("zh-hans"):
        for model, page in admin.site._registry.items():
            if model._meta.app_label in APPS and page.search_help_text:
                assert any("\u4e00" <= char <= "\u9fff" for char in str(page.search_help_text)), model
