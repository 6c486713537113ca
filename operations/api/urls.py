from django.urls import path

from operations.api.views import UserErasureView, UsersViewSet

urlpatterns = [
    path("users", UsersViewSet.as_view({"post": "create", "delete": "erase"})),
    path("users/<str:user_id>", UserErasureView.as_view()),
]
