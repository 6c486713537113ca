"""Traces of requests, engine calls, SQL statements and tasks, for OpenTelemetry.

Nothing is traced until `start` is called, which needs the extra `otel`. Spans contain no values: routes, statements
with placeholders, task names.
"""

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Final, Protocol

Attributes = Mapping[str, str | int]
_NONE: Final = nullcontext()


class Tracer(Protocol):
    """The methods of `memory_gateway.telemetry.Telemetry`, which sends to a collector."""

    def span(self, name: str, attributes: Attributes, link: object) -> AbstractContextManager[object]: ...

    def request(self, method: str, headers: Mapping[str, str]) -> AbstractContextManager[object]: ...

    def annotate(self, name: str, attributes: Attributes) -> None: ...

    def current(self) -> object: ...

    def record_seconds(self, name: str, seconds: float, attributes: Attributes) -> None: ...


_tracer: Tracer | None = None


def start(tracer: Tracer) -> None:
    """Trace everything from now on."""
    global _tracer  # noqa: PLW0603 - set once, at the start of the process
    _tracer = tracer


def span(name: str, attributes: Attributes | None = None, *, link: object = None) -> AbstractContextManager[object]:
    """Trace the block as a part of the current span, or as a separate trace that `link` led to."""
    return _tracer.span(name, attributes or {}, link) if _tracer else _NONE


def request(method: str, headers: Mapping[str, str]) -> AbstractContextManager[object]:
    """Trace the block as an HTTP request, as a part of the trace that its headers name."""
    return _tracer.request(method, headers) if _tracer else _NONE


def annotate(name: str, attributes: Attributes) -> None:
    """Name the current span and add attributes."""
    if _tracer:
        _tracer.annotate(name, attributes)


def current() -> object:
    """Return the current span, as the `link` of a later one; None without tracing."""
    return _tracer.current() if _tracer else None


def record_seconds(name: str, seconds: float, attributes: Attributes) -> None:
    """Add a duration to a histogram."""
    if _tracer:
        _tracer.record_seconds(name, seconds, attributes)
