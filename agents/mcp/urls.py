from django.urls import path

from core.lazy import lazy_view

_endpoint = lazy_view("agents.mcp.views.endpoint", csrf_exempt=True)
urlpatterns = [path("mcp", _endpoint), path("mcp/", _endpoint)]
