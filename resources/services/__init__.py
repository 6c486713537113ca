"""Services of resources: upload, register, download, delete, restore, purge, retry."""

from resources.queries import StoredContent, content_of
from resources.services.claims import retry
from resources.services.deletion import (
    delete_as,
    deletion_of,
    expire,
    finish_deletion,
    purge,
    restore_as,
    undo_deletions,
)
from resources.services.external import Registration, register
from resources.services.ingestion import ingest
from resources.services.labeling import set_labels
from resources.services.receiving import IncomingFile
from resources.services.refused import Incoming, recorded_refusals
from resources.services.uploading import Upload, upload

__all__ = [
    "Incoming",
    "IncomingFile",
    "Registration",
    "StoredContent",
    "Upload",
    "content_of",
    "delete_as",
    "deletion_of",
    "expire",
    "finish_deletion",
    "ingest",
    "purge",
    "recorded_refusals",
    "register",
    "restore_as",
    "retry",
    "set_labels",
    "undo_deletions",
    "upload",
]
