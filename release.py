"""Build a release from the last commit: `make release`.

Writes to `dist/` the source archive, the wheels of the gateway and its Python client, the npm packages of the
TypeScript client and the OpenClaw plugin, the Helm chart, a CycloneDX bill of materials and a license list of the
runtime packages, the report of pip-audit, and `SHA256SUMS` of these files.
"""

import hashlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import tomllib
import venv
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import requests
from packaging.requirements import Requirement
from packaging.utils import NormalizedName, canonicalize_name

PROJECT: Final = Path(__file__).resolve().parent
TOOLS: Final = Path(sys.executable).parent
LOCK: Final = "requirements.txt"
LICENSE_LIST: Final = ("--format=markdown", "--order=license")
PACKAGE: Final = "memory_gateway_server"
CLIENT: Final = "memory_gateway_client"
NPM_PACKAGES: Final = ("clients/typescript", "clients/openclaw")
START_SECONDS: Final = 60
SBOM: Final = ("--pyproject", str(PROJECT / "pyproject.toml"), "--output-reproducible", "--gather-license-texts")


class ReleaseError(Exception):
    """A release cannot be built."""


def main() -> None:
    """Write all files of the release and print what the audit found."""
    dist, runtime = PROJECT / "dist", PROJECT / "build" / "runtime"
    python = str(runtime / "bin" / "python")
    try:
        name = archive(PROJECT, dist)
        packages = install_locked(PROJECT / LOCK, runtime)
        write_sbom(dist / f"{name}.cdx.json", python, packages)
        try_wheel(build_wheel(PROJECT, dist, PACKAGE), runtime)
        build_wheel(PROJECT / "clients" / "python", dist, CLIENT)
        for folder in NPM_PACKAGES:
            pack(PROJECT / folder, dist)
        pack_chart(PROJECT, dist, name)
        licenses = dist / f"{name}-licenses.md"
        run(TOOLS / "pip-licenses", "--python", python, *LICENSE_LIST, "--output-file", licenses)
        audited = audit(PROJECT / LOCK)
        (dist / f"{name}-audit.txt").write_text(audited, encoding="utf-8")
        write_checksums(dist)
    except ReleaseError as error:
        sys.exit(str(error))
    print(audited, end="")
    print(f"The release is in {dist}.")


