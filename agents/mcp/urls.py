from django.urls import path

from agents.mcp.views import endpoint

urlpatterns = [path("mcp", endpoint), path("mcp/", endpoint)]
