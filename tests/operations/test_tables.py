"""The list of tables that hold something of people knows every one."""

from __future__ import annotations

from django.apps import apps
from django.db.models import Model

from operations.tables import ALL, ELSEWHERE

OURS = ("accounts", "store", "resources", "memories", "profiles", "operations", "agents", "console")


def our_models() -> set[type[Model]]:
    return {model for app in OURS for model in apps.get_app_config(app).get_models()}


def test_every_model_is_in_the_list_or_has_a_reason_not_to_be() -> None:
    """Whoever adds one says what becomes of it when a person moves or is erased."""
    listed = {table.model for table in ALL} | {apps.get_model(label) for label in ELSEWHERE}
    assert {model._meta.label for model in our_models() ^ listed} == set()


def test_none_is_listed_twice() -> None:
    assert not {table.model._meta.label for table in ALL} & set(ELSEWHERE)
    assert len({table.model for table in ALL}) == len({table.name for table in ALL}) == len(ALL)
