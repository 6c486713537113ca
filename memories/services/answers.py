"""Arrange what a search found, so that the answer is current and short: rules on the texts of the hits alone.

The engine ranks; these rules only reorder, fold and leave out. Each can be switched off by a request.
"""

from collections.abc import Sequence

from memories.services import folding
from memories.services.current import put_current_first
from memories.services.scoped_hits import ScopedHit, SearchCommand


def arrange(found: Sequence[ScopedHit], command: SearchCommand) -> list[ScopedHit]:
    """Return the hits of all scopes in the order of the answer, best first."""
    current = put_current_first(found, command)
    return folding.fold(current, command.query) if command.fold else current
