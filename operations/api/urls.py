from django.urls import path

from operations.api.views import PersonViewSet, UserErasureView, UsersViewSet

urlpatterns = [
    path("users", UsersViewSet.as_view({"post": "create", "patch": "describe", "delete": "erase"})),
    path("users/me/export", PersonViewSet.as_view({"get": "export"}), name="user-export"),
    path("users/me/audit", PersonViewSet.as_view({"get": "audit"}), name="user-audit"),
    path("users/<str:user_id>", UserErasureView.as_view()),
]
