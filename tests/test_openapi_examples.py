"""Every example of the OpenAPI document is sent to a running gateway, which answers as the document shows."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import requests
from django.db import connection

from tests.openapi import operations, schema
from tests.server import RunningServer, running_server

# In an order in which each finds what the ones before it made.
ORDER = re.findall(
    r"\w+",
    """
    health create_user describe_user issue_key list_keys revoke_key rotate_key create_portal_link create_browser_key
    register_resource upload_resource label_resource list_resources get_resource get_resource_content
    add_messages flush_session list_sessions get_session search_memories make_context list_memories
    delete_memory list_trash restore_memory get_memory override_memory undo_override
    delete_session restore_session delete_memories_of_sender
    put_user_memory put_work_memory get_user_memory get_work_memory get_profiles get_profile_schema get_profile_prompt
    list_profile_history get_profile_version patch_user_memory patch_work_memory restore_profile
    create_webhook list_webhooks get_webhook change_webhook rotate_webhook_secret test_webhook
    list_webhook_deliveries delete_webhook
    store_memory store_memories
    delete_memories forget_memories get_deletion undo_deletion export_user list_audit_events
    put_expiry get_expiry
    invoke_tool tighten_controls get_controls delete_resource restore_resource erase_user_by_id erase_user
    """,
)
OPERATIONS = {schema()["paths"][path][method]["operationId"]: (method, path) for method, path in sorted(operations())}
# What the gateway makes: keys, ids and times.
MADE = re.compile(
    r"uk_[A-Za-z0-9_-]{43}|whsec_[A-Za-z0-9+/]{43}=|(?:[rto]|msg)_[0-9a-f]{32}|[0-9a-f]{8}-[0-9a-f-]{27}|[0-9a-f]{64}|[0-9a-f]{32}"
    r"|\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00|https?://[^/]+/portal/open/upl_[A-Za-z0-9_-]+"
)
# What depends on the machine, the engine or the order above.
VARIES = {"bytes", "count", "data", "estimated_tokens", "internal_uri", "legs", "ms", "prefix", "prompt", "raw"}
VARIES |= {"removed", "event_id", "score", "relevance", "timestamp_ms"}
VARIES |= {"attempts", "error", "last_tried_at", "sequence"}  # the worker may have tried a delivery already
VARIES |= {"signature"}  # by the key of this gateway
if connection.vendor == "postgresql":
    VARIES |= {"residue"}  # the example is SQLite's


def contents(operation: dict[str, Any], status: str) -> dict[str, Any]:
    """The media type of a response; a file's second one, `*/*`, has the same example."""
    content, *others = operation["responses"][status]["content"].values()
    assert others in ([], [content])
    return dict(content)


def validate(value: Any, content: dict[str, Any]) -> None:
    validator = jsonschema.Draft202012Validator(
        {**content["schema"], "components": schema()["components"]},
        format_checker=jsonschema.Draft202012Validator.FORMAT_CHECKER,
    )
    validator.validate(value)


def example(content: dict[str, Any]) -> Any:
    return content["examples"]["Example"]["value"]


def differences(shown: Any, real: Any, place: str = "") -> Iterator[str]:
    """Yield the places where a real answer lacks what the example shows, apart from generated values."""
    if isinstance(shown, dict) and isinstance(real, dict):
        for name in shown.keys() - VARIES:
            yield from differences(shown[name], real[name], f"{place}.{name}") if name in real else [f"{place}.{name}"]
    elif isinstance(shown, list) and isinstance(real, list) and shown:
        yield from differences(shown[0], real[0], f"{place}[]") if real else [f"{place}[]"]
    elif MADE.sub("", json.dumps(shown)) != MADE.sub("", json.dumps(real)):
        yield f"{place}: {shown!r} is {real!r}"


