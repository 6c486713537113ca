"""Counting the calls of an engine, whichever it is."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec, Protocol, TypeVar

from memory_gateway.core.metrics import engine_call

_P = ParamSpec("_P")
_R = TypeVar("_R")


class _Named(Protocol):
    name: str


_Engine = TypeVar("_Engine", bound=_Named)


def measured(method: Callable[Concatenate[_Engine, _P], _R]) -> Callable[Concatenate[_Engine, _P], _R]:
    """A call under the name of its method."""

    @wraps(method)
    def counted(self: _Engine, /, *args: _P.args, **kwargs: _P.kwargs) -> _R:
        with engine_call(self.name, method.__name__):
            return method(self, *args, **kwargs)

    return counted
