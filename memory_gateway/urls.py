from collections.abc import Callable

from django.contrib import admin
from django.http.response import HttpResponseBase
from django.urls import URLPattern, URLResolver, include, path
from django.views.decorators.gzip import gzip_page
from django.views.decorators.http import conditional_page
from django.views.generic import RedirectView
from drf_spectacular.views import SpectacularAPIView, SpectacularJSONAPIView

from agents.api.context import ContextViewSet
from memory_gateway import probes
from memory_gateway.health import HealthView
from memory_gateway.metrics import metrics
from memory_gateway.views import (
    DocsView,
    HomeView,
    no_page_of_row,
    openclaw_panel,
    robots_txt,
    security_txt,
)
from operations.api.views import FilteredDeletionViewSet


def _schema(view: Callable[..., HttpResponseBase]) -> Callable[..., HttpResponseBase]:
    """Return the view with an `ETag` and compression: every generated client reads the whole document."""
    return gzip_page(conditional_page(view))


urlpatterns: list[URLPattern | URLResolver] = [
    # Before those of memories, whose ids may be any path; these before all others, because most requests go there.
    path("memories/context", ContextViewSet.as_view({"post": "make"}), name="memory-context"),
    path("memories/forget", FilteredDeletionViewSet.as_view({"post": "forget"}), name="memory-forgetting"),
    path("memories/delete", FilteredDeletionViewSet.as_view({"post": "delete"}), name="memory-deletion"),
    path("memories/delete/<uuid:deletion_id>", FilteredDeletionViewSet.as_view({"get": "retrieve"})),
    path("memories/delete/<uuid:deletion_id>/undo", FilteredDeletionViewSet.as_view({"post": "undo"})),
    path("", include("memories.api.urls")),
    path("", HomeView.as_view(http_method_names=["get", "head"])),
    path("health", HealthView.as_view()),
    path("live", probes.live),
    path("ready", probes.ready),
    path("metrics", metrics),
    path(".well-known/security.txt", security_txt),
    path("robots.txt", robots_txt),
    path("", include("accounts.api.urls")),
    path("", include("resources.api.urls")),
    path("", include("profiles.api.urls")),
    path("", include("webhooks.api.urls")),
    path("", include("operations.api.urls")),
    path("", include("agents.api.urls")),
    path("", include("agents.mcp.urls")),
    path("", include("agents.oauth.urls")),
    path("api/schema/", _schema(SpectacularAPIView.as_view()), name="schema"),
    path("api/docs/", DocsView.as_view(), name="docs"),
    # The addresses of FastAPI, which the first gateway used.
    path("openapi.json", _schema(SpectacularJSONAPIView.as_view())),
    path("docs", RedirectView.as_view(pattern_name="docs", http_method_names=["get", "head"])),
    path("plugins/memory", openclaw_panel),
    path("plugins/memory/", openclaw_panel),
    path("plugins/memory/<path:rest>", openclaw_panel),
    path("", include("portal.urls")),
    path("admin/memory/", include("console.urls")),
    path("admin/r/<path:path>", admin.site.admin_view(no_page_of_row)),  # Django's view fails for an id that is no UUID
    path("admin/", admin.site.urls),
]

handler400 = "memory_gateway.views.bad_request"
handler403 = "memory_gateway.views.forbidden"
handler404 = "memory_gateway.views.not_found"
handler500 = "memory_gateway.views.server_error"