class Client:
    """Sends examples, with what the gateway made in the place of what they name."""

    def __init__(self, server: RunningServer, **substitutes: str) -> None:
        self.server = server
        self.substitutes = substitutes
        self.key = ""

    def real(self, value: Any) -> Any:
        text = json.dumps(value)
        for shown, real in self.substitutes.items():
            text = text.replace(shown, real)
        return json.loads(text)

    def send(self, name: str) -> requests.Response:
        method, path = OPERATIONS[name]
        operation = schema()["paths"][path][method]
        query = {}
        for parameter in operation.get("parameters", ()):
            for value in parameter["schema"].get("examples", ())[:1]:
                if parameter["in"] == "path":
                    path = path.replace(f"{{{parameter['name']}}}", str(self.real(value)))
                else:
                    query[parameter["name"]] = self.real(value)
        [(media_type, content)] = operation.get("requestBody", {"content": {"": None}})["content"].items()
        body = self.real(example(content)) if content else None
        if content:
            validate(body, content)
        form = media_type == "multipart/form-data"
        return requests.request(
            method,
            f"{self.server.url}{path}",
            params=query,
            headers={"Authorization": f"Bearer {self._key_for(name)}"} if self.key else {},
            json=None if form else body,
            data={name: value for name, value in body.items() if name != "file"} if form else None,
            files={"file": ("contract.txt", body["file"], "text/plain")} if form else None,
            timeout=30,
        )

    def _key_for(self, name: str) -> str:
        """Return the user's key; for controls one with their scope, which no key has by default."""
        if not name.endswith("_controls"):
            return self.key
        made = requests.post(
            f"{self.server.url}/users/me/keys",
            json={"label": name, "scopes": ["controls"]},
            headers={"Authorization": f"Bearer {self.key}"},
            timeout=30,
        )
        return str(made.json()["user_key"])

    def learn(self, shown: Any, real: Any) -> None:
        """Remember what the gateway made for what the example shows."""
        if isinstance(shown, dict) and isinstance(real, dict):
            for name in shown.keys() & real.keys():
                self.learn(shown[name], real[name])
        elif isinstance(shown, list) and isinstance(real, list):
            self.learn(dict(enumerate(shown)), dict(enumerate(real)))
        elif isinstance(shown, str) and isinstance(real, str):
            self.substitutes |= zip(MADE.findall(shown), MADE.findall(real), strict=False)


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    folder: Path = tmp_path_factory.mktemp("files")
    (folder / "delivery.txt").write_text("The delivery takes two weeks.", encoding="utf-8")
    with running_server(tmp_path_factory.mktemp("server"), MEMORY_GATEWAY_FILE_URI_ROOTS=str(folder)) as server:
        yield Client(server, **{"https://files.example.com/u_123": folder.as_uri()})


def test_the_order_names_every_operation_once() -> None:
    assert sorted(ORDER) == sorted(OPERATIONS)


@pytest.mark.parametrize("name", OPERATIONS)
def test_the_examples_of_responses_fit_their_schemas(name: str) -> None:
    method, path = OPERATIONS[name]
    for response in schema()["paths"][path][method]["responses"].values():
        for content in response.get("content", {}).values():
            validate(example(content), content)


def delete(client: Client) -> Any:
    """Delete the stored facts with the tag of the example by a filter; return the answer."""
    for fields in ({"dry_run": True}, {"expected_count": 1}):
        answer = requests.post(
            f"{client.server.url}/memories/delete",
            json={"filters": {"tags": ["style"]}, **fields},
            headers={"Authorization": f"Bearer {client.key}"},
            timeout=30,
        )
    return answer.json()


def test_the_gateway_answers_each_example_as_the_document_shows(client: Client) -> None:
    for name in ORDER:
        if name == "get_deletion":
            client.learn(
                example(contents(schema()["paths"]["/memories/delete/{deletion_id}"]["get"], "200")), delete(client)
            )
        answer = client.send(name)
        method, path = OPERATIONS[name]
        status = "201" if "201" in schema()["paths"][path][method]["responses"] else "200"
        assert str(answer.status_code) == status, (name, answer.text)
        content = contents(schema()["paths"][path][method], status)
        if name == "export_user":
            assert answer.content.startswith(example(content).encode())
            continue
        if "json" not in answer.headers["Content-Type"]:
            assert answer.text == example(content)
            continue
        validate(answer.json(), content)
        shown = example(content)
        if name == "make_context":
            shown["text"] = answer.json()["text"]  # it holds all that the steps before have stored
        if name == "list_audit_events":
            shown["next_cursor"] = answer.json()["next_cursor"]  # the steps before have written many events
        assert list(differences(shown, answer.json())) == [], (name, answer.text, client.server.log[-3000:])
        client.learn(example(content), answer.json())
        client.key = answer.json().get("user_key", client.key) if name in {"create_user", "rotate_key"} else client.key
        if name == "erase_user_by_id":
            client.key = client.send("create_user").json()["user_key"]
