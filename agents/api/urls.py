from django.urls import path

from agents.api.views import InvokeView, removed_endpoint

urlpatterns = [
    path("tools/invoke", InvokeView.as_view()),
    path("plugins/memory/api/<path:rest>", removed_endpoint),
]
