"""The body and the response of `POST /portal-links`."""

from pydantic import BaseModel, Field

from accounts.api.schemas import AuthenticatedBody, Time


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
