"""Entry point of `manage.py`: failures of the database, a disk or a setting become one sentence and an exit code."""

from __future__ import annotations

import re
import signal
import sys
from collections.abc import Sequence

from django.core.exceptions import ImproperlyConfigured
from django.core.management import execute_from_command_line
from django.db import DataError, Error, IntegrityError, connection

_REFUSED = 2
_LACKS_TABLES = re.compile(r"no such (table|column)|(relation|column) .* does not exist")


def main(argv: Sequence[str]) -> int:
    """Run a command and return the exit code. `--traceback` shows the traceback of a failure."""
    try:
        execute_from_command_line(list(argv))
    except KeyboardInterrupt:
        return _print_error("Stopped.", 128 + signal.SIGINT)
    except ImproperlyConfigured as error:
        return _print_error(str(error), 1)
    except (Error, OSError) as error:
        # Defects of the code keep their traceback.
        if "--traceback" in argv or isinstance(error, (IntegrityError, DataError)):
            raise
        return _print_error(_disk_error(error) if isinstance(error, OSError) else _database_error(error), _REFUSED)
    return 0


def _print_error(sentence: str, code: int) -> int:
    sys.stderr.write(f"memory-gateway: {sentence}\n")
    return code


def _disk_error(error: OSError) -> str:
    place = f"{error.filename}: " if error.filename is not None else ""
    return f"{place}{error.strerror or error}."


def _database_error(error: Error) -> str:
    message = str(error).strip().partition("\n")[0]
    if _LACKS_TABLES.search(message):
        return f"The database lacks what this version keeps in it ({message}): run `python manage.py migrate` first."
    if "database is locked" in message:
        return "The database is busy: another process keeps writing to it. Try again."
    where = connection.settings_dict["NAME"]
    return f"The database {where} cannot be used: {message}."
