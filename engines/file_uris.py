"""The check of `file://` addresses at the moment of use.

Services check what a request brings. Rows of the journal, of resources and of imported archives may hold addresses that
no request could bring today: the setting changed, or an older version took them.
"""

from __future__ import annotations

from core.errors import Unreadable
from core.url_policy import AddressPolicy, BadAddress, file_path, is_file
from store.types import ContentItem


def require_allowed(item: ContentItem) -> None:
    """Errors: `Unreadable` if an engine would read the item from a `file://` address outside the allowed folders."""
    uri = item.ingest_uri or item.uri or ""
    if item.file is not None or not is_file(uri):
        return
    try:
        file_path(uri, AddressPolicy.from_settings())
    except BadAddress as error:
        raise Unreadable(f"The address {error}.") from None
