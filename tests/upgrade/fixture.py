"""Gateways that commit c6813ca wrote, packed: a database of each kind, the storage, and what their users saw then.

`python -m tests.upgrade.write_fixture` writes them.
"""

from __future__ import annotations

import json
import os
import shutil
import tarfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg

from tests import forked
from tests.server import DATABASE_FILE, RunningServer, _create_database, own_database, server_environment

COMMIT = "c6813ca"
DATA = Path(__file__).parent / "data"
SCENARIOS = ("embedded", "everos")
DIGESTS = DATA / "digests.json"
SQL_FILE, STATE, EXPORT = "database.sql", "state.json", "export.tar"
ENVIRONMENT = {
    "MEMORY_GATEWAY_SECRET_KEY": "the secret of a gateway that only tests read, 0123456789abcdefghij",
    "MEMORY_GATEWAY_BACKEND_TIMEOUT_SECONDS": "3",
    "MEMORY_GATEWAY_BACKEND_RETRY_DELAY_SECONDS": "0.01",
    "MEMORY_GATEWAY_TRASH_DAYS": "0",  # nothing is purged, however old the fixture is
}


def database() -> str:
    """Return the kind of database that this test run uses."""
    return "postgresql" if os.environ.get("DATABASE_URL", "").startswith("postgres") else "sqlite"


def packed(scenario: str) -> Path:
    return DATA / f"{scenario}-{database()}.tar.xz"


@dataclass(frozen=True)
class OldGateway:
    """A gateway with the data of an older version, and the state that its clients know."""

    server: RunningServer
    state: dict[str, Any]
    folder: Path

    @classmethod
    def unpack(cls, archive: Path, folder: Path, **env: str) -> OldGateway:
        """Unpack a fixture below `folder`, with its database as it was written."""
        with tarfile.open(archive) as tar:
            tar.extractall(folder, filter="data")
        gateway = folder / "gateway"
        server = RunningServer(gateway, server_environment(gateway, _load(gateway), **ENVIRONMENT, **env))
        return cls(server, json.loads((folder / STATE).read_text()), folder)

    def copy(self, folder: Path) -> OldGateway:
        """Copy this gateway, which does not run, with its database to `folder`."""
        shutil.copytree(self.folder, folder, dirs_exist_ok=True)
        gateway = folder / "gateway"
        env = server_environment(gateway, own_database(gateway, self.server), **ENVIRONMENT)
        return OldGateway(RunningServer(gateway, env), self.state, folder)

    @property
    def everos(self) -> dict[str, Any]:
        return {"everos": self.state["everos"]} if "everos" in self.state else {}

    def run(self, verb: str, state: dict[str, Any] | None = None) -> dict[str, Any]:
        """Run `tests.upgrade.reading` on this gateway."""
        given, answer = self.folder / "given.json", self.folder / "answer.json"
        given.write_text(json.dumps(state or self.state, ensure_ascii=False))
        done = forked.run(
            ["-m", "tests.upgrade.reading", verb, str(given), str(answer)], self.server.env, timeout_seconds=3600
        )
        assert done.returncode == 0, done.stdout + done.stderr
        result: dict[str, Any] = json.loads(answer.read_text())
        return result

    def views(self) -> dict[str, Any]:
        """Return what each user sees now, by the ids and words of then."""
        return {user_id: read["view"] for user_id, read in self.run("read").items()}

    def manage(self, *arguments: str) -> str:
        done = self.server.manage(*arguments, timeout_seconds=3600)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def upgrade(self) -> None:
        """Do what an administrator does after installing a new version, without its background work."""
        self.manage("migrate", "--verbosity", "0")
        self.manage("rebuild")


def _load(folder: Path) -> str:
    """Return the `DATABASE_URL` of the unpacked database; empty for SQLite."""
    if database() == "sqlite":
        assert (folder / DATABASE_FILE).exists()
        return ""
    url = _create_database("mg_upgrade", template="template1")
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute((folder / SQL_FILE).read_bytes())
    return url
