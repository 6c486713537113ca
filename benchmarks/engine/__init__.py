"""Compare the embedded engine with an FTS5 table that has a user column, and with LanceDB."""
