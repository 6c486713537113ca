"""Every address that the gateway answers, taken from the resolver itself."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from django.urls import URLPattern, URLResolver, get_resolver
from django.urls.resolvers import RegexPattern, RoutePattern

SAMPLES = {
    "uuid": "00000000-0000-4000-8000-000000000000",
    "int": "1",
    "str": "r_x",
    "slug": "r_x",
    "path": "1",
}
ALL_METHODS = ("get", "post", "put", "patch", "delete")


class Route(NamedTuple):
    """A pattern as it is written, an address that it matches, and the methods of its view (empty: not declared)."""

    pattern: str
    address: str
    methods: frozenset[str]


def all_routes() -> list[Route]:
    return [_route(prefixes, pattern) for prefixes, pattern in _walk(get_resolver(), [])]


def _walk(resolver: URLResolver, prefixes: list[object]) -> Iterator[tuple[list[object], URLPattern]]:
    for entry in resolver.url_patterns:
        here = [*prefixes, entry.pattern]
        if isinstance(entry, URLResolver):
            yield from _walk(entry, here)
        else:
            yield here, entry


def _route(patterns: list[object], entry: URLPattern) -> Route:
    return Route(
        pattern="/" + "".join(str(pattern) for pattern in patterns),
        address="/" + "".join(_sample(pattern) for pattern in patterns),
        methods=_methods(entry),
    )


def _sample(pattern: object) -> str:
    if isinstance(pattern, RegexPattern):  # the catch-all of Django's admin
        return "anything"
    assert isinstance(pattern, RoutePattern)
    sample = str(pattern)
    for name, converter in pattern.converters.items():
        kind = type(converter).__name__.removesuffix("Converter").lower()
        for written in (f"<{kind}:{name}>", f"<{name}>"):
            sample = sample.replace(written, SAMPLES[kind if kind in SAMPLES else "str"])
    return sample


def _methods(entry: URLPattern) -> frozenset[str]:
    view_class = getattr(entry.callback, "cls", getattr(entry.callback, "view_class", None))
    actions = getattr(entry.callback, "actions", None)
    if actions:
        return frozenset(method.upper() for method in actions if method != "head")
    if view_class is None:
        return frozenset()
    names = getattr(entry.callback, "view_initkwargs", {}).get("http_method_names", ALL_METHODS)
    return frozenset(name.upper() for name in names if name != "head" and hasattr(view_class, name))
