"""Request and response shapes of `/users/me/expiry`."""

from typing import Annotated

from pydantic import BaseModel, Field

from accounts.api.schemas import AuthenticatedBody
from core.rest import WHOLE

MAX_DEFAULTS = 100
MAX_DAYS = 36_500
_NAMES = "by category, or `tag:` and a tag"

Days = Annotated[dict[str, Annotated[int, Field(ge=1, le=MAX_DAYS), WHOLE]], Field(max_length=MAX_DEFAULTS)]


class ExpiryBody(AuthenticatedBody):
    """The defaults of the caller, in the place of the former ones."""

    days: Days = Field(
        description=f"After how many days new memories expire, {_NAMES}; the earliest counts. Empty: no defaults.",
        examples=[{"full_context_user": 90, "tag:draft": 7}],
    )


class ExpiryOut(BaseModel):
    """After how many days memories expire that name no time."""

    days: dict[str, int] = Field(
        description=f"The caller's defaults, {_NAMES}.", examples=[{"full_context_user": 90, "tag:draft": 7}]
    )
    installation: dict[str, int] = Field(
        description="The defaults of the gateway, which count too: of several the earliest.", examples=[{}]
    )
