"""`memory-gateway --help`: the commands of the product, by purpose."""

from __future__ import annotations

import io
import json
import re
import subprocess
from pathlib import Path

import pytest
from django.core.management import call_command, get_commands

from accounts import services
from memory_gateway import overview
from tests.forked import PROJECT
from tests.memory_gateway.test_wheel import command, env

__all__ = ["env"]
NOT_FOR_OPERATORS = {"write_api_reference", "seed_memories"}
OWN = {path.stem for path in PROJECT.glob("*/management/commands/*.py")} - {"__init__"}


def run(env: dict[str, str], folder: Path, *arguments: str) -> tuple[int, str, str]:
    done = subprocess.run(command(*arguments), cwd=folder, env=env, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, done.stderr


def test_every_command_of_the_product_is_listed_once_and_none_of_django() -> None:
    assert sorted(overview.COMMANDS) == sorted(OWN - NOT_FOR_OPERATORS)
    assert set(overview.COMMANDS) <= get_commands().keys()
    text = overview.overview()
    for group, names in overview.GROUPS.items():
        assert f"\n{group}:\n" in text
        assert all(f"\n  {name} " in text for name in names)
    assert {line.split()[0] for line in text.splitlines() if re.match("  [a-z]", line)} == {*overview.COMMANDS}
    assert all(len(line) <= 120 for line in text.splitlines())


def test_help_is_the_overview_and_groups_list_their_commands(tmp_path: Path, env: dict[str, str]) -> None:
    code, text, _ = run(env, tmp_path, "--help")
    assert (code, text) == (0, overview.overview())
    code, text, _ = run(env, tmp_path, "keys")
    assert (code, "rotate_key" in text, "doctor" in text) == (0, True, False)


def test_a_command_needs_no_manage_and_a_misspelled_one_is_named(tmp_path: Path, env: dict[str, str]) -> None:
    assert run(env, tmp_path, "create_user", "--help")[1].startswith("usage: memory-gateway create_user")
    code, _, said = run(env, tmp_path, "creat_user", "ann")
    assert (code, "There is no command creat_user. Did you mean create_user?" in said) == (2, True)
    assert "lists all" in run(env, tmp_path, "nosuch")[2]


@pytest.mark.django_db
def test_create_user_prints_json() -> None:
    output = io.StringIO()
    call_command("create_user", "dora", "--json", stdout=output)
    answer = json.loads(output.getvalue())
    assert (answer["user_id"], services.authenticate(answer["user_key"]).user_id) == ("dora", "dora")
    assert answer["created_at"]
