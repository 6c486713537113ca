"""The schema is the truth: valid, complete, and what the gateway really does."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from copy import deepcopy
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
import schemathesis
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.wsgi import get_wsgi_application
from drf_spectacular.validation import validate_schema
from hypothesis import HealthCheck, Phase, assume, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis.config import ChecksConfig, GenerationConfig, ProjectConfig, ProjectsConfig, SchemathesisConfig
from schemathesis.config._checks import (
    NEGATIVE_DATA_REJECTION_EXPECTED_STATUSES,
    POSITIVE_DATA_ACCEPTANCE_EXPECTED_STATUSES,
    NegativeDataRejectionConfig,
    PositiveDataAcceptanceConfig,
)
from schemathesis.core import NotSet
from schemathesis.core.parameters import ParameterLocation
from schemathesis.generation.modes import GenerationMode

from memories.services.hygiene import is_visible
from store import filters
from tests.conftest import Person
from tests.openapi import operations, resolved, schema
from webhooks.models import Webhook

DOCUMENTED = {
    ("post", "/users"),
    ("patch", "/users"),
    ("delete", "/users/{user_id}"),
    ("get", "/users/me/controls"),
    ("put", "/users/me/controls"),
    ("get", "/users/me/keys"),
    ("post", "/users/me/keys"),
    ("post", "/users/me/keys/rotate"),
    ("delete", "/users/me/keys/{key_id}"),
    ("post", "/resources"),
    ("post", "/resources/external"),
    ("get", "/resources"),
    ("get", "/resources/{resource_id}"),
    ("get", "/resources/{resource_id}/content"),
    ("patch", "/resources/{resource_id}"),
    ("delete", "/resources/{resource_id}"),
    ("post", "/resources/{resource_id}/restore"),
    ("post", "/memories/add"),
    ("post", "/memories/flush"),
    ("post", "/memories/search"),
    ("get", "/memories"),
    ("post", "/memories"),
    ("post", "/memories/bulk"),
    ("get", "/memories/{memory_id}"),
    ("patch", "/memories/{memory_id}"),
    ("delete", "/memories/{memory_id}"),
    ("post", "/memories/{memory_id}/restore"),
    ("delete", "/memories/{memory_id}/override"),
    ("get", "/memories/trash"),
    ("get", "/api/v1/memories/"),
    ("get", "/api/v1/memories/user"),
    ("put", "/api/v1/memories/user"),
    ("patch", "/api/v1/memories/user"),
    ("get", "/api/v1/memories/work"),
    ("put", "/api/v1/memories/work"),
    ("patch", "/api/v1/memories/work"),
    ("get", "/api/v1/memories/prompt"),
    ("get", "/api/v1/memories/schema/{kind}"),
    ("get", "/api/v1/memories/{kind}/history"),
    ("get", "/api/v1/memories/{kind}/history/{version}"),
    ("post", "/api/v1/memories/{kind}/restore/{version}"),
    ("get", "/sessions"),
    ("get", "/sessions/{session_id}"),
    ("delete", "/sessions/{session_id}"),
    ("post", "/sessions/{session_id}/restore"),
    ("post", "/tools/invoke"),
    ("get", "/webhooks"),
    ("post", "/webhooks"),
    ("get", "/webhooks/{webhook_id}"),
    ("patch", "/webhooks/{webhook_id}"),
    ("delete", "/webhooks/{webhook_id}"),
    ("post", "/webhooks/{webhook_id}/rotate-secret"),
    ("post", "/webhooks/{webhook_id}/test"),
    ("get", "/webhooks/{webhook_id}/deliveries"),
}
# A form has no types to get wrong: everything is text. OpenClaw's tools take nearly everything that a model writes, and
# messages more than one dialect.
LENIENT = {
    ("post", "/resources"),
    ("post", "/tools/invoke"),
    ("post", "/memories/add"),
    ("post", "/memories/bulk"),  # each fact has its own result
}
# Any ETag is well-formed, and no random one is the present one; too long a text may be too much altogether.
CHECKS = ChecksConfig(
    positive_data_acceptance=PositiveDataAcceptanceConfig(
        expected_statuses=[*POSITIVE_DATA_ACCEPTANCE_EXPECTED_STATUSES, "412", "416"]
    ),
    negative_data_rejection=NegativeDataRejectionConfig(
        expected_statuses=[*NEGATIVE_DATA_REJECTION_EXPECTED_STATUSES, "412", "413", "416"]
    ),
)
GENERATION = GenerationConfig(allow_x00=False, with_security_parameters=False)
# Keys end here, so the smoke would lock itself out; the isolation walk and their own tests exercise them.
ENDING_KEYS = {
    ("post", "/users/me/keys/rotate"),
    ("delete", "/users/me/keys/{key_id}"),
    ("delete", "/users"),
    ("delete", "/users/{user_id}"),
}


def test_the_schema_is_valid_openapi_3_1() -> None:
    assert schema()["openapi"].startswith("3.1")
    validate_schema(schema())  # type: ignore[no-untyped-call]


def test_every_documented_endpoint_is_in_the_schema() -> None:
    assert operations() >= DOCUMENTED


def test_every_operation_has_a_separate_summary_an_id_and_an_error_shape() -> None:
    ids: Counter[str] = Counter()
    for method, path in operations():
        operation = schema()["paths"][path][method]
        ids[operation["operationId"]] += 1
        assert operation.get("summary"), (method, path)
        refusals = [resolved(answer) for status, answer in operation["responses"].items() if int(status) >= 400]
        media_type = "application/json" if path == "/tools/invoke" else "application/problem+json"
        assert all(media_type in answer["content"] for answer in refusals), (method, path)
    assert set(ids.values()) == {1}


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_the_gateway_does_what_its_schema_says(alice: Person, storage: Path) -> None:
    require_many(conform(alice, examples=7), cases=300)


@pytest.mark.torture
@pytest.mark.django_db(transaction=True)
def test_the_gateway_does_what_its_schema_says_in_five_thousand_cases(alice: Person, storage: Path) -> None:
    require_many(conform(alice, examples=115), cases=5000)


def require_many(statuses: Counter[int], cases: int) -> None:
    """So many were sent, and half of them went well: requests refused early show little."""
    assert statuses.total() >= cases, statuses
    went_well = sum(count for status, count in statuses.items() if 200 <= status < 300)
    assert went_well >= statuses.total() / 2, statuses


def conform(person: Person, examples: int) -> Counter[int]:
    """Sends random good and bad requests with a valid key to every operation, all checks on. Returns the statuses."""
    statuses: Counter[int] = Counter()
    loaded = schemathesis.openapi.from_dict(
        deepcopy(schema()),  # `_fit` changes examples, which other tests read
        config=SchemathesisConfig(projects=ProjectsConfig(default=ProjectConfig(generation=GENERATION, checks=CHECKS))),
    )
    loaded.app = _closing(get_wsgi_application())
    for result in loaded.get_all_operations():
        operation = result.ok()
        if _name(operation) in ENDING_KEYS:
            continue
        for mode in GenerationMode:
            if mode.is_negative and _name(operation) in LENIENT:
                continue
            _exercise(operation, mode, person, examples if mode.is_positive else examples // 2, statuses)
    return statuses


def _closing(application: Any) -> Callable[..., list[bytes]]:
    """As a server does, and the test client of the checks does not: reads the answer whole and closes it."""

    def closing(environ: Any, start_response: Any) -> list[bytes]:
        answer = application(environ, start_response)
        try:
            return [b"".join(answer)]
        finally:
            answer.close()

    return closing


def _name(operation: Any) -> tuple[str, str]:
    return operation.method.lower(), operation.path


def _exercise(operation: Any, mode: GenerationMode, person: Person, examples: int, statuses: Counter[int]) -> None:
    @settings(
        max_examples=examples,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy(mode, path_parameters=_seeded(operation, person)))
    def exercise(case: Any) -> None:
        if mode.is_positive:
            _fit(case)
        else:
            assume(_is_wrong(case))
        # The client of WSGI applications does not decompress.
        headers = {"Authorization": f"Bearer {person.user_key}", "Accept-Encoding": "identity"}
        response = case.call_and_validate(headers=headers)
        statuses[response.status_code] += 1

    if mode.is_positive:
        exercise()
    else:
        with suppress(Unsatisfiable):  # without parameters and body nothing can be wrong
            exercise()


def _is_wrong(case: Any) -> bool:
    """Return False if the seeds replaced what was wrong in the path, or the random bytes are none: an absent body."""
    wrong = {place for place, part in case.meta.components.items() if part.mode.is_negative}
    has_body = not isinstance(case.body, NotSet) and case.body != b""
    return bool(wrong - {ParameterLocation.PATH, *([] if has_body else [ParameterLocation.BODY])})


def _as_tags(days: dict[str, Any]) -> dict[str, Any]:
    return {f"tag:t{name.encode().hex()[:32]}": value for name, value in days.items()}


# Only the answer to a dry run says the count to expect, a deletion needs a condition, and categories are few.
BODIES: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "/memories/delete": lambda _: {"filters": {"category": "user_memory_fact"}, "dry_run": True},
    "/memories/forget": lambda _: {"words": "payment", "dry_run": True},
    "/resources": lambda body: {name: text for name, text in LABELS.items() if name in body},
    "/users/me/expiry": lambda body: {"days": _as_tags(body["days"])},
    "/browser-keys": lambda _: {"user_id": "alice"},
}


def _fit(case: Any) -> None:
    """Facts that no schema can say: which credentials, keys and cursors exist, where things are, which times are
    future, which methods need endpoints, which signs can be printed, how deep filters nest, and who may speak."""
    if case.operation.path == "/users":
        # No pattern says which characters Unicode has assigned, and which can be seen.
        object.__setattr__(case, "body", {**case.body, "user_id": case.body["user_id"].encode().hex()[:64]})
        return
    if isinstance(case.body, dict) and (fitting := BODIES.get(case.operation.path)):
        object.__setattr__(case, "body", {**case.body, **fitting(case.body)})
    case.headers.pop("If-Match", None)
    if "Idempotency-Key" in case.headers:
        case.headers["Idempotency-Key"] = str(uuid4())
    # Hypothesis draws some bodies again, such as examples: what it drew must not change.
    if isinstance(case.body, dict):
        object.__setattr__(case, "body", deepcopy(case.body))  # `case.body = …` makes it judge the body again
        if isinstance(args := case.body.get("args"), dict) and "text" in args:
            args["text"] = FITTING["text"](args["text"])
    for place in (case.query, case.body):
        if isinstance(place, dict):
            for name in (set(place) & set(FITTING)) - FREE.get(case.operation.path, set()):
                place[name] = FITTING[name](place[name])
                if place[name] is None:
                    del place[name]


def _said_by_alice(message: Any) -> Any:
    """In her own name where a user speaks, and of files that no worker reads."""
    content = message.get("content")
    if isinstance(content, list):
        file = {"type": "image", "base64": "QUJD"}
        content = [item if item.get("type") == "text" and item.get("text") else file for item in content]
    labels = {"tags": ["red"], "metadata": {"source": "crm"}, "expires_at": TOMORROW}
    return {**message, **labels, "content": content, "sender_id": "alice"}


def _without_removals(part: Any) -> Any:
    """No schema says that entries can be removed from lists that are merged, and from no others."""
    if isinstance(part, dict):
        return {name: _without_removals(value) for name, value in part.items() if name != "$remove"}
    return [_without_removals(item) for item in part] if isinstance(part, list) else part


TOMORROW = (datetime.now(UTC) + timedelta(days=1)).isoformat()
FACT = {"tags": "red", "metadata": {"source": "crm"}, "external_id": "crm-1", "expires_at": TOMORROW}
LABELS = {"tags": '["red"]', "metadata": '{"source": "crm"}'}
FREE = {
    "/resources": set(LABELS),
    "/browser-keys": {"user_id"},
    "/memories/add": {"session_id"},
    "/memories/flush": {"session_id"},
}
FITTING: dict[str, Callable[[Any], Any]] = {
    "user_id": lambda _: None,
    "user_key": lambda _: None,
    "sender_id": lambda _: "bob",
    "frame_origin": lambda _: None,
    "cursor": lambda _: None,
    "expires_at": lambda _: TOMORROW,
    "expires_in": lambda _: None,  # not beside `expires_at`, nor without `scopes`
    "as_of": lambda text: text and "today",
    "method": lambda method: method if method in {"keyword", "hybrid"} else None,
    "label": lambda label: "".join(filter(str.isprintable, label)),
    "filters": lambda tree: tree if isinstance(tree, dict) and _depth(tree) <= filters.MAX_DEPTH else None,
    "text": lambda text: text if isinstance(text, str) and is_visible(text) else "payment",
    "external_id": lambda name: name if isinstance(name, str) and name.strip() else None,
    "tags": lambda _: ["red"],
    "metadata": lambda _: {"source": "crm"},
    "memories": lambda _: [{"text": "payment"}],
    "created_at": lambda _: None,
    "file": lambda _: b"payment",
    "query": lambda query: query if len(query) % 2 else "payment",
    "session_id": lambda _: None,
    "messages": lambda messages: [_said_by_alice(message) for message in messages],
    "participants": lambda people: [{**one, "id": one["id"].encode().hex()[:64]} for one in people or []],
    "args": lambda args: {**args, **{name: value for name, value in FACT.items() if name in args}},
    "app_id": lambda _: None,
    "project_id": lambda _: None,
    "source_uri": lambda _: "minio://bucket/contract.txt",
    "ingest_uri": lambda _: None,
    "mime_type": lambda _: None,
    "filename": lambda _: "contract.txt",
    "content": _without_removals,
    "url": lambda _: "https://hooks.example.com/memory",
    "agentId": lambda _: None,
    "sessionKey": lambda _: None,
}


def _depth(tree: Any) -> int:
    denied = (tree or {}).get("NOT", [])
    parts = [
        *(tree or {}).get("AND", []),
        *(tree or {}).get("OR", []),
        *([denied] if isinstance(denied, dict) else denied),
    ]
    return 1 + max(map(_depth, parts), default=0)


def _seeded_profile(path: str, person: Person) -> dict[str, str]:
    """A document that has a first version."""
    person.client.patch("/api/v1/memories/user", {"content": {"occupation": "architect"}}, "application/json")
    seeds = {"kind": "user", "version": "1"}
    return {name: value for name, value in seeds.items() if f"{{{name}}}" in path}


def _seeded(operation: Any, person: Person) -> dict[str, str] | None:
    """The id of something that is really there, in the state that the operation speaks of."""
    if "{" not in operation.path:
        return None
    if operation.path.startswith("/api/v1/memories/"):
        return _seeded_profile(operation.path, person)
    if operation.path.startswith("/memories/delete/"):
        body = {"filters": {"category": "user_memory_fact"}, "dry_run": True}
        count = person.client.post("/memories/delete", body, "application/json").json()["count"]
        body |= {"dry_run": False, "expected_count": count}
        return {"deletion_id": person.client.post("/memories/delete", body, "application/json").json()["deletion_id"]}
    if operation.path.startswith("/webhooks/"):
        Webhook.objects.all().delete()
        body = {"url": "https://hooks.example.com/memory"}
        return {"webhook_id": person.client.post("/webhooks", body, "application/json").json()["webhook_id"]}
    file = SimpleUploadedFile("contract.txt", f"payment {uuid4()}".encode(), "text/plain")
    resource = person.client.post("/resources", {"file": file}).json()
    session_id = resource["session_id"]
    (memory,) = person.client.get("/memories", {"session_id": session_id}).json()["memories"]
    if operation.path.endswith("/restore"):
        person.client.delete(f"/memories/{memory['id']}")
        person.client.delete(f"/sessions/{session_id}")
    if operation.path.endswith("/override"):
        person.client.patch(f"/memories/{memory['id']}", {"override_text": "x"}, "application/json")
    seeds = {"resource_id": resource["resource_id"], "memory_id": memory["id"], "session_id": session_id}
    return {name: value for name, value in seeds.items() if f"{{{name}}}" in operation.path}
