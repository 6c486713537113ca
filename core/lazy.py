"""Patterns and views that are made when they are first used.

A gateway is up sooner, and an idle one is small: compiling the patterns of `store.text` takes a quarter of the time to
start, and the packages behind MCP, OAuth and the OpenAPI schema a sixth of the memory.
"""

import re
from typing import Any, Protocol, cast

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.utils.module_loading import import_string


class _LazyPattern:
    def __init__(self, text: str, flags: int) -> None:
        self.pattern, self._flags = text, flags

    def __getattr__(self, name: str) -> Any:
        """Compile the pattern, and take over all its attributes: later uses cost no more than those of a pattern."""
        compiled = re.compile(self.pattern, self._flags)
        vars(self).update({one: getattr(compiled, one) for one in dir(compiled) if not one.startswith("_")})
        return getattr(compiled, name)


def lazy_pattern(text: str, flags: int = 0) -> re.Pattern[str]:
    """Return a pattern that is compiled when it is first used. The functions of `re` do not take it."""
    return cast("re.Pattern[str]", _LazyPattern(text, flags))


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
