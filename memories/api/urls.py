from __future__ import annotations

from django.urls import path

from memories.api import views

urlpatterns = [
    path("memories/search", views.SearchViewSet.as_view({"post": "search"}), name="memory-search"),
]
