"""API documentation page: Swagger UI from the gateway's own static files, under a strict content security policy."""

from __future__ import annotations

from typing import Any

from csp.constants import SELF
from csp.decorators import csp_update
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.utils.decorators import method_decorator
from django.views.generic import TemplateView


class DocsView(TemplateView):
    """The Swagger UI page. It draws icons from `data:` addresses; the policy allows nothing else from outside."""

    template_name = "docs.html"

    @method_decorator(csp_update({"img-src": [SELF, "data:"]}))
    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        return super().dispatch(request, *args, **kwargs)
