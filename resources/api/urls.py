from __future__ import annotations

from django.urls import path

from resources.api.views import ExternalViewSet, ResourceViewSet

urlpatterns = [
    path("resources", ResourceViewSet.as_view({"get": "list_resources", "post": "create"}), name="resource-list"),
    path("resources/external", ExternalViewSet.as_view({"post": "register"}), name="resource-external"),
    path(
        "resources/<str:resource_id>",
        ResourceViewSet.as_view({"get": "retrieve", "delete": "destroy"}),
        name="resource-detail",
    ),
    path("resources/<str:resource_id>/content", ResourceViewSet.as_view({"get": "content"}), name="resource-content"),
]
