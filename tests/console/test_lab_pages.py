"""The search lab names the page on which a hit stands."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.test import Client
from django.urls import reverse

from documents import mime_types as mt
from engines.embedded.engine import EmbeddedEngine
from tests import bombs
from tests.conftest import Person
from tests.store.conftest import file_message

pytestmark = pytest.mark.django_db


def test_a_hit_in_a_document_has_its_page(admin_client: Client, alice: Person, tmp_path: Path) -> None:
    path = tmp_path / "manual.pdf"
    path.write_bytes(bombs.pages_pdf(["the first page", "nothing here", "the boiler needs water"]))
    EmbeddedEngine().add(alice.owner, "chat:c1", [file_message(path, kind="pdf", mime_type=mt.PDF)])
    page = admin_client.get(reverse("console:lab"), {"user": alice.user_id, "q": "boiler"}).content.decode()
    assert "<span>page 3</span>" in page