def archive(project: Path, dist: Path) -> str:
    """Write the source archive of the last commit into an emptied `dist`, and return the release's name.

    Raises:
        ReleaseError: the checkout has changes that are not committed.
    """
    if changes := run("git", "-C", project, "status", "--porcelain"):
        raise ReleaseError(f"A release holds commits only. Commit or stash these changes first:\n{changes}")
    settings = tomllib.loads((project / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    name = f"{settings['name']}-{settings['version']}"
    shutil.rmtree(dist, ignore_errors=True)
    dist.mkdir()
    run("git", "-C", project, "archive", f"--prefix={name}/", f"--output={dist / name}.tar.gz", "HEAD")
    return name


def install_locked(lock: Path, folder: Path) -> dict[NormalizedName, str]:
    """Install the runtime packages alone into a new environment, and return their names and versions."""
    venv.create(folder, clear=True)
    pip = ("-m", "pip", "--python", str(folder / "bin" / "python"), "--disable-pip-version-check")
    run(sys.executable, *pip, "install", "--quiet", "--require-hashes", "-r", lock)
    return locked_packages(lock.read_text(encoding="utf-8"))


def build_wheel(project: Path, dist: Path, package: str) -> Path:
    """Build the wheel of a package into `dist`, and return its path.

    Raises:
        ReleaseError: it would install more than one top-level package.
    """
    before = {*dist.glob("*.whl")}
    run(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", dist, project)
    [wheel] = {*dist.glob("*.whl")} - before
    with zipfile.ZipFile(wheel) as archive:
        names = {Path(name).parts[0] for name in archive.namelist()}
    if unknown := sorted(name for name in names - {package} if not name.endswith(".dist-info")):
        raise ReleaseError(f"The wheel must have one top-level package, but has also {', '.join(unknown)}.")
    return wheel


def pack(folder: Path, dist: Path) -> None:
    """Build an npm package into `dist`, with its development packages if it has some.

    Raises:
        ReleaseError: npm is missing or fails.
    """
    npm = shutil.which("npm")
    if npm is None:
        raise ReleaseError("A release needs npm, which packs the clients for Node.")
    if (folder / "package-lock.json").exists():
        run(npm, "ci", "--prefix", folder, "--ignore-scripts", "--no-audit", "--no-fund")
    run(npm, "pack", folder, "--pack-destination", dist)


def pack_chart(project: Path, dist: Path, name: str) -> None:
    """Write the Helm chart of the last commit into `dist`, in the folder that Helm expects."""
    target = f"--output={dist / name}-chart.tgz"
    run("git", "-C", project, "archive", "--prefix=memory-gateway/", target, "HEAD:deploy/chart")


def try_wheel(wheel: Path, environment: Path) -> None:
    """Install the wheel into an environment that has the runtime packages, start it, and find a first memory.

    Raises:
        ReleaseError: the gateway does not find a memory within a minute.
    """
    python = environment / "bin" / "python"
    run(sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-deps", wheel)
    if (seconds := first_memory_seconds(environment)) > START_SECONDS:
        raise ReleaseError(f"The installed wheel found its first memory after {seconds:.0f} s only.")


def first_memory_seconds(environment: Path) -> float:
    """Return the seconds from the start of the installed gateway to its first found memory.

    Raises:
        ReleaseError: the gateway does not start within a minute, or finds nothing.
    """
    began = time.monotonic()
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    with tempfile.TemporaryDirectory() as home:
        settings = {"MEMORY_GATEWAY_HOME": home, "MEMORY_GATEWAY_PORT": port}
        with subprocess.Popen(
            [environment / "bin" / "memory-gateway"], cwd=home, env=os.environ | settings, stdout=subprocess.DEVNULL
        ) as gateway:
            try:
                _find_first_memory(f"http://127.0.0.1:{port}", gateway)
                return time.monotonic() - began
            finally:
                gateway.send_signal(signal.SIGTERM)


def _find_first_memory(url: str, gateway: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + START_SECONDS
    while not _is_healthy(url):
        if gateway.poll() is not None or time.monotonic() > deadline:
            raise ReleaseError("The installed wheel does not start.")
        time.sleep(0.2)
    key = _post(f"{url}/users", {"user_id": "ann"})["user_key"]
    message = {"sender_id": "ann", "role": "user", "timestamp": int(time.time() * 1000), "content": "I prefer tea."}
    _post(f"{url}/memories/add", {"session_id": "chat:c_1", "messages": [message]}, key)
    found = _post(f"{url}/memories/search", {"query": "tea", "scope": ["all_user_memory"]}, key)["results"]
    if [one["text"] for one in found] != ["I prefer tea."]:
        raise ReleaseError(f"The installed wheel does not find the first memory, but {found}.")


def _is_healthy(url: str) -> bool:
    try:
        return requests.get(f"{url}/health", timeout=5).ok
    except requests.RequestException:
        return False


def _post(url: str, body: dict[str, Any], key: str = "") -> Any:
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    response = requests.post(url, json=body, headers=headers, timeout=30)
    response.raise_for_status()
    return response.json()


def locked_packages(lock: str) -> dict[NormalizedName, str]:
    """Return the version of each package that the lock has for this platform, by its normalized name."""
    requirements = [Requirement(line) for line in re.findall(r"^(\w.*) \\$", lock, re.MULTILINE)]
    return {
        canonicalize_name(one.name): str(one.specifier).removeprefix("==")
        for one in requirements
        if one.marker is None or one.marker.evaluate()
    }


def write_sbom(path: Path, python: str, packages: Mapping[NormalizedName, str]) -> None:
    """Write the bill of materials of an environment, dated as the last commit.

    Raises:
        ReleaseError: a package is absent, has another version or no license.
    """
    committed_at = run("git", "-C", PROJECT, "log", "-1", "--format=%ct").strip()
    run(TOOLS / "cyclonedx-py", "environment", *SBOM, "--output-file", path, python, SOURCE_DATE_EPOCH=committed_at)
    if missing := missing_packages(json.loads(path.read_text(encoding="utf-8")), packages):
        raise ReleaseError(f"The bill of materials lacks these packages or their licenses: {', '.join(missing)}.")


def missing_packages(sbom: Mapping[str, Any], packages: Mapping[NormalizedName, str]) -> list[str]:
    """Return the packages that a bill of materials does not list with this version and a license."""
    listed: dict[NormalizedName, str] = {
        canonicalize_name(one["name"]): one["version"] for one in sbom["components"] if one.get("licenses")
    }
    return sorted(f"{name}=={version}" for name, version in packages.items() if listed.get(name) != version)


def audit(lock: Path) -> str:
    """Return what pip-audit reports. It never fails a release: without network it finds nothing and ends with 0."""
    command: list[str | Path] = [
        TOOLS / "pip-audit",
        "--requirement",
        lock,
        "--disable-pip",
        "--format=json",
        "--progress-spinner=off",
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.stdout:
        return audit_report(json.loads(done.stdout))
    return f"AUDIT SKIPPED: pip-audit failed. {done.stderr.strip().rpartition(chr(10))[2]}\n"


def audit_report(found: Mapping[str, Any]) -> str:
    """Return pip-audit's JSON as text: a summary, then a line for each vulnerability and each skipped package."""
    skipped = [one for one in found["dependencies"] if "skip_reason" in one]
    audited = [one for one in found["dependencies"] if "skip_reason" not in one]
    lines = [
        f"{one['name']} {one['version']}: {known['id']}, fixed in {', '.join(known['fix_versions']) or 'no version'}"
        for one in audited
        for known in one["vulns"]
    ]
    summary = f"{len(audited)} packages audited, {len(lines)} known vulnerabilities, {len(skipped)} packages skipped."
    if not audited:
        summary = "AUDIT SKIPPED: the vulnerability service knows no package or cannot be reached."
    return "\n".join([summary, *lines, *(f"skipped: {one['skip_reason']}" for one in skipped), ""])


def write_checksums(dist: Path) -> None:
    """Write `SHA256SUMS` as `sha256sum --check` reads it."""
    files = sorted(dist.iterdir())
    lines = [f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}\n" for file in files]
    (dist / "SHA256SUMS").write_text("".join(lines), encoding="ascii")


def run(*command: str | Path, **env: str) -> str:
    """Run a program and return its output.

    Raises:
        ReleaseError: it failed.
    """
    done = subprocess.run(command, env=os.environ | env, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ReleaseError(f"{Path(command[0]).name} failed: {done.stderr.strip()}")
    return done.stdout


if __name__ == "__main__":
    main()
