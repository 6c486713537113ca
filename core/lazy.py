"""Views that are loaded when they are first called.

An idle gateway is small: the packages behind MCP, OAuth and the OpenAPI schema take a sixth of the memory.
"""

from collections.abc import Callable
from typing import Any

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.utils.module_loading import import_string


def lazy_view(dotted_path: str, *, csrf_exempt: bool = False) -> Callable[..., HttpResponseBase]:
    """Return a view that calls the function with this path, whose module is loaded by the first request.

    `csrf_exempt` must equal the function's: Django reads it before the function is loaded.
    """

    def view(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        response: HttpResponseBase = import_string(dotted_path)(request, *args, **kwargs)
        return response

    view.csrf_exempt = csrf_exempt  # type: ignore[attr-defined]
    view.dotted_path = dotted_path  # type: ignore[attr-defined]
    return view
