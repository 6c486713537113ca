"""The installed gateway. Its apps are below this package, and `__main__` puts them on the import path."""
