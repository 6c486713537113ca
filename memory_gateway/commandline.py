"""What `manage.py` says where the database, a disk or a setting fails: one sentence, and exit code 2."""

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
    """The exit code. With `--traceback` a failure is shown with its whole way."""
    try:
        execute_from_command_line(list(argv))
    except KeyboardInterrupt:
        return _say("Stopped.", 128 + signal.SIGINT)
    except ImproperlyConfigured as error:
        return _say(str(error), 1)
    except (Error, OSError) as error:
        # What the code did wrong is for those who mend it.
        if "--traceback" in argv or isinstance(error, (IntegrityError, DataError)):
            raise
        return _say(_of_disk(error) if isinstance(error, OSError) else _of_database(error), _REFUSED)
    return 0


def _say(sentence: str, code: int) -> int:
    sys.stderr.write(f"memory-gateway: {sentence}\n")
    return code


def _of_disk(error: OSError) -> str:
    place = f"{error.filename}: " if error.filename is not None else ""
    return f"{place}{error.strerror or error}."


def _of_database(error: Error) -> str:
    said = str(error).strip().partition("\n")[0]
    if _LACKS_TABLES.search(said):
        return f"The database lacks what this version keeps in it ({said}): run `python manage.py migrate` first."
    if "database is locked" in said:
        return "The database is busy: somebody else has been writing to it all the while. Try again."
    where = connection.settings_dict["NAME"]
    return f"The database {where} cannot be used: {said}."
