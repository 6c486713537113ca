from django.urls import path

from accounts.api.views import ControlsViewSet, KeyViewSet

urlpatterns = [
    path("users/me/controls", ControlsViewSet.as_view({"get": "retrieve", "put": "tighten"})),
    path("users/me/keys", KeyViewSet.as_view({"get": "list_keys", "post": "create"})),
    path("users/me/keys/rotate", KeyViewSet.as_view({"post": "rotate"})),
    path("users/me/keys/<uuid:key_id>", KeyViewSet.as_view({"delete": "destroy"})),
]
