"""Views that are loaded when they are first called.

An idle gateway is small: the packages behind MCP, OAuth and the OpenAPI schema take a sixth of the memory.
"""

from typing import Any, Protocol, cast

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.utils.module_loading import import_string


class View(Protocol):
    def __call__(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase: ...


def lazy_view(dotted_path: str, *, csrf_exempt: bool = False) -> View:
    """Return a view that calls the function with this path, whose module is loaded by the first request.

    `csrf_exempt` must equal the function's: Django reads it before the function is loaded.
    """

    def view(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        return cast(View, import_string(dotted_path))(request, *args, **kwargs)

    view.csrf_exempt = csrf_exempt  # type: ignore[attr-defined]
    view.dotted_path = dotted_path  # type: ignore[attr-defined]
    return view
