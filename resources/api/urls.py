from django.urls import path

from resources.api.views import ExternalViewSet, ResourceViewSet, TrashViewSet

urlpatterns = [
    path("resources", ResourceViewSet.as_view({"get": "list_resources", "post": "create"})),
    path("resources/external", ExternalViewSet.as_view({"post": "register"})),
    path(
        "resources/<str:resource_id>",
        ResourceViewSet.as_view({"get": "retrieve", "patch": "label", "delete": "destroy"}),
    ),
    path("resources/<str:resource_id>/content", ResourceViewSet.as_view({"get": "content"})),
    path("resources/<str:resource_id>/restore", TrashViewSet.as_view({"post": "restore"})),
]
