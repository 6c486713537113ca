"""Base classes of the generated models, and the one model that is no schema."""

from typing import Any, Self

from pydantic import BaseModel, ConfigDict, PrivateAttr


class Model(BaseModel):
    """Base class of all models."""

    model_config = ConfigDict(frozen=True)


class Versioned(Model):  # noqa: PLW1641  pydantic gives frozen models a hash of their fields
    """Base class of models whose version an answer names."""

    _etag: str = PrivateAttr("")

    @property
    def etag(self) -> str:
        """The version, for `if_match` of a change. Empty for an item of a list."""
        return self._etag

    def __eq__(self, other: object) -> bool:
        """Compare the fields: an item of a list has no version."""
        return isinstance(other, type(self)) and self.model_dump() == other.model_dump()

    def of_version(self, etag: str) -> Self:
        """Set the version, and return the model."""
        self._etag = etag
        return self


class Profile(Model):
    """A profile document, null while an operator has disabled it. Send `etag` as `if_match` with a change."""

    content: dict[str, Any] | None
    etag: str
