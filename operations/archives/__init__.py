"""Archives of users and backups: export, import, restore."""
