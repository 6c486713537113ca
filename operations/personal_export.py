"""Everything that is stored of one user, as an archive for the person: readable pages, data and files.

It has no keys and cannot be imported: archives of operators (`operations.archives`) can.
"""

import os
import shutil
import zipfile
from typing import IO, Final
from uuid import UUID

import orjson

from accounts import expiry
from accounts.audit import Actor, record
from accounts.models import MemoryUser
from core.errors import existing
from core.messages import Translatable as _
from core.persistence.file_keys import FileKey
from core.persistence.files import stored_files, temporary_file
from core.persistence.sql import consistent_read
from operations import files
from operations.archives import markdown_export
from operations.archives.serialization import dump_rows
from operations.tables import KEYS, OUTBOX, PORTABLE, RESENDS

_LEFT_OUT: Final = (KEYS, OUTBOX, RESENDS)
_README: Final = """\
memories.md   what is known of you, oldest first, readable with any text editor
data/         everything that is stored of you, a JSON object per line
files/        your files
"""


def export(user_pk: UUID, *, actor: Actor) -> IO[bytes]:
    """Return the archive as an open file, which is gone when it is closed. Raises: `NotFound`, `NoSpace`."""
    expiry.end_due(user_pk)
    user = existing(MemoryUser.objects.filter(pk=user_pk), _("There is no such user."))
    with temporary_file() as (_descriptor, path):
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("README.txt", _README)
            with consistent_read():
                stored = files.of_rows(user)
                with archive.open("memories.md", "w", force_zip64=True) as page:
                    for memory in markdown_export.memories_of(user):
                        page.write(markdown_export.entry_of(memory).encode())
                for table in PORTABLE:
                    if table not in _LEFT_OUT:
                        with archive.open(f"data/{table.name}.jsonl", "w", force_zip64=True) as lines:
                            for row in dump_rows(table, user):
                                lines.write(orjson.dumps(row) + b"\n")
            for key in stored:
                _add_file(archive, key.partition("/")[2], key)
        record(actor, "archive.export", "personal", user_id=user.user_id)
        return os.fdopen(os.open(path, os.O_RDONLY), "rb")


def _add_file(archive: zipfile.ZipFile, name: str, key: FileKey) -> None:
    try:
        with stored_files().open_whole(key) as source, archive.open(f"files/{name}", "w", force_zip64=True) as target:
            shutil.copyfileobj(source, target)
    except FileNotFoundError:
        archive.writestr(f"files/{name}.missing", b"")
