"""Services of resources: upload, register, download, delete, retry."""

from resources.services.deletion import delete, delete_as, finish_deletion
from resources.services.downloading import StoredContent, content_of, open_content
from resources.services.external import Registration, register
from resources.services.ingestion import ingest
from resources.services.pool import IngestionPool
from resources.services.receiving import IncomingFile
from resources.services.retrying import retry
from resources.services.uploading import Upload, ingestion_pool, upload, upload_as

__all__ = [
    "IncomingFile",
    "IngestionPool",
    "Registration",
    "StoredContent",
    "Upload",
    "content_of",
    "delete",
    "delete_as",
    "finish_deletion",
    "ingest",
    "ingestion_pool",
    "open_content",
    "register",
    "retry",
    "upload",
    "upload_as",
]
