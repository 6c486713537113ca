"""Re-ingest: files are read again, and sessions are sent to the remote, for the first time or again."""
