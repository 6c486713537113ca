"""The TypeScript client: its contract with the OpenAPI document, in Node, in Chromium, its types and its package."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import tarfile
import threading
import tomllib
from collections.abc import Iterator
from functools import cache, partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.browser import chromium, open_page
from tests.forked import PROJECT
from tests.node import installed
from tests.openapi import operations, resolved, schema
from tests.server import RunningServer, running_server

CLIENT = PROJECT / "clients" / "typescript"
README = (CLIENT / "README.md").read_text(encoding="utf-8")
EXAMPLE = re.search(r"```js\n(.*?)```", README, re.DOTALL)
pytestmark = pytest.mark.skipif(shutil.which("node") is None, reason="needs Node")

MESSAGE = {"sender_id": "u", "role": "user", "content": "Hi"}
REST = "(the other fields)"
# Each operation: the method of the client and its arguments. `REST` is an object with every other field.
OPERATIONS: dict[str, tuple[str, list[Any]]] = {
    "add_messages": ("sessions.add", ["x", [MESSAGE], REST]),
    "change_webhook": ("webhooks.update", ["x", REST]),
    "override_memory": ("memories.update", ["x", REST]),
    "create_browser_key": ("users.browserKey", ["x", REST]),
    "create_portal_link": ("users.portalLink", [REST]),
    "create_user": ("users.create", ["x", {}]),
    "describe_user": ("users.describe", ["x", REST]),
    "create_webhook": ("webhooks.create", ["x", REST]),
    "store_memory": ("memories.store", ["x", REST]),
    "store_memories": ("memories.storeMany", [[{"text": "x"}]]),
    "delete_memories_of_sender": ("memories.deleteOfSender", ["x", REST]),
    "forget_memories": ("memories.forget", ["green tea", REST]),
    "delete_memories": ("memories.deleteMany", [{"tags": ["x"]}, REST]),
    "get_deletion": ("memories.deletion", ["x"]),
    "undo_deletion": ("memories.undoDeletion", ["x"]),
    "export_user": ("users.export", []),
    "list_audit_events": ("users.audit", [REST]),
    "get_controls": ("users.controls", []),
    "tighten_controls": ("users.tightenControls", [REST]),
    "delete_memory": ("memories.delete", ["x", REST]),
    "delete_resource": ("resources.delete", ["x", REST]),
    "label_resource": ("resources.update", ["x", REST]),
    "delete_session": ("sessions.delete", ["x", REST]),
    "delete_webhook": ("webhooks.delete", ["x"]),
    "erase_user_by_id": ("users.erase", ["x", {"confirm": "erase:x"}]),
    "flush_session": ("sessions.flush", ["x", REST]),
    "get_memory": ("memories.get", ["x", {"as_of": "2026-01-02", "session_id": "chat:c1"}]),
    "get_profile_prompt": ("profiles.prompt", ["router", REST]),
    "get_profile_schema": ("profiles.schema", ["user"]),
    "get_profile_version": ("profiles.version", ["user", 1]),
    "get_expiry": ("users.expiry", []),
    "put_expiry": ("users.setExpiry", [{"tag:draft": 7}, REST]),
    "get_profiles": ("profiles.getBoth", []),
    "get_resource": ("resources.get", ["x"]),
    "get_resource_content": ("resources.content", ["x"]),
    "get_session": ("sessions.get", ["x"]),
    "get_user_memory": ("profiles.get", ["user"]),
    "get_webhook": ("webhooks.get", ["x"]),
    "get_work_memory": ("profiles.get", ["work"]),
    "health": ("health", []),
    "issue_key": ("keys.create", [REST]),
    "list_keys": ("keys.list", []),
    "list_memories": ("memories.list", [REST]),
    "list_profile_history": ("profiles.history", ["user"]),
    "list_resources": ("resources.list", [REST]),
    "list_sessions": ("sessions.list", [REST]),
    "list_trash": ("memories.trash", [REST]),
    "list_webhook_deliveries": ("webhooks.deliveries", ["x", REST]),
    "list_webhooks": ("webhooks.list", []),
    "patch_user_memory": ("profiles.update", ["user", {}, REST]),
    "patch_work_memory": ("profiles.update", ["work", {}, REST]),
    "put_user_memory": ("profiles.replace", ["user", {}, REST]),
    "put_work_memory": ("profiles.replace", ["work", {}, REST]),
    "register_resource": ("resources.register", ["x", "x", REST]),
    "restore_memory": ("memories.restore", ["x", REST]),
    "restore_profile": ("profiles.restore", ["user", 1, REST]),
    "restore_resource": ("resources.restore", ["x", REST]),
    "restore_session": ("sessions.restore", ["x", REST]),
    "revoke_key": ("keys.revoke", ["x"]),
    "rotate_key": ("keys.rotate", [REST]),
    "rotate_webhook_secret": ("webhooks.rotateSecret", ["x", REST]),
    "make_context": ("memories.context", [REST]),
    "search_memories": ("memories.search", ["x", REST]),
    "test_webhook": ("webhooks.test", ["x"]),
    "undo_override": ("memories.undoUpdate", ["x", REST]),
    "upload_resource": ("resources.upload", ["(file)", REST]),
}
# Agents call it in OpenClaw's way, with errors in another shape.
OF_OPENCLAW = {"invoke_tool"}
# Their paths hold an id, which may have a slash.
REPLACED = {"erase_user"}
# The bearer names the caller. A page's cursor and the bounds of a download are the client's own work.
NOT_SENT = {"user_id", "user_key", "cursor", "before", "If-None-Match", "If-Range", "Range"}
READING = NOT_SENT | {"If-Match"}
NOT_SENT_BY = {
    "erase_user_by_id": {"user_key"},
    "create_browser_key": {"user_key"},
    "create_portal_link": {"user_key"},
    "create_user": set[str](),
    "describe_user": set[str](),
    "get_expiry": READING,
    "get_profiles": READING,
    "get_memory": READING,
    "get_resource": READING,
    "get_resource_content": READING,
    "get_session": READING,
    "get_user_memory": READING,
    "get_work_memory": READING,
}
OWN = {"app_id", "project_id", "limit", "Prefer", "Idempotency-Key"}


def fields(operation: dict[str, Any]) -> set[tuple[str, str]]:
    """The place and name of each value that an operation takes."""
    found = {(one["in"], one["name"]) for one in map(resolved, operation.get("parameters", [])) if one["in"] != "path"}
    for content in resolved(operation.get("requestBody", {})).get("content", {}).values():
        found |= {("body", name) for name in resolved(content["schema"])["properties"]}
    return found


@cache
def described() -> dict[str, tuple[str, str, dict[str, Any]]]:
    """Every operation of the document by its id: method, path and description."""
    found = {}
    for method, path in operations():
        operation = schema()["paths"][path][method]
        found[operation["operationId"]] = (method.upper(), path, operation)
    return found


@cache
def recorded() -> tuple[dict[str, list[dict[str, Any]]], set[str]]:
    """The requests that the methods send for each operation, and the names of all methods."""
    calls = []
    for operation_id, (method, arguments) in OPERATIONS.items():
        names = {name for _, name in fields(described()[operation_id][2])}
        own = OWN - {"app_id"} if operation_id == "issue_key" else OWN  # there it is that of the new key
        rest: dict[str, Any] = dict.fromkeys(
            sorted(names - NOT_SENT_BY.get(operation_id, NOT_SENT) - own - {"If-Match"}), "x"
        )
        rest |= {"if_match": "x"} if "If-Match" in names else {}
        rest |= {"wait": False} if "Prefer" in names else {}
        given = [rest if one == REST else one for one in arguments]
        calls.append([method, given])
    command = ["node", "tests/record.js"]
    done = subprocess.run(
        command, cwd=CLIENT, input=json.dumps(calls), capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    return dict(zip(OPERATIONS, answer["requests"], strict=True)), set(answer["methods"])


def test_every_operation_has_a_method() -> None:
    assert set(OPERATIONS) | OF_OPENCLAW | REPLACED == set(described())
    assert {method for method, _ in OPERATIONS.values()} == recorded()[1] | {"health"}


@pytest.mark.parametrize("operation_id", sorted(OPERATIONS))
def test_a_method_sends_every_field_of_its_operation(operation_id: str) -> None:
    method, path, operation = described()[operation_id]
    [sent] = recorded()[0][operation_id]
    assert sent["method"] == method
    assert re.fullmatch(re.sub(r"\{\w+\}", "[^/]+", path), sent["path"])
    names = {("query", name) for name in sent["query"]} | {("body", name) for name in sent["body"]}
    names |= {("header", name) for name in sent["headers"] if name not in {"Accept", "Authorization", "Content-Type"}}
    wanted = {one for one in fields(operation) if one[1] not in NOT_SENT_BY.get(operation_id, NOT_SENT)}
    assert names == wanted


def test_the_client_has_the_version_of_the_gateway() -> None:
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert json.loads((CLIENT / "package.json").read_text(encoding="utf-8"))["version"] == project["version"]


def run_node(*arguments: str, cwd: Path = CLIENT, **env: str) -> str:
    command = ["env", *(f"{name}={value}" for name, value in env.items()), "node", *arguments]
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_parts_work() -> None:
    run_node("--test", "tests/client.test.js", "tests/webhooks.test.js")


class Sources(SimpleHTTPRequestHandler):
    """The client's files for a page of another origin than the gateway."""

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Quiet."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    (folder / "src").symlink_to(CLIENT / "src")
    return folder


