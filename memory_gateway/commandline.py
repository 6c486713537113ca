"""Entry point of `manage.py`. Errors of the database, a disk or a setting are printed without a traceback."""

import re
import signal
import sys
from collections.abc import Sequence

from django.core.exceptions import ImproperlyConfigured
from django.core.management import execute_from_command_line
from django.db import DataError, Error, IntegrityError, connection

from core.messages import MANAGE
from core.persistence import database_errors
from memory_gateway.overview import GROUPS, overview, unknown

_EXIT_FAILED = 2
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
        # These are programming errors, which need their traceback.
        if "--traceback" in argv or isinstance(error, (IntegrityError, DataError)):
            raise
        if isinstance(error, Error):
            return _print_error(_database_error(error), _EXIT_FAILED)
        place = f"{error.filename}: " if error.filename is not None else ""
        return _print_error(f"{place}{error.strerror or error}.", _EXIT_FAILED)
    return 0


def print_overview(*groups: str) -> int:
    """Print the commands of the product, or those of some groups, and return the exit code."""
    try:
        sys.stdout.write(overview(groups or GROUPS))
    except ImproperlyConfigured as error:
        return _print_error(str(error), 1)
    return 0


def refuse(word: str) -> int:
    """Print that a word is no command, and return the exit code."""
    return _print_error(unknown(word), _EXIT_FAILED)


def _print_error(sentence: str, code: int) -> int:
    sys.stderr.write(f"memory-gateway: {sentence}\n")
    return code


def _database_error(error: Error) -> str:
    if refusal := database_errors.explain(error):
        return f"{connection.settings_dict['NAME']}: {refusal.detail}"
    message = str(error).strip().partition("\n")[0]
    if _LACKS_TABLES.search(message):
        return f"The database schema is not up to date ({message}). Run `{MANAGE} migrate`."
    if "database is locked" in message:
        return "The database is locked by another process. Try again."
    where = connection.settings_dict["NAME"]
    return f"The database {where} cannot be used: {message}."
