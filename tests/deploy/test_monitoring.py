"""The dashboard and the alert rules name metrics, labels and error codes that the gateway has."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
import yaml
from django.test import Client
from prometheus_client.parser import text_string_to_metric_families

from core import errors, monitoring
from tests.forked import PROJECT

TOKEN = "metrics-token"
DASHBOARD: dict[str, Any] = json.loads((PROJECT / "deploy" / "grafana-dashboard.json").read_text(encoding="utf-8"))
ALERTS = yaml.safe_load((PROJECT / "deploy" / "prometheus-alerts.yml").read_text(encoding="utf-8"))
EXPRESSIONS = [
    *(target["expr"] for panel in DASHBOARD["panels"] for target in panel["targets"]),
    *(rule["expr"] for group in ALERTS["groups"] for rule in group["rules"]),
]


@pytest.fixture
def exported(settings: Any, db: None) -> dict[str, set[str]]:
    """The labels of each sample that `GET /metrics` shows, with one of each kind."""
    settings.MEMORY_GATEWAY_METRICS_TOKEN = TOKEN
    monitoring.count_request("GET", "/memories/search", 200, 0.1)
    monitoring.count_engine_call("embedded", "search", "ok", 0.1)
    monitoring.INGESTION_SECONDS.labels("extracted").observe(1)
    text = Client().get("/metrics", headers={"Authorization": f"Bearer {TOKEN}"}).content.decode()
    samples = [sample for family in text_string_to_metric_families(text) for sample in family.samples]
    return {sample.name: set(sample.labels) for sample in samples}


def test_every_metric_and_label_exists(exported: dict[str, set[str]]) -> None:
    assert EXPRESSIONS
    for expression in EXPRESSIONS:
        named = {*re.findall(r"\bmemory_gateway_\w+", expression)}
        assert named <= {*exported}, expression
        labels = {*re.findall(r"(\w+)=~?\"", expression)}
        for group in re.findall(r"by \(([^)]*)\)", expression):
            labels |= {label.strip() for label in group.split(",")}
        assert labels - {"job"} <= {label for name in named for label in exported[name]}, expression


def test_every_outcome_is_an_error_code() -> None:
    found = re.findall(r'outcome=~"([a-z_|]+)"', " ".join(EXPRESSIONS))
    codes = {error.code for error in errors.__dict__.values() if isinstance(error, type) and hasattr(error, "code")}
    assert found
    assert {code for alternatives in found for code in alternatives.split("|")} <= codes


def test_panels_and_alerts_have_unique_names() -> None:
    ids = [panel["id"] for panel in DASHBOARD["panels"]]
    assert len({*ids}) == len(ids)
    names = [rule["alert"] for group in ALERTS["groups"] for rule in group["rules"]]
    assert len({*names}) == len(names)
