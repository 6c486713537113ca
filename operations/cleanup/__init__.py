"""Purge the trash, move orphaned files into quarantine, remove deleted text from database files."""
