"""What can be done with resources; the modules of this package hold the rules."""

from resources.services.deletion import delete, finish_deletion
from resources.services.downloading import StoredContent, open_content
from resources.services.external import Registration, register
from resources.services.ingestion import ingest
from resources.services.pool import IngestionPool
from resources.services.receiving import IncomingFile
from resources.services.uploading import Upload, ingestion_pool, upload

__all__ = [
    "IncomingFile",
    "IngestionPool",
    "Registration",
    "StoredContent",
    "Upload",
    "delete",
    "finish_deletion",
    "ingest",
    "ingestion_pool",
    "open_content",
    "register",
    "upload",
]
