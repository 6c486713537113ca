"""`make fleet`: start the whole fleet on loopback and keep it until Ctrl-C."""

import os
import signal
import sys
import tempfile
from pathlib import Path

import django

if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")
    django.setup()
    from tests.fleet.fleet import missing_programs, running_fleet

    if not os.environ.get("DATABASE_URL", "").startswith("postgres"):
        sys.exit("Set DATABASE_URL to a PostgreSQL server, for example postgres://postgres@127.0.0.1:5432/postgres.")
    if missing := missing_programs():
        sys.exit(f"These programs are missing: {', '.join(missing)}.")
    with tempfile.TemporaryDirectory() as folder, running_fleet(Path(folder)) as fleet:
        sys.stdout.write(f"The fleet answers at {fleet.url} (panel: {fleet.url}/admin/memory/). End it with Ctrl-C.\n")
        sys.stdout.flush()
        signal.sigwait({signal.SIGINT, signal.SIGTERM})
