from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar
from uuid import UUID


@dataclass(frozen=True, slots=True)
class Principal:
    """The caller: the user whose API key was presented. `request.user` in every API view."""

    user_pk: UUID
    user_id: str
    key_id: UUID
    is_authenticated: ClassVar[bool] = True