@pytest.fixture(scope="module")
def page_url(site: Path) -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Sources, directory=str(site))) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, page_url: str) -> Iterator[RunningServer]:
    folder = tmp_path_factory.mktemp("typescript")
    with running_server(folder, MEMORY_GATEWAY_ALLOWED_ORIGINS=page_url) as started:
        yield started


def test_it_works_from_node(server: RunningServer) -> None:
    run_node("--test", "tests/live.js", MEMORY_GATEWAY_BASE_URL=server.url)


def example(server: RunningServer, user_id: str) -> tuple[str, list[str]]:
    """The first example of the README for a server, and what its comments say that it prints."""
    assert EXAMPLE is not None
    code = EXAMPLE[1].replace("http://127.0.0.1:8010", server.url).replace('"ann"', f'"{user_id}"')
    return code, re.findall(r"console\.log\(.*?\); // (.*)", code)


def test_the_example_works(server: RunningServer, tmp_path: Path) -> None:
    code, printed = example(server, "bea")
    package = tmp_path / "node_modules" / "@memory-gateway" / "client"
    package.parent.mkdir(parents=True)
    package.symlink_to(CLIENT)
    script = tmp_path / "example.mjs"
    script.write_text(code, encoding="utf-8")
    assert run_node("--preserve-symlinks", str(script), cwd=tmp_path).splitlines() == printed
    assert len(printed) == 3


