from django.urls import path

from operations.api.views import UserErasureView

urlpatterns = [path("users/<str:user_id>", UserErasureView.as_view())]
