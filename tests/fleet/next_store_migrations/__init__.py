"""The migrations of `store`, and one of a later version."""

from store import migrations

__path__ += migrations.__path__