@pytest.mark.browser
def test_it_works_from_a_page_of_an_allowed_origin(server: RunningServer, site: Path, page_url: str) -> None:
    code, printed = example(server, "cleo")
    import_map = json.dumps({"imports": {"@memory-gateway/client": f"{page_url}/src/index.js"}})
    refused = 'await new Client("' + server.url + '", "uk_no").keys.list().catch((error) => console.log(error.name));'
    conflict = (
        'const { etag } = await client.profiles.get("user");'
        'await client.profiles.update("user", { occupation: "a" }, { if_match: etag });'
        'await client.profiles.update("user", {}, { if_match: etag }).catch((error) => console.log(error.name));'
    )
    script = f"{code}{refused}{conflict}window.isDone = true;"
    html = f"<script type=importmap>{import_map}</script><script type=module>{script}</script>"
    (site / "page.html").write_text(html, encoding="utf-8")
    said: list[str] = []
    with chromium() as browser, open_page(browser) as (page, _):
        page.on("console", lambda message: said.append(message.text) if message.type == "log" else None)
        page.goto(f"{page_url}/page.html")
        page.wait_for_function("window.isDone", timeout=20_000)
    assert said == [*printed, "Unauthenticated", "PreconditionFailed"]


# --- with packages of npm --------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the client beside its development packages."""
    folder = tmp_path_factory.mktemp("package") / "client"
    shutil.copytree(CLIENT, folder, ignore=shutil.ignore_patterns("node_modules", "types", "*.py", "__pycache__"))
    (folder / "node_modules").symlink_to(installed(CLIENT) / "node_modules")
    return folder


