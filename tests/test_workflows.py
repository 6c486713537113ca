"""The workflows for a public CI: pinned actions, existing commands, and no stored token."""

from __future__ import annotations

import os
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

PROJECT = Path(__file__).parents[1]
FILES = sorted((PROJECT / ".github" / "workflows").glob("*.yml"))
SCRIPTS = re.compile(r"^(\.?[\w-]+/[\w/.-]+)", re.MULTILINE)


def workflow(name: str) -> dict[str, Any]:
    # YAML 1.1 reads the key `on` as true.
    return dict(yaml.safe_load((PROJECT / ".github" / "workflows" / name).read_text(encoding="utf-8")))


def steps(name: str) -> list[dict[str, Any]]:
    return [step for job in workflow(name)["jobs"].values() for step in job["steps"]]


@pytest.fixture(params=FILES, ids=lambda file: file.name)
def file(request: pytest.FixtureRequest) -> Path:
    return Path(request.param)


def test_there_are_workflows_for_tests_and_releases() -> None:
    assert {file.name for file in FILES} == {"test.yml", "release.yml"}


def test_every_action_is_pinned_by_its_commit_beside_its_version(file: Path) -> None:
    uses = re.findall(r"uses: (.*)", file.read_text(encoding="utf-8"))
    assert len(uses) == sum("uses" in step for step in steps(file.name)) > 0
    assert [one for one in uses if not re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", one)] == []


def test_every_make_target_and_script_exists(file: Path) -> None:
    makefile = (PROJECT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))
    runs = [step["run"] for step in steps(file.name) if "run" in step]
    called = {target for run in runs for target in re.findall(r"\bmake ([a-z-]+)", run)}
    scripts = {script for run in runs for script in SCRIPTS.findall(run)}
    assert called | scripts
    assert called <= targets
    assert [script for script in scripts if not os.access(PROJECT / script, os.X_OK)] == []


def test_the_tests_run_on_the_oldest_and_the_newest_python_that_the_package_names() -> None:
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    named = [one.rpartition(" ")[2] for one in project["classifiers"] if "Python :: 3." in one]
    assert workflow("test.yml")["jobs"]["test"]["strategy"]["matrix"]["python"] == [named[0], named[-1]]


def test_only_a_tag_publishes_and_by_short_lived_identities() -> None:
    text = (PROJECT / ".github" / "workflows" / "release.yml").read_text(encoding="utf-8")
    assert workflow("release.yml")[True] == {"push": {"tags": ["v*"]}}  # type: ignore[index]
    assert "secrets." not in text
    jobs = workflow("release.yml")["jobs"]
    assert {name for name, job in jobs.items() if job.get("permissions", {}).get("id-token")} == {"pypi", "npm"}
    assert workflow("release.yml")["permissions"] == {"contents": "read"}


def test_every_job_ends_by_itself(file: Path) -> None:
    assert all(job["timeout-minutes"] <= 60 for job in workflow(file.name)["jobs"].values())
