from typing import Any

from django.urls import path

from profiles.api.views import MemoriesViewSet, UserMemoryViewSet, WorkMemoryViewSet

_DOCUMENT: dict[str, Any] = {"get": "retrieve", "put": "update", "patch": "partial_update"}
_BOTH: dict[str, Any] = {"get": "list_both"}

urlpatterns = [
    path("api/v1/memories/", MemoriesViewSet.as_view(_BOTH)),
    path("api/v1/memories", MemoriesViewSet.as_view(_BOTH, schema=None)),  # an alias, not in the API documentation
    path("api/v1/memories/user", UserMemoryViewSet.as_view(_DOCUMENT)),
    path("api/v1/memories/work", WorkMemoryViewSet.as_view(_DOCUMENT)),
    path("api/v1/memories/prompt", MemoriesViewSet.as_view({"get": "prompt"})),
    path("api/v1/memories/schema/<str:kind>", MemoriesViewSet.as_view({"get": "json_schema"})),
    path("api/v1/memories/<str:kind>/history", MemoriesViewSet.as_view({"get": "history"})),
    path("api/v1/memories/<str:kind>/history/<int:version>", MemoriesViewSet.as_view({"get": "version"})),
    path("api/v1/memories/<str:kind>/restore/<int:version>", MemoriesViewSet.as_view({"post": "restore"})),
]
