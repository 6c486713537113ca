"""Every change honors `If-Match` and `If-None-Match`, or refuses them by name."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.conftest import Person
from tests.memory_gateway.routes import Route
from tests.memory_gateway.test_urls import API_CALLS, call_id
from tests.openapi import operations, resolved, schema

HONORED = {
    ("POST", "/memories"),
    ("PATCH", "/memories/<path:memory_id>"),
    ("DELETE", "/memories/<path:memory_id>"),
    ("DELETE", "/memories/<path:memory_id>/override"),
    ("POST", "/memories/<path:memory_id>/restore"),
    ("PATCH", "/resources/<str:resource_id>"),
    ("DELETE", "/resources/<str:resource_id>"),
    ("DELETE", "/sessions/<path:session_id>"),
    ("DELETE", "/sessions/<path:session_id>/restore"),
    ("POST", "/sessions/<path:session_id>/restore"),
    ("PUT", "/users/me/expiry"),
    ("PUT", "/api/v1/memories/user"),
    ("PATCH", "/api/v1/memories/user"),
    ("PUT", "/api/v1/memories/work"),
    ("PATCH", "/api/v1/memories/work"),
    ("POST", "/api/v1/memories/<str:kind>/restore/<int:version>"),
}
# OpenClaw's contract has no preconditions.
EXEMPT = {("POST", "/tools/invoke")}
CHANGES = [(method, route) for method, route in API_CALLS if method != "GET" and (method, route.pattern) not in EXEMPT]
HEADERS = ("If-Match", "If-None-Match")
BODIES: dict[str, dict[str, Any]] = {
    "/memories": {"text": "x"},
    "/memories/<path:memory_id>": {"override_text": "x"},
    "/resources/<str:resource_id>": {"tags": []},
    "/users/me/expiry": {"days": {}},
    "/api/v1/memories/user": {"content": {}},
    "/api/v1/memories/work": {"content": {}},
}


def send(person: Person, method: str, route: Route, **headers: str) -> Any:
    address = route.address.replace("<str:kind>", "user")
    body = BODIES.get(route.pattern, {}) if method != "DELETE" else {}
    return getattr(person.client, method.lower())(address, body, "application/json", headers=headers)


@pytest.mark.django_db
@pytest.mark.parametrize("header", HEADERS)
@pytest.mark.parametrize(("method", "route"), CHANGES, ids=call_id)
def test_a_change_reads_the_header_or_refuses_it(alice: Person, method: str, route: Route, header: str) -> None:
    for value in ("nonsense", "", '"a" "b"', '*, "a"', 'w/"a"'):
        refused = send(alice, method, route, **{header: value})
        assert (refused.status_code, refused.json()["errors"][0]["field"]) == (400, header)
    answer = send(alice, method, route, **{header: '"other"'})
    refused = answer.status_code == 400 and answer.json()["errors"][0]["field"] == header
    assert refused is ((method, route.pattern) not in HONORED)


@pytest.mark.django_db
@pytest.mark.parametrize(("method", "route"), CHANGES, ids=call_id)
def test_a_change_does_not_ignore_a_date(alice: Person, method: str, route: Route) -> None:
    refused = send(alice, method, route, **{"If-Unmodified-Since": "Thu, 01 Jan 2026 00:00:00 GMT"})
    assert (refused.status_code, refused.json()["errors"][0]["field"]) == (400, "If-Unmodified-Since")


def test_the_document_names_the_headers_where_they_are_honored() -> None:
    named = set()
    for method, path in operations():
        operation = schema()["paths"][path][method]
        names = {one["name"] for one in map(resolved, operation.get("parameters", []))}
        if names.intersection(HEADERS):
            assert names.issuperset(HEADERS), path
            assert "412" in operation["responses"], path
            assert method != "get" or "304" in operation["responses"], path
            named.add((method.upper(), path))
    written = {(method, re.sub(r"<\w+:(\w+)>", r"{\1}", pattern)) for method, pattern in HONORED}
    written.remove(("DELETE", "/sessions/{session_id}/restore"))  # a session id that ends like the other address
    assert {one for one in named if one[0] != "GET"} == written
