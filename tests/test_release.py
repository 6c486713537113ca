"""Test what `make release` refuses and reports. `.ci/run` builds a whole release, which needs tools and a network."""

from __future__ import annotations

import hashlib
import json
import re
import resource
import shutil
import subprocess
import tarfile
import tomllib
import venv
from importlib import metadata
from pathlib import Path

import pytest
from django.conf import settings
from packaging.utils import NormalizedName

import release
from agents.mcp import server as mcp_server

LOCK = (release.PROJECT / release.LOCK).read_text(encoding="utf-8")


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    folder = tmp_path / "checkout"
    folder.mkdir()
    (folder / "pyproject.toml").write_text('[project]\nname = "sample"\nversion = "1.2.3"\n')
    (folder / ".gitignore").write_text("/dist/\n")
    identity = ["-c", "user.name=Tests", "-c", "user.email=tests@example.org"]
    for command in (["init", "-q"], ["add", "."], [*identity, "commit", "-q", "-m", "Begin"]):
        subprocess.run(["git", "-C", str(folder), *command], check=True)
    return folder


def test_the_archive_holds_the_last_commit(checkout: Path) -> None:
    dist = checkout / "dist"
    dist.mkdir()
    (dist / "of an older release").touch()
    assert release.archive(checkout, dist) == "sample-1.2.3"
    [archive] = dist.iterdir()
    with tarfile.open(archive) as members:
        assert {one.name for one in members if one.isfile()} == {
            "sample-1.2.3/.gitignore",
            "sample-1.2.3/pyproject.toml",
        }


@pytest.mark.parametrize("changed", ["pyproject.toml", "new.py"])
def test_changes_that_are_not_committed_are_refused(checkout: Path, changed: str) -> None:
    (checkout / changed).write_text("changed")
    with pytest.raises(release.ReleaseError, match=changed):
        release.archive(checkout, checkout / "dist")
    assert not (checkout / "dist").exists()


def test_the_lock_names_every_direct_dependency_as_it_is_installed() -> None:
    packages = release.locked_packages(LOCK)
    assert {"django", "numpy", "psycopg-binary", "xberg"} <= set(packages)
    assert "pywin32" not in packages
    assert {name: metadata.version(name) for name in packages} == packages


@pytest.mark.parametrize("lock", sorted(release.PROJECT.glob("requirements*.txt")), ids=lambda lock: lock.name)
def test_every_locked_package_has_a_hash_and_no_registry(lock: Path) -> None:
    text = lock.read_text(encoding="utf-8")
    packages = re.split(r"^(?=\w)", text, flags=re.MULTILINE)[1:]
    assert packages
    assert [package for package in packages if "--hash=sha256:" not in package] == []
    assert "://" not in text


