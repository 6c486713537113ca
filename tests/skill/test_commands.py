"""The commands against the OpenAPI document: every endpoint, every field, no more."""

from __future__ import annotations

import ast
import copy
import json
import re
import shlex
import sys
from typing import Any

import pytest

from clients import generate
from memory_gateway.management.commands.write_api_reference import current_reference
from tests.openapi import operations, schema
from tests.skill.conftest import CLIENT, SCRIPT, SKILL, Run

CREDENTIALS = {"user_id", "user_key"}
# For clients that cache, resume or repeat; the script does none of it.
LEFT_OUT_HEADERS = {"If-None-Match", "If-Range", "Range", "Idempotency-Key"}
# Arguments that are no fields of the endpoint: parts of a form's file and of a message, and where a file goes.
OWN_ARGUMENTS = {
    "browser-key": {"user_id"},
    "erase-user": {"user_id"},
    "upload-resource": {"filename", "mime_type"},
    "download-resource": {"output"},
    "export-user": {"output"},
    "create-user": {"save"},
    "issue-key": {"save"},
    "rotate-key": {"save"},
    "search-memory": {"brief"},
    "list-memories": {"brief"},
    "add-memory": {"text", "role", "sender_id", "timestamp", "attach"},
}


def resolved(node: dict[str, Any]) -> dict[str, Any]:
    name = node.get("$ref", "").rpartition("/")[2]
    return schema()["components"]["schemas"][name] if name else node


def fields_of(method: str, path: str) -> set[str]:
    """Every parameter and body field of an operation."""
    operation = schema()["paths"][path][method]
    fields = {item["name"] for item in operation.get("parameters", [])} - LEFT_OUT_HEADERS
    for content in operation.get("requestBody", {}).get("content", {}).values():
        fields |= set(resolved(content["schema"])["properties"])
    return fields if (method, path) in {("post", "/users"), ("patch", "/users")} else fields - CREDENTIALS


def arguments_of(command: Any) -> set[str]:
    """The names of a command's arguments, as fields."""
    parser = CLIENT.build_parser()
    subparsers = parser._subparsers._group_actions[0]
    actions = subparsers.choices[command.name]._actions
    return {action.dest for action in actions} - {"help", "timeout"}


COMMAND_OF = {(command.method.lower(), command.path): command for command in CLIENT.COMMANDS}


def test_every_endpoint_has_a_command_and_every_command_an_endpoint() -> None:
    of_openclaw = {("post", "/tools/invoke")}
    for_programs = {(method, path) for method, path in operations() if path.startswith("/webhooks")}
    replaced = {("delete", "/users/{user_id}")}  # its path holds an id, which may have a slash
    assert operations() - of_openclaw - for_programs - replaced == COMMAND_OF.keys()


def test_a_command_takes_every_field_of_its_endpoint_and_no_other() -> None:
    differences = {}
    for (method, path), command in COMMAND_OF.items():
        own = OWN_ARGUMENTS.get(command.name, set())
        differences[command.name] = (arguments_of(command) - own) ^ fields_of(method, path)
    assert {name: fields for name, fields in differences.items() if fields} == {}


def test_the_table_of_operations_is_current() -> None:
    for path, text in generate.skill_operations(schema()).items():
        assert path.read_text(encoding="utf-8") == text, "run `make clients`"


def test_a_new_search_parameter_is_an_option_without_a_change_of_the_script() -> None:
    document = copy.deepcopy(schema())
    described = {
        "anyOf": [{"type": "number"}, {"type": "null"}],
        "description": "The least relevance, in 100 % of cases.",
    }
    document["components"]["schemas"]["SearchBodyRequest"]["properties"]["min_relevance"] = described
    [text] = generate.skill_operations(document).values()
    [field] = [one for one in json.loads(text)["search_memories"]["fields"] if one["name"] == "min_relevance"]
    option = CLIENT.argument_of(field)
    assert option.flags == ("--min-relevance",)
    assert option.options == {"type": float, "help": "The least relevance, in 100 %% of cases."}


@pytest.mark.parametrize("command", CLIENT.COMMANDS, ids=lambda command: command.name)
def test_a_command_explains_itself_with_examples_that_it_accepts(run: Run, command: Any) -> None:
    outcome = run(command.name, "--help")
    assert outcome.code == 0
    assert command.examples
    for example in command.examples:
        assert f"memory_gateway.py {example}" in outcome.out
        CLIENT.build_parser().parse_args(arguments_in(example))


def arguments_in(line: str) -> list[str]:
    """The words of a shell line up to a redirection, a pipe or a comment."""
    return shlex.split(re.split(r" [<|#]", line)[0])


def test_every_line_of_the_skill_is_a_command_that_exists() -> None:
    text = (SKILL / "SKILL.md").read_text(encoding="utf-8")
    lines = re.findall(r"^python3 scripts/memory_gateway.py (.+)$", text, re.MULTILINE)
    assert len(lines) >= 10
    for line in lines:
        CLIENT.build_parser().parse_args(arguments_in(line))
    mentioned = set(re.findall(r"`([a-z]+-[a-z]+)(?: [^`]*)?`", text))
    assert mentioned <= {command.name for command in CLIENT.COMMANDS} | {"memory-gateway-agent"}


def test_the_skill_names_itself_as_its_folder() -> None:
    head = (SKILL / "SKILL.md").read_text(encoding="utf-8").split("---\n")[1]
    fields = dict(line.split(": ", 1) for line in head.splitlines())
    assert fields["name"] == SKILL.name
    assert 50 < len(fields["description"]) <= 1024


def test_the_client_needs_the_standard_library_of_python_3_9_alone() -> None:
    tree = ast.parse(SCRIPT.read_text(encoding="utf-8"), feature_version=(3, 9))
    imported = {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    imported |= {name.name for node in ast.walk(tree) if isinstance(node, ast.Import) for name in node.names}
    assert {name.partition(".")[0] for name in imported} <= sys.stdlib_module_names


def test_the_api_reference_is_the_one_that_the_code_gives() -> None:
    written = (SKILL / "references" / "api.md").read_text(encoding="utf-8")
    assert written == current_reference(), "run: python manage.py write_api_reference"
