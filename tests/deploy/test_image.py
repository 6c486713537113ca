"""The image of `Dockerfile`, built and run: as its own user, on a root file system that cannot be written.

Needs root, buildah and mmdebstrap. The base image is Debian's with this Python's version, under the name that the
Dockerfile uses; the packages are downloaded outside, with this machine's settings.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests
import yaml
from moto.server import ThreadedMotoServer

from tests.bombs import pages_pdf
from tests.forked import PROJECT
from tests.server import START_SECONDS, free_port, own_database, wait_until

SUITES = {(3, 11): "bookworm", (3, 13): "trixie"}
CAN_BUILD = (
    os.getuid() == 0 and shutil.which("buildah") and shutil.which("mmdebstrap") and sys.version_info[:2] in SUITES
)

pytestmark = [
    pytest.mark.torture,
    pytest.mark.skipif(not CAN_BUILD, reason="needs root, buildah, mmdebstrap and Python 3.11 or 3.13"),
]

USER = 10001
MAX_BYTES = 650 * 2**20
TOKEN = secrets.token_hex(32)
TEMPORARY = "/tmp"  # noqa: S108 - the image's


def run(*command: str | Path) -> str:
    return subprocess.run(
        [*map(str, command)], cwd=PROJECT, check=True, stdout=subprocess.PIPE, text=True
    ).stdout.strip()


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Build the image and yield the folder of its files."""
    folder = tmp_path_factory.mktemp("image")
    buildah = ("buildah", "--storage-driver=vfs", f"--root={folder}/images", f"--runroot={folder}/run")
    dockerfile = (PROJECT / "Dockerfile").read_text(encoding="utf-8")
    [base] = re.findall(r"^ARG PYTHON=(\S+)$", dockerfile, re.MULTILINE)
    packages = "python3-minimal,python3-venv,ca-certificates"
    run(
        "mmdebstrap",
        "--quiet",
        "--variant=minbase",
        f"--include={packages}",
        SUITES[sys.version_info[:2]],
        folder / "base.tar",
    )
    (folder / "Dockerfile").write_text("FROM scratch\nADD base.tar /\n", encoding="ascii")
    run(*buildah, "bud", "--quiet", "--isolation=chroot", "--tag", base, folder)
    backend = re.findall(
        r'^requires = \["(hatchling[^"]*)"\]', (PROJECT / "pyproject.toml").read_text(encoding="utf-8"), re.MULTILINE
    )
    # Debian's Python may be of an older patch than this one.
    minor = f"{sys.version_info.major}.{sys.version_info.minor}"
    locked = (PROJECT / "requirements-image.txt").read_text(encoding="utf-8")
    wanted_file = folder / "requirements.txt"
    wanted_file.write_text(re.sub(rf" ; python_full_version < '{minor}\.\d+'", "", locked), encoding="utf-8")
    for wanted in (["--require-hashes", f"--requirement={wanted_file}"], backend):
        run(sys.executable, "-m", "pip", "download", "--quiet", "--dest", folder / "wheels", *wanted)
    offline = (
        "--build-arg=PIP_NO_INDEX=1",
        "--build-arg=PIP_FIND_LINKS=/wheels",
        f"--volume={folder}/wheels:/wheels:ro",
    )
    run(*buildah, "bud", "--quiet", "--isolation=chroot", *offline, "--tag=memory-gateway-test", PROJECT)
    try:
        yield Path(run(*buildah, "mount", run(*buildah, "from", "--pull-never", "memory-gateway-test")))
    finally:
        run(*buildah, "rm", "--all")
        run(*buildah, "rmi", "--all", "--force")


