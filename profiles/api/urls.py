from __future__ import annotations

from typing import Any

from django.urls import path

from profiles.api.views import MemoriesViewSet, UserMemoryViewSet, WorkMemoryViewSet

_DOCUMENT: dict[str, Any] = {"get": "retrieve", "put": "update", "patch": "partial_update"}
_BOTH: dict[str, Any] = {"get": "list_both"}

urlpatterns = [
    path("api/v1/memories/", MemoriesViewSet.as_view(_BOTH), name="profile-list"),
    path("api/v1/memories", MemoriesViewSet.as_view(_BOTH, schema=None)),  # an alias, listed once in the schema
    path("api/v1/memories/user", UserMemoryViewSet.as_view(_DOCUMENT), name="profile-user"),
    path("api/v1/memories/work", WorkMemoryViewSet.as_view(_DOCUMENT), name="profile-work"),
    path("api/v1/memories/prompt", MemoriesViewSet.as_view({"get": "prompt"}), name="profile-prompt"),
    path(
        "api/v1/memories/schema/<str:kind>",
        MemoriesViewSet.as_view({"get": "json_schema"}),
        name="profile-schema",
    ),
    path(
        "api/v1/memories/<str:kind>/history",
        MemoriesViewSet.as_view({"get": "history"}),
        name="profile-history",
    ),
    path(
        "api/v1/memories/<str:kind>/history/<int:version>",
        MemoriesViewSet.as_view({"get": "version"}),
        name="profile-version",
    ),
    path(
        "api/v1/memories/<str:kind>/restore/<int:version>",
        MemoriesViewSet.as_view({"post": "restore"}),
        name="profile-restore",
    ),
]
