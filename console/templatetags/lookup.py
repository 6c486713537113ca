"""Values of mappings in templates."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django import template

register = template.Library()


@register.filter
def of(mapping: Mapping[Any, Any], key: Any) -> Any:
    """What belongs to the key; the key itself where nothing does."""
    return mapping.get(key, key)