def test_there_are_no_more_direct_dependencies_than_the_page_says() -> None:
    project = tomllib.loads((release.PROJECT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    page = (release.PROJECT / "docs" / "operate" / "security.md").read_text(encoding="utf-8")
    assert f"{len(project['dependencies'])} direct runtime packages" in page


@pytest.mark.parametrize(
    "component",
    [
        {"name": "other", "version": "1.0", "licenses": [{}]},
        {"name": "Some_Package", "version": "1.1", "licenses": [{}]},
        {"name": "Some_Package", "version": "1.0"},
        {"name": "Some_Package", "version": "1.0", "licenses": []},
    ],
    ids=["absent", "another version", "no license", "empty license"],
)
def test_a_bill_of_materials_that_lacks_something_is_refused(component: dict[str, object]) -> None:
    packages = {NormalizedName("some-package"): "1.0"}
    assert release.missing_packages({"components": [component]}, packages) == ["some-package==1.0"]
    whole = {"name": "Some_Package", "version": "1.0", "licenses": [{}]}
    assert release.missing_packages({"components": [component, whole]}, packages) == []


def test_an_audit_that_skipped_everything_is_not_called_clean() -> None:
    found = {"dependencies": [{"name": "django", "skip_reason": "Dependency not found on PyPI"}]}
    assert release.audit_report(found).startswith("AUDIT SKIPPED")


def test_an_audit_lists_vulnerabilities_and_skipped_packages() -> None:
    known = {"id": "PYSEC-1", "fix_versions": ["1.1"]}
    found = {
        "dependencies": [
            {"name": "one", "version": "1.0", "vulns": [known]},
            {"name": "two", "version": "2.0", "vulns": []},
            {"name": "three", "skip_reason": "three is unknown"},
        ]
    }
    assert release.audit_report(found).splitlines() == [
        "2 packages audited, 1 known vulnerabilities, 1 packages skipped.",
        "one 1.0: PYSEC-1, fixed in 1.1",
        "skipped: three is unknown",
    ]


def test_an_audit_that_fails_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "pip-audit"
    program.write_text("#!/bin/sh\necho no route to host >&2\nexit 1\n")
    program.chmod(0o700)
    monkeypatch.setattr(release, "TOOLS", tmp_path)
    assert release.audit(tmp_path / "requirements.txt") == "AUDIT SKIPPED: pip-audit failed. no route to host\n"


def test_the_checksums_are_those_of_the_files(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"a")
    (tmp_path / "b.txt").write_bytes(b"b")
    release.write_checksums(tmp_path)
    lines = [f"{hashlib.sha256(name.encode()).hexdigest()}  {name}.txt" for name in ("a", "b")]
    assert (tmp_path / "SHA256SUMS").read_text().splitlines() == lines


def test_the_version_is_the_same_everywhere() -> None:
    project = tomllib.loads((release.PROJECT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert {project["version"], settings.SPECTACULAR_SETTINGS["VERSION"], mcp_server.VERSION} == {project["version"]}
    written = r"""^\W*(?:app|__)?[vV]ersion(?:__)?\W+(\d+\.\d+\.\d+)\W*$"""
    for file in (
        "clients/python/memory_gateway_client/__init__.py",
        *(f"clients/{name}/package.json" for name in ("claude-code", "openclaw", "typescript")),
        "clients/claude-code/.claude-plugin/plugin.json",
        "deploy/chart/Chart.yaml",
    ):
        found = re.findall(written, (release.PROJECT / file).read_text(encoding="utf-8"), re.MULTILINE)
        assert {*found} == {project["version"]}, file


# What some packages declare in other words than SPDX; the files of these packages are BSD with three clauses.
SPDX = {
    "Apache Software License": "Apache-2.0",
    "BSD License": "BSD-3-Clause",
    "MIT License": "MIT",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
    "BSD 3-Clause OR Apache-2.0": "Apache-2.0 OR BSD-3-Clause",
}


def declared_license(package: str) -> str:
    declared = metadata.metadata(package)
    if expression := declared.get("License-Expression"):
        return expression
    classifiers = [one.rpartition(" :: ")[2] for one in declared.get_all("Classifier", []) if one.startswith("License")]
    names = [name for name in classifiers if name != "OSI Approved"] or [declared["License"]]
    return " OR ".join(sorted(SPDX.get(name, name) for name in names))


def test_the_page_names_every_package_with_its_license() -> None:
    text = (release.PROJECT / "docs" / "operate" / "licenses.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `([^`]+)` \| (.+) \|$", text, re.MULTILINE)
    listed = [(package, name) for name, packages in rows for package in packages.split(", ")]
    assert sorted(listed) == sorted((package, declared_license(package)) for package in release.locked_packages(LOCK))


@pytest.mark.slow
@pytest.mark.parametrize("folder", release.NPM_PACKAGES)
def test_npm_packs_what_a_package_needs(folder: str) -> None:
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("needs npm")
    command = [npm, "pack", "--dry-run", "--json", "--ignore-scripts"]
    done = subprocess.run(command, cwd=release.PROJECT / folder, capture_output=True, text=True, check=True)
    [packed] = json.loads(done.stdout)
    names = {one["path"] for one in packed["files"]}
    manifest = json.loads((release.PROJECT / folder / "package.json").read_text(encoding="utf-8"))
    entry = {"clients/typescript": "src/index.js", "clients/openclaw": "index.js"}[folder]
    assert {"package.json", "README.md", "LICENSE", entry} <= names
    assert not [name for name in names if name.startswith(("tests/", "node_modules/"))]
    assert packed["name"] == manifest["name"]
    modules = {path.name for path in (release.PROJECT / folder / entry).parent.glob("*.js")}
    assert modules <= {Path(name).name for name in names}


@pytest.mark.torture
def test_the_wheels_work_in_an_empty_environment(tmp_path: Path) -> None:
    """`pip install *.whl` without the lock: top-level names, and the first memory within a minute of a processor.

    A processor's time is the same on a busy machine.
    """
    for package, project in (
        (release.PACKAGE, release.PROJECT),
        (release.CLIENT, release.PROJECT / "clients" / "python"),
    ):
        release.build_wheel(project, tmp_path, package)
    environment = tmp_path / "environment"
    before = children_seconds()
    venv.create(environment, with_pip=True)
    wheels = sorted(tmp_path.glob("*.whl"))
    assert len(wheels) == 2
    python = environment / "bin" / "python"
    subprocess.run([python, "-m", "pip", "install", "--quiet", *wheels], check=True)
    own = [metadata.Distribution.at(path) for path in (environment / "lib").rglob("memory_gateway*.dist-info")]
    tops = {Path(str(file)).parts[0] for one in own for file in one.files or () if ".." not in str(file)}
    assert {name for name in tops if not name.endswith(".dist-info")} == {release.PACKAGE, release.CLIENT}
    release.first_memory_seconds(environment)
    assert children_seconds() - before < 60


def children_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
