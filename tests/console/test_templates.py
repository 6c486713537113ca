"""The templates of the panel, and the tags that they share."""

from __future__ import annotations

from typing import Any

import pytest

from console.templatetags import panel
from operations.models import Job
from resources.models import Resource
from tests.forked import PROJECT
from webhooks.models import WebhookDelivery


def test_templates_have_lines_that_people_can_review() -> None:
    long = [
        f"{path.relative_to(PROJECT)}:{number}"
        for path in sorted(PROJECT.glob("templates/**/*.html"))
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if len(line) > 140
    ]
    assert long == []


@pytest.mark.parametrize("model", [Resource, Job, WebhookDelivery])
def test_every_state_has_a_look_and_an_icon(model: Any) -> None:
    badges = {status: panel.state_badge(model(status=status)) for status in model.Status.values}
    assert [status for status, badge in badges.items() if str(model.Status(status).label) not in badge] == []


def test_an_address_has_only_parameters_with_a_value() -> None:
    assert panel.address("console:users", q="a b", sort="", after=None) == "/admin/memory/users/?q=a+b"


def test_values_of_users_are_escaped() -> None:
    hostile = "<script>"
    written = [
        panel.badge("ok", "check", hostile),
        panel.card("<p>", "name", hostile),
        panel.pair(hostile, hostile),
        panel.columns(hostile),
        panel.category_badge(hostile),
        panel.lang(hostile),
    ]
    assert [html for html in written if hostile in html] == []