def run_tool(folder: Path, tool: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [str(folder / "node_modules" / ".bin" / tool), *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120, check=False)


def test_the_types_are_current(package: Path, tmp_path: Path) -> None:
    document, written = tmp_path / "openapi.json", tmp_path / "schema.d.ts"
    document.write_text(json.dumps(schema()), encoding="utf-8")
    script = json.loads((CLIENT / "package.json").read_text(encoding="utf-8"))["scripts"]["generate"].split()
    done = run_tool(package, script[0], str(document), *script[2:-1], str(written))
    assert done.returncode == 0, done.stderr
    assert written.read_text(encoding="utf-8") == (CLIENT / "schema.d.ts").read_text(encoding="utf-8"), (
        "run `make typescript-types`"
    )


@pytest.mark.slow
def test_the_adapter_of_the_ai_sdk(package: Path, server: RunningServer) -> None:
    done = subprocess.run(
        ["node", "--test", "tests/ai-sdk.js"],
        cwd=package, capture_output=True, text=True, timeout=120, check=False,
        env={**os.environ, "MEMORY_GATEWAY_BASE_URL": server.url},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-5000:]


@pytest.mark.slow
def test_the_types_are_strict(package: Path) -> None:
    done = run_tool(package, "tsc")
    assert done.returncode == 0, done.stdout


USE = """
import { Client, NotFound, verifyWebhook, type Schemas } from "@memory-gateway/client";
const client = new Client("http://127.0.0.1:8010", "uk_1");
const { results } = await client.memories.search("tea", { scope: ["all_user_memory"], top_k: 5 });
const text: string = results[0].text;
for await (const memory of client.memories.list({ pageSize: 2 })) { const one: Schemas["MemoryOut"] = memory; }
const event: { sequence: number } = await verifyWebhook("whsec_", new Headers(), text);
// @ts-expect-error no such scope
await client.memories.search("tea", { scope: ["everything"] });
// @ts-expect-error no such field
results[0].unknown;
// @ts-expect-error messages have a role
await client.sessions.add("chat:c_1", [{ content: "Hi" }]);
export const status: number = new NotFound(404, "not_found", "No.").status;
"""


@pytest.mark.slow
def test_the_package_has_what_it_needs_and_resolves(package: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        ["npm", "pack", "--silent", "--pack-destination", str(tmp_path)],
        cwd=package, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    [packed] = tmp_path.glob("*.tgz")
    with tarfile.open(packed) as archive:
        archive.extractall(tmp_path, filter="data")
    unpacked = tmp_path / "package"
    modules = ("ai-sdk", "client", "errors", "index", "transport", "webhooks")
    files = {str(path.relative_to(unpacked)) for path in unpacked.rglob("*") if path.is_file()}
    assert files == {
        "LICENSE", "README.md", "package.json", "schema.d.ts",
        *(f"src/{name}.js" for name in modules), *(f"types/{name}.d.ts" for name in modules),
    }  # fmt: skip
    target = tmp_path / "user" / "node_modules" / "@memory-gateway" / "client"
    target.parent.mkdir(parents=True)
    unpacked.rename(target)
    (tmp_path / "user" / "use.mts").write_text(USE, encoding="utf-8")
    for module, resolution in (("node16", "node16"), ("esnext", "bundler")):
        arguments = ["--noEmit", "--strict", "--target", "es2022", "--module", module, "--moduleResolution", resolution]
        command = [str(package / "node_modules" / ".bin" / "tsc"), *arguments, "use.mts"]
        checked = subprocess.run(
            command, cwd=tmp_path / "user", capture_output=True, text=True, timeout=120, check=False
        )
        assert checked.returncode == 0, checked.stdout
