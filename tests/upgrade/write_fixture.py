"""Write the fixtures of the upgrade tests by the code of the checkout that this runs in.

They are of commit c6813ca; `tests.upgrade.checkout` gets it, adds this package to it and runs this there:

    python -m tests.upgrade.checkout tests/upgrade/data                                   # SQLite
    DATABASE_URL=postgres://… python -m tests.upgrade.checkout tests/upgrade/data         # PostgreSQL
"""

from __future__ import annotations

import argparse
import contextlib
import json
import re
import shutil
import sqlite3
import subprocess
import tarfile
import tempfile
from pathlib import Path
from typing import Any

from tests import forked
from tests.server import DATABASE_FILE, RunningServer, own_database, server_environment
from tests.upgrade.fixture import ENVIRONMENT, EXPORT, SCENARIOS, SQL_FILE, STATE, OldGateway, database
from tests.upgrade.view import digest


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--memories", type=int, default=0, help="synthetic memories besides the cases")
    options = parser.parse_args()
    for scenario in SCENARIOS:
        write(scenario, options.folder, options.memories)


def write(scenario: str, target: Path, memories: int) -> None:
    """Write `SCENARIO-DATABASE.tar.xz` and the digests of its users."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        gateway = folder / "gateway"
        gateway.mkdir()
        env = server_environment(gateway, own_database(gateway), **ENVIRONMENT)
        _run(env, "-m", "tests.upgrade.cases", scenario, str(folder / STATE), "--memories", str(memories))
        state = json.loads((folder / STATE).read_text())
        old = OldGateway(RunningServer(gateway, env), state, folder)
        for user_id, read in old.run("read").items():
            state["users"][user_id] |= read
        (folder / STATE).write_text(json.dumps(state, ensure_ascii=False, sort_keys=True))
        old.manage("export_memory", str(folder / EXPORT), "--all", "--with-keys")
        _save_database(gateway, env["DATABASE_URL"])
        _pack(folder, target / f"{scenario}-{database()}.tar.xz")
    digests = target / "digests.json"
    known: dict[str, Any] = json.loads(digests.read_text()) if digests.exists() else {}
    known[f"{scenario}-{database()}"] = {name: digest(user["view"]) for name, user in state["users"].items()}
    digests.write_text(json.dumps(known, indent=2, sort_keys=True) + "\n")


def _run(env: dict[str, str], *arguments: str) -> None:
    done = forked.run(arguments, env, timeout_seconds=3600)
    if done.returncode:
        raise SystemExit(done.stdout + done.stderr)


def _save_database(gateway: Path, url: str) -> None:
    """Leave one file of the database: SQLite's without a log, or the statements that make a PostgreSQL database."""
    if not url:
        with contextlib.closing(sqlite3.connect(gateway / DATABASE_FILE)) as file:
            file.execute("PRAGMA journal_mode = DELETE")
            file.execute("VACUUM")
        return
    dump = ["pg_dump", "--inserts", "--rows-per-insert=50", "--no-owner", "--no-privileges", url]
    statements = subprocess.run(dump, check=True, capture_output=True, text=True).stdout
    # Without settings and client commands of one version.
    (gateway / SQL_FILE).write_text(re.sub(r"(?m)^(SET \w+ = .*;|\\.*)$\n", "", statements))


def _pack(folder: Path, archive: Path) -> None:
    for name in ("given.json", "answer.json"):
        (folder / name).unlink(missing_ok=True)
    shutil.rmtree(folder / "gateway" / "storage" / "incoming", ignore_errors=True)
    with tarfile.open(archive, "w:xz", preset=9) as tar:
        for name in ("gateway", STATE, EXPORT):
            tar.add(folder / name, name)


if __name__ == "__main__":
    main()
