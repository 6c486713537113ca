"""Users take turns, so that what one of them left undone keeps nobody else waiting."""

from __future__ import annotations

from django.db.models import Window
from django.db.models.functions import RowNumber


def turn_of_user(*order: str) -> Window:
    """To order rows by that have a `user`: the first of each user in that order is 1, the next of each 2."""
    return Window(RowNumber(), partition_by="user_id", order_by=list(order))
