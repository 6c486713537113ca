"""The embedded engine beside an FTS5 table with a user column and beside LanceDB."""
