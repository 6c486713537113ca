"""Counting the calls of an engine, whichever it is."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import cache, wraps
from typing import Concatenate, ParamSpec, Protocol, TypeVar

from prometheus_client import Counter, Histogram

from core.errors import GatewayError
from core.metrics import ENGINE_CALLS, ENGINE_SECONDS

_P = ParamSpec("_P")
_R = TypeVar("_R")


class _Labelled(Protocol):
    label: str


_Engine = TypeVar("_Engine", bound=_Labelled)


def measured(method: Callable[Concatenate[_Engine, _P], _R]) -> Callable[Concatenate[_Engine, _P], _R]:
    """A call under the name of its method: its outcome is `ok`, or the code of the error that it ends with."""
    call = method.__name__

    @wraps(method)
    def counted(self: _Engine, /, *args: _P.args, **kwargs: _P.kwargs) -> _R:
        began, outcome = time.perf_counter(), "ok"
        try:
            return method(self, *args, **kwargs)
        except GatewayError as error:
            outcome = error.code
            raise
        except Exception:
            outcome = "error"
            raise
        finally:
            _calls(self.label, call, outcome).inc()
            _seconds(self.label, call).observe(time.perf_counter() - began)

    return counted


# Looking a counter up by its labels costs more than counting.


@cache
def _calls(engine: str, call: str, outcome: str) -> Counter:
    return ENGINE_CALLS.labels(engine, call, outcome)


@cache
def _seconds(engine: str, call: str) -> Histogram:
    return ENGINE_SECONDS.labels(engine, call)
