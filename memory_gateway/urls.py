from __future__ import annotations

from django.contrib import admin
from django.urls import URLPattern, URLResolver, include, path
from django.views.generic import RedirectView
from drf_spectacular.views import SpectacularAPIView, SpectacularJSONAPIView

from agents.rpc.removed_endpoints import removed_endpoint
from memory_gateway.api_docs import DocsView
from memory_gateway.health import HealthView
from memory_gateway.metrics import metrics
from memory_gateway.openclaw_panel import memory_page

urlpatterns: list[URLPattern | URLResolver] = [
    path("", include("memories.api.urls")),  # first, because most requests go there
    path("", RedirectView.as_view(pattern_name="docs", http_method_names=["get", "head"])),
    path("health", HealthView.as_view()),
    path("metrics", metrics),
    path("", include("accounts.api.urls")),
    path("", include("resources.api.urls")),
    path("", include("profiles.api.urls")),
    path("", include("operations.api.urls")),
    path("", include("agents.api.urls")),
    path("api/schema/", SpectacularAPIView.as_view(), name="schema"),
    path("api/docs/", DocsView.as_view(), name="docs"),
    # The addresses of FastAPI, which the first gateway used.
    path("openapi.json", SpectacularJSONAPIView.as_view()),
    path("docs", RedirectView.as_view(pattern_name="docs", http_method_names=["get", "head"])),
    path("plugins/memory", memory_page),
    path("plugins/memory/", memory_page),
    path("plugins/memory/api/<path:rest>", removed_endpoint),
    path("plugins/memory/<path:rest>", memory_page),
    path("admin/memory/", include("console.urls")),
    path("admin/", admin.site.urls),
]

handler400 = "memory_gateway.error_views.bad_request"
handler403 = "memory_gateway.error_views.forbidden"
handler404 = "memory_gateway.error_views.not_found"
handler500 = "memory_gateway.error_views.server_error"
