"""Patterns that are compiled when they are first used: those of `store.text` took a quarter of the time to start."""

import re
from typing import Any, cast


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
