from __future__ import annotations

from django.urls import path

from agents.api.views import InvokeView

urlpatterns = [path("tools/invoke", InvokeView.as_view())]
