"""The panel marks user ids that imitate others."""

from __future__ import annotations

import pytest
from django.test import Client

from accounts.models import MemoryUser
from console import queries
from core.lookalikes import mixes_scripts, plain_form


@pytest.mark.parametrize(
    ("user_id", "is_mixed"),
    [("alice", False), ("\u0430lice", True), ("алиса", False), ("用户ann", False), ("東京タワーの人", False),
     ("안녕ann", False), ("αnn", True),
     ("\uff41nn", False), ("auth0|12", False), ("👩🙂", False), ("Łukasz Żółć", False), ("用户Ж", True)],
)  # fmt: skip
def test_scripts_that_no_name_mixes(user_id: str, is_mixed: bool) -> None:
    assert mixes_scripts(user_id) is is_mixed


@pytest.mark.django_db
def test_ids_that_look_like_another_are_marked(admin_client: Client) -> None:
    fake, wide = "\u0430lic\u0435", "\uff42ob"
    for name in ("alice", "bob", fake, wide, "zoë", "用户"):
        MemoryUser.objects.create(user_id=name)
    assert (plain_form(fake), plain_form(wide)) == ("alice", "bob")
    assert queries.imitations(["alice", "bob", fake, wide, "zoë", "用户"]) == {fake: "alice", wide: "bob"}
    page = admin_client.get("/admin/memory/users/").content.decode()
    assert page.count("Looks like another user ID") == 2
    imitator = MemoryUser.objects.get(user_id=fake)
    assert "Looks like another user ID" in admin_client.get(f"/admin/memory/users/{imitator.pk}/").content.decode()
    known = MemoryUser.objects.get(user_id="alice")
    assert "Looks like another" not in admin_client.get(f"/admin/memory/users/{known.pk}/").content.decode()