@contextlib.contextmanager
def started(root: Path, data: Path, *command: str, **settings: str) -> Iterator[subprocess.Popen[str]]:
    """Run a command of the image as its user, with `data` as `/data`, on a root that is mounted read-only."""
    os.chown(data, USER, USER)
    data.chmod(0o700)
    script = f"""
        mount --bind {root} {root}; mount --bind {data} {root}/data; mount -t tmpfs tmpfs {root}{TEMPORARY}
        mount -t proc proc {root}/proc; mount --rbind /dev {root}/dev; mount -o remount,ro,bind {root}
        exec chroot --userspec={USER}:{USER} {root} env --ignore-environment "$@"
    """
    environment = [
        *("PATH=/opt/memory-gateway/bin:/usr/bin:/bin", "MEMORY_GATEWAY_HOME=/data", "MEMORY_GATEWAY_HOST=0.0.0.0"),
        *(f"{name}={value}" for name, value in settings.items()),
    ]
    isolated = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-euc", script, "sh"]
    with subprocess.Popen(
        [*isolated, *environment, "memory-gateway", *command],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            yield process
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # `--kill-child` does not reach a child of another user


def test_it_is_small_and_has_no_tools_of_the_build(root: Path) -> None:
    size = int(run("du", "--summarize", "--bytes", root).split()[0])
    assert size <= MAX_BYTES
    names = {path.name for path in root.rglob("*") if path.is_dir() and "memory-gateway" in path.parts}
    assert not names & {"pip", "tests", "wheels"}
    assert not [*root.glob("source/*"), *root.glob("root/.cache/*")]


def test_it_refuses_an_open_port_without_a_token(root: Path, tmp_path: Path) -> None:
    with started(root, tmp_path) as gateway:
        said, _ = gateway.communicate(timeout=60)
    assert gateway.returncode == 1
    assert "MEMORY_GATEWAY_PROVISIONING_TOKEN" in said
    assert "Traceback" not in said


def test_it_does_the_main_job(root: Path, tmp_path: Path) -> None:
    settings = {"MEMORY_GATEWAY_PROVISIONING_TOKEN": TOKEN}
    with serving(root, tmp_path, TOKEN, {}, **settings) as gateway:
        document = pages_pdf(["The supplier is paid within thirty days."])
        uploaded = gateway.post("/resources", files={"file": ("contract.pdf", document)})
        assert uploaded.json()["status"] == "extracted", uploaded.text
        question = {"query": "When is the supplier paid?", "scope": ["resources"]}
        found = gateway.post("/memories/search", json=question).json()["results"]
        assert "thirty days" in found[0]["text"]
    stored = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert {path.stat().st_uid for path in stored} == {USER}


@pytest.mark.skipif(not os.environ.get("DATABASE_URL", "").startswith("postgres"), reason="compose has PostgreSQL")
def test_it_starts_with_the_settings_of_compose(root: Path, tmp_path: Path, files: str) -> None:
    tmp_path.chmod(0o755)
    compose = yaml.safe_load((PROJECT / "compose.yaml").read_text(encoding="utf-8"))
    script = (PROJECT / "deploy" / "create_secrets.sh").read_text(encoding="utf-8")
    run("sh", "-c", script.replace("/secrets", str(tmp_path)))
    made = dict(line.split("=", 1) for line in (tmp_path / "gateway.env").read_text(encoding="ascii").splitlines())
    settings = compose["services"]["gateway"]["environment"] | {
        "MEMORY_GATEWAY_ENV_FILE": "/data/gateway.env",
        "MEMORY_GATEWAY_ALLOWED_HOSTS": "localhost",
        "MEMORY_GATEWAY_ALLOWED_PRIVATE_HOSTS": "127.0.0.1",
        "MEMORY_GATEWAY_TRUSTED_PROXIES": "127.0.0.1",
        "MEMORY_GATEWAY_REDIS_URL": "",
        "DATABASE_URL": own_database(tmp_path),
        "AWS_ENDPOINT_URL_S3": files,
    }
    with started(root, tmp_path, "manage", "migrate", "--verbosity", "0", **settings) as prepared:
        said, _ = prepared.communicate(timeout=120)
        assert prepared.returncode == 0, said
    proxied = {"Host": "localhost", "X-Forwarded-Proto": "https"}
    commands = {name: compose["services"][name]["command"] for name in ("gateway", "worker")}
    token = made["MEMORY_GATEWAY_PROVISIONING_TOKEN"]
    with (
        started(root, tmp_path, *commands["worker"], **settings),
        serving(root, tmp_path, token, proxied, *commands["gateway"], **settings) as gateway,
    ):
        uploaded = gateway.post("/resources", files={"file": ("tea.txt", b"Green tea at noon.")})
        assert uploaded.json()["status"] == "extracted", uploaded.text
        found = gateway.post("/memories/search", json={"query": "tea", "scope": ["resources"]}).json()["results"]
        assert "Green tea" in found[0]["text"]


@pytest.fixture
def files() -> Iterator[str]:
    """The address of an S3 store with the bucket of compose."""
    server = ThreadedMotoServer("127.0.0.1", port=free_port(), verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    assert requests.put(f"http://{host}:{port}/memory", timeout=60).ok
    yield f"http://{host}:{port}"
    server.stop()


class Gateway(requests.Session):
    """The API of a running image as the user `ann`."""

    def __init__(self, url: str) -> None:
        super().__init__()
        self.url = url

    def request(self, method: str, path: str, **options: Any) -> requests.Response:  # type: ignore[override]
        return super().request(method, self.url + path, timeout=60, **options)


@contextlib.contextmanager
def serving(
    root: Path, data: Path, token: str, headers: dict[str, str], *command: str, **settings: str
) -> Iterator[Gateway]:
    """Start a gateway and yield it with a new user."""
    port = free_port()
    gateway = Gateway(f"http://127.0.0.1:{port}")
    gateway.headers.update(headers)
    with started(root, data, *command, MEMORY_GATEWAY_PORT=str(port), **settings) as process:

        def is_up() -> bool:
            assert process.poll() is None, process.stdout and process.stdout.read()
            try:
                return gateway.get("/health").ok
            except requests.ConnectionError:
                return False

        wait_until(is_up, START_SECONDS)
        created = gateway.post("/users", json={"user_id": "ann"}, headers={"Authorization": f"Bearer {token}"})
        gateway.headers["Authorization"] = f"Bearer {created.json()['user_key']}"
        yield gateway
