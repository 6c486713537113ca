"""The client's generated modules follow the OpenAPI document."""

from __future__ import annotations

import copy

from clients import generate
from tests.openapi import schema


def test_the_generated_modules_are_current() -> None:
    for path, text in generate.python_client(schema()).items():
        assert path.read_text(encoding="utf-8") == text, "run `make clients`"


def test_a_new_search_parameter_and_a_new_field_of_results_need_no_other_file() -> None:
    document = copy.deepcopy(schema())
    parts = document["components"]["schemas"]
    parts["SearchBodyRequest"]["properties"]["min_relevance"] = {"anyOf": [{"type": "number"}, {"type": "null"}]}
    parts["SearchResultOut"]["properties"]["freshness"] = {"type": "number", "description": "The freshness."}
    modules = {path.name: text for path, text in generate.python_client(document).items()}
    search = modules["endpoints.py"].partition("def search(")[2].partition("def list(")[0]
    assert "min_relevance: float | None = None," in search
    assert '"min_relevance": min_relevance,' in search
    found = modules["models.py"].partition("class SearchResult(")[2].partition("class ")[0]
    assert 'freshness: float | None = None\n    """The freshness."""' in found
