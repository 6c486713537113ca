"""The client and the gateway's OpenAPI document agree: every operation, every field, every type."""

from __future__ import annotations

import inspect
import re
import tomllib
from datetime import UTC, datetime
from typing import Any, get_args

import pytest
from pydantic import BaseModel

import memory_gateway_client
from memory_gateway_client import Client, models
from memory_gateway_client.calls import Call
from memory_gateway_client.transports import Endpoint, Listing, Streaming
from tests.forked import PROJECT
from tests.openapi import operations, resolved, schema

CLIENT = Client("http://127.0.0.1:8010", app_id="app", project_id="project")

# The models and the schemas that they are written from.
RENAMED: dict[str, str] = tomllib.loads((PROJECT / "clients/python/names.toml").read_text(encoding="utf-8"))["models"]
NAMES = {model: name for name, model in RENAMED.items()}
# A profile is a document and the header ETag.
MODELS: dict[type[BaseModel], str] = {
    model: NAMES.get(name, name)
    for name, model in inspect.getmembers(models, inspect.isclass)
    if issubclass(model, BaseModel) and model not in {models.Model, models.Profile, models.Versioned}
}
# Plain JSON in the client: the gateway describes the documents in `profiles.schema`.
DOCUMENTS = {"UserMemoryContent", "WorkProfileContent"}
# A default in the client, so that callers need not give it.
OPTIONAL = {("MessageIn", "timestamp")}

KIND = {"kind": "user"}
# Each operation: the method of the client, and a value for each of its parameters.
OPERATIONS: dict[str, tuple[str, dict[str, Any]]] = {
    "add_messages": (
        "sessions.add",
        {
            "messages": [{"sender_id": "u", "role": "user", "content": "Hi"}],
            "participants": [{"id": "bob", "name": "Bob"}],
        },
    ),
    "override_memory": ("memories.update", {}),
    "create_browser_key": ("users.browser_key", {}),
    "create_portal_link": ("users.portal_link", {}),
    "create_user": ("users.create", {}),
    "describe_user": ("users.describe", {}),
    "delete_memories_of_sender": ("memories.delete_of_sender", {}),
    "forget_memories": ("memories.forget", {"words": "green tea"}),
    "delete_memories": ("memories.delete_many", {"filters": {"tags": ["x"]}}),
    "get_deletion": ("memories.deletion", {}),
    "undo_deletion": ("memories.undo_deletion", {}),
    "export_user": ("users.export", {}),
    "list_audit_events": ("users.audit", {}),
    "get_controls": ("users.controls", {}),
    "tighten_controls": ("users.tighten_controls", {}),
    "get_expiry": ("users.expiry", {}),
    "put_expiry": ("users.set_expiry", {"days": {"tag:draft": 7}}),
    "delete_memory": ("memories.delete", {}),
    "delete_resource": ("resources.delete", {}),
    "restore_resource": ("resources.restore", {}),
    "label_resource": ("resources.update", {"tags": ["contract"]}),
    "delete_session": ("sessions.delete", {}),
    "erase_user_by_id": ("users.erase", {}),
    "flush_session": ("sessions.flush", {}),
    "get_memory": ("memories.get", {}),
    "get_profile_prompt": ("profiles.prompt", {}),
    "get_profile_schema": ("profiles.schema", KIND),
    "get_profile_version": ("profiles.version", KIND),
    "get_profiles": ("profiles.get_both", {}),
    "get_resource": ("resources.get", {}),
    "get_session": ("sessions.get", {}),
    "get_resource_content": ("resources.content", {}),
    "get_user_memory": ("profiles.get", KIND),
    "get_work_memory": ("profiles.get", {"kind": "work"}),
    "health": ("health", {}),
    "issue_key": ("keys.create", {}),
    "list_keys": ("keys.list", {}),
    "list_memories": ("memories.list", {}),
    "list_profile_history": ("profiles.history", KIND),
    "list_resources": ("resources.list", {}),
    "list_sessions": ("sessions.list", {}),
    "list_trash": ("memories.trash", {}),
    "patch_user_memory": ("profiles.update", KIND),
    "patch_work_memory": ("profiles.update", {"kind": "work"}),
    "put_user_memory": ("profiles.replace", KIND),
    "put_work_memory": ("profiles.replace", {"kind": "work"}),
    "register_resource": ("resources.register", {}),
    "restore_memory": ("memories.restore", {}),
    "restore_profile": ("profiles.restore", KIND),
    "restore_session": ("sessions.restore", {}),
    "revoke_key": ("keys.revoke", {}),
    "rotate_key": ("keys.rotate", {}),
    "make_context": ("memories.context", {}),
    "store_memory": ("memories.store", {}),
    "store_memories": ("memories.store_many", {"memories": [{"text": "Hi"}]}),
    "search_memories": ("memories.search", {}),
    "undo_override": ("memories.undo_update", {}),
    "upload_resource": ("resources.upload", {}),
    "change_webhook": ("webhooks.update", {}),
    "create_webhook": ("webhooks.create", {}),
    "delete_webhook": ("webhooks.delete", {}),
    "get_webhook": ("webhooks.get", {}),
    "list_webhook_deliveries": ("webhooks.deliveries", {}),
    "list_webhooks": ("webhooks.list", {}),
    "rotate_webhook_secret": ("webhooks.rotate_secret", {}),
    "test_webhook": ("webhooks.test", {}),
}
# Agents call it in OpenClaw's way, with errors in another shape.
OF_OPENCLAW = {"invoke_tool"}
# Their paths hold an id, which may have a slash.
REPLACED = {"erase_user"}
# The bearer names the caller. A page's cursor and the bounds of a download are the client's own work.
NOT_SENT = {"user_id", "user_key", "cursor", "before", "If-None-Match", "If-Range", "Range"}
READING = NOT_SENT | {"If-Match"}
NOT_SENT_BY = {
    "create_browser_key": {"user_key"},
    "create_portal_link": {"user_key"},
    "create_user": set[str](),
    "describe_user": set[str](),
    "erase_user_by_id": {"user_key"},
    "get_expiry": READING,
    "get_profiles": READING,
    "get_memory": READING,
    "get_resource": READING,
    "get_resource_content": READING,
    "get_session": READING,
    "get_user_memory": READING,
    "get_work_memory": READING,
}
SAMPLES: dict[str, Any] = {"expires_at": datetime(2030, 1, 1, tzinfo=UTC), "wait": False}


