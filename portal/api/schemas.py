"""The bodies and responses of `POST /portal-links` and `POST /browser-keys`."""

from typing import Annotated

from pydantic import BaseModel, Field

from accounts.api.schemas import AuthenticatedBody, KeyScope, Time
from accounts.services import MAX_BROWSER_LIFETIME
from core.ids import UserId
from core.rest import WHOLE


class PortalLinkBody(AuthenticatedBody):
    """The link to make. With the provisioning token, `user_id` is required."""

    frame_origin: str | None = Field(
        None,
        max_length=255,
        description="The origin of the page that will show the link in a frame, one that the "
        "operator allows. Without it no page can.",
        examples=[None],
    )


class NewPortalLink(BaseModel):
    """A link to the pages of a user. It works once."""

    url: str = Field(
        description="The address to open in the user's browser. Do not open it yourself or store it.",
        examples=["https://memory.example.org/portal/open/upl_4pXn2Zr8Tq6vWs1Yb3Kd5Mf7Hj9Lc0Ga2Ne4Ru6Ti8o"],
    )
    expires_at: Time = Field(description="When the link stops working if it is not opened: in ten minutes.")
    session_seconds: int = Field(description="The seconds for which the opened pages can be used.", examples=[1800])


class BrowserKeyBody(AuthenticatedBody):
    """The user whose page calls the API, and what it may do there."""

    user_id: UserId = Field(description="The user who has the page open.", examples=["u_123"])
    scopes: list[KeyScope] = Field(
        min_length=1, max_length=5, description="What the page may do.", examples=[["search", "decide"]]
    )
    expires_in: Annotated[int, Field(ge=1, le=int(MAX_BROWSER_LIFETIME.total_seconds())), WHOLE] = Field(
        900, description="Seconds until the key expires."
    )
