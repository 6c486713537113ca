"""The page of the gateway's state."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from core.network.model_endpoint import ModelAddress


@pytest.mark.django_db
def test_the_page_names_each_configured_model_and_no_key(admin_client: Client, settings: Any) -> None:
    settings.MEMORY_GATEWAY_MODELS = {"rerank": ModelAddress("https://models.example/v1", "rank-2", "sk-secret")}
    text = admin_client.get(reverse("console:health")).content.decode()
    assert "https://models.example/v1" in text
    assert "rank-2" in text
    assert "sk-secret" not in text