def described() -> dict[str, tuple[str, str, dict[str, Any]]]:
    """Every operation of the document by its id: method, path and description."""
    found = {}
    for method, path in operations():
        operation = schema()["paths"][path][method]
        found[operation["operationId"]] = (method.upper(), path, operation)
    return found


def plain(part: dict[str, Any]) -> Any:
    """A schema as nested types, without texts, limits and defaults."""
    if "$ref" in part:
        name = part["$ref"].rpartition("/")[2]
        return "object" if name in DOCUMENTS else RENAMED.get(name, name)
    if alternatives := part.get("anyOf") if "properties" not in part else None:
        return frozenset(plain(one) for one in alternatives)
    if part.get("type") == "array":
        return ("array", plain(part["items"]))
    if isinstance(part.get("additionalProperties"), dict) and part["additionalProperties"]:
        return ("object", plain(part["additionalProperties"]))
    return part.get("format") if part.get("format") in {"date-time", "uuid"} else part.get("type", "string")


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
def test_a_model_has_the_fields_of_its_schema(model: type[BaseModel]) -> None:
    name = MODELS[model]
    ours, theirs = model.model_json_schema(mode="validation"), schema()["components"]["schemas"][name]
    types = {field: plain(part) for field, part in ours["properties"].items()}
    assert types == {field: plain(part) for field, part in theirs["properties"].items()}
    optional = {field for schema_name, field in OPTIONAL if schema_name == name}
    assert set(ours.get("required", [])) == set(theirs.get("required", [])) - optional


