"""The indexes of words. `VENDORS` are the operations of the keyword index that depend on the database."""

from typing import Final

from store.index import postgresql, sqlite

VENDORS: Final = {"sqlite": sqlite, "postgresql": postgresql}
