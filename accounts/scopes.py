"""Scopes: the actions that API keys and the tokens of applications may take. Endpoints and tools name what they need.

Keys without scopes may do everything but tighten controls. `ACCOUNT` is theirs alone: no one can ask for it.
"""

from collections.abc import Iterable
from typing import Final

from core.errors import GatewayError, InvalidInput
from core.messages import Translatable as _

SEARCH: Final = "search"
ADD: Final = "add"
DECIDE: Final = "decide"
FILES: Final = "files"
CONTROLS: Final = "controls"
ACCOUNT: Final = "account"
SCOPES: Final = (SEARCH, ADD, DECIDE, FILES, CONTROLS)
"""The scopes that a key can be given."""
MEMORIES: Final = (SEARCH, ADD, DECIDE, FILES)
"""The scopes of a key that is bound to an application or an agent and names none."""
UNLIMITED: Final = frozenset({*MEMORIES, ACCOUNT})
"""The scopes of a key that names none."""
READ: Final = "memories:read"
WRITE: Final = "memories:write"
_OF_OAUTH: Final = {READ: {SEARCH, FILES}, WRITE: {ADD, DECIDE}}


class MissingScope(GatewayError):
    """The API key or token lacks the scope of an endpoint or a tool."""

    status, code, title = 403, "forbidden", _("Forbidden")

    def __init__(self, scope: str) -> None:
        sentence = _("The API key lacks the scope %(scope)s. Use a key that has it.", scope=scope)
        if scope == ACCOUNT:
            sentence = _(
                "This needs the scope %(scope)s, which only API keys without scopes, application and agent have.",
                scope=scope,
            )
        super().__init__(sentence)


def require(scopes: Iterable[str], scope: str) -> None:
    """Raise `MissingScope` if the scopes lack one."""
    if scope not in scopes:
        raise MissingScope(scope)


def of_key(stored: str) -> frozenset[str]:
    """Return the scopes of a key by its column, which is empty for a key without limits."""
    return frozenset(stored.split()) if stored else UNLIMITED


def of_oauth(granted: Iterable[str]) -> frozenset[str]:
    """Return the scopes that token scopes of OAuth stand for."""
    return frozenset(scope for name in granted for scope in _OF_OAUTH[name])


def stored(scopes: Iterable[str] | None, *, is_bound: bool) -> str:
    """Return the column of a new key. Raises: `InvalidInput` for no scope or an unknown one."""
    if scopes is None:
        return " ".join(MEMORIES) if is_bound else ""
    chosen = set(scopes)
    if not chosen or not chosen <= set(SCOPES):
        raise InvalidInput.of_field("scopes", _("must be one or more of %(choices)s", choices=", ".join(SCOPES)))
    return " ".join(scope for scope in SCOPES if scope in chosen)
