"""Addresses of static files below the base path of the request."""

from django.contrib.staticfiles import storage
from django.urls import get_script_prefix


class StaticFilesStorage(storage.StaticFilesStorage):
    """Django's storage, whose addresses begin with the base path, which a proxy may name with each request."""

    def url(self, name: str | None) -> str:
        return get_script_prefix().rstrip("/") + super().url(name)
