"""Round-robin order of work by user, so that one user's backlog does not delay the others."""

from __future__ import annotations

from django.db.models import Window
from django.db.models.functions import RowNumber


def turn_of_user(*order: str) -> Window:
    """Return a window expression that numbers each user's rows from 1 in the given order.

    Order rows with a `user` column by it to process users round-robin.
    """
    return Window(RowNumber(), partition_by="user_id", order_by=list(order))