def test_arguments_take_the_values_of_the_document() -> None:
    parts = schema()["components"]["schemas"]
    search = parts["SearchBodyRequest"]["properties"]
    given = {
        models.Category: next(
            one["enum"]
            for one in parts["PatchedOverrideBodyRequest"]["properties"]["category"]["anyOf"]
            if "enum" in one
        ),
        models.ContentType: parts["ContentItemIn"]["properties"]["type"]["enum"],
        models.MemoryType: parts["MemoryOut"]["properties"]["memory_type"]["enum"],
        models.Method: search["method"]["enum"],
        models.Role: parts["MessageIn"]["properties"]["role"]["enum"],
        models.DeliveryStatus: next(
            one["schema"]["enum"]
            for one in described()["list_webhook_deliveries"][2]["parameters"]
            if one["name"] == "status"
        ),
        models.EventType: parts["WebhookBodyRequest"]["properties"]["events"]["items"]["enum"],
        models.Scope: search["scope"]["items"]["enum"],
    }
    assert {kind: set(get_args(kind)) for kind in given} == {kind: set(values) for kind, values in given.items()}


def test_every_operation_has_a_method_of_the_client() -> None:
    assert set(OPERATIONS) | OF_OPENCLAW | REPLACED == set(described())
    bound = {
        f"{prefix}{name}"
        for prefix, group in {"": CLIENT, **{f"{name}.": part for name, part in vars(CLIENT).items()}}.items()
        for name, member in inspect.getmembers_static(type(group))
        if isinstance(member, Endpoint | Listing | Streaming)
    }
    assert {name for name, _ in OPERATIONS.values()} == bound


@pytest.mark.parametrize("operation_id", sorted(OPERATIONS))
def test_a_method_sends_every_field_of_its_operation(operation_id: str) -> None:
    method, path, operation = described()[operation_id]
    call = built(operation_id)
    assert call.method == method
    assert re.fullmatch(re.sub(r"\{\w+\}", "[^/]+", path), call.path)
    wanted = {(one["in"], one["name"]) for one in map(resolved, operation.get("parameters", [])) if one["in"] != "path"}
    for content in resolved(operation.get("requestBody", {})).get("content", {}).values():
        wanted |= {("body", name) for name in resolved(content["schema"])["properties"]}
    sent = {("query", name) for name in call.params} | {("body", name) for name in call.body or {}}
    sent |= {("header", name) for name in call.headers if name != "Authorization"}
    sent |= {("body", "file")} if call.upload else set()
    assert sent == {one for one in wanted if one[1] not in NOT_SENT_BY.get(operation_id, NOT_SENT)}


def built(operation_id: str) -> Call[Any]:
    """The call that the method builds when it gets a value for every parameter."""
    name, arguments = OPERATIONS[operation_id]
    group_name, _, method_name = name.rpartition(".")
    group = getattr(CLIENT, group_name) if group_name else CLIENT
    build = inspect.getattr_static(type(group), method_name)._build
    _, *names = inspect.signature(build).parameters
    call: Call[Any] = build(group, **{name: SAMPLES.get(name, "x") for name in names} | arguments)
    return call


@pytest.mark.parametrize("client", ["python", "typescript"])
def test_the_readme_lists_every_method(client: str) -> None:
    page = (PROJECT / "clients" / client / "README.md").read_text(encoding="utf-8")
    listed = {
        f"{group}.{snake(method)}"
        for group, methods in re.findall(r"^\| `client\.(\w+)` \| (.+) \|$", page, re.MULTILINE)
        for method in re.findall(r"`(\w+)`", methods)
    }
    assert listed == {name for name, _ in OPERATIONS.values() if "." in name}


def snake(name: str) -> str:
    return re.sub("[A-Z]", lambda found: f"_{found[0].lower()}", name)


def test_the_client_has_the_version_of_the_gateway() -> None:
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert memory_gateway_client.__version__ == project["version"]
