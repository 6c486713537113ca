"""EverOS's answers as typed values, versions 1.0 to 1.5: used fields are validated, unknown keys are ignored."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import (
    AwareDatetime,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ModelWrapValidatorHandler,
    PrivateAttr,
    model_validator,
)


def _only_text(value: Any) -> Any:
    if not isinstance(value, str):
        raise ValueError("must be a time as text")  # noqa: TRY004  pydantic expects ValueError
    return value


_Moment = Annotated[AwareDatetime, Field(strict=False), BeforeValidator(_only_text)]
_Score = Annotated[float, Field(allow_inf_nan=False)]
_Id = Annotated[str, Field(min_length=1, max_length=256)]
_Json = dict[str, Any]


class _Wire(BaseModel):
    model_config = ConfigDict(strict=True, extra="ignore", frozen=True)


class Queued(_Wire):
    """The data of a 202. The request id of the answer is the task id."""

    status: Literal["queued"]


class Task(_Wire):
    status: Literal["pending", "queued", "processing", "success", "failed"]
    error_code: str | None = None

    @property
    def is_over(self) -> bool:
        return self.status in {"success", "failed"}


class Added(_Wire):
    """The data of an add. Version 1.0.0 sends no `message_count`."""

    status: Literal["accumulated", "extracted"]
    message_count: int | None = None


class Flushed(_Wire):
    status: Literal["extracted", "no_extraction"]


class Record(_Wire):
    """The fields that all five kinds of memories share. `created_at_ms` is 0 for a kind without a time."""

    id: _Id
    app_id: str = "default"
    project_id: str = "default"
    session_id: str | None = None
    score: _Score | None = None

    @property
    def created_at_ms(self) -> int:
        return 0


class _Timed(Record):
    timestamp: _Moment

    @property
    def created_at_ms(self) -> int:
        return int(self.timestamp.timestamp() * 1000)


class Episode(_Timed):
    """An episode of `user_id`. `session_id` is null for a merged episode."""

    user_id: str | None
    episode: str


class _Statement(_Wire):
    description: str = ""


class _ProfileData(_Wire):
    summary: str | None = None
    explicit_info: list[_Statement] = []
    profile_timestamp_ms: int | None = None


class Profile(Record):
    user_id: str | None
    profile_data: _ProfileData

    @property
    def created_at_ms(self) -> int:
        return self.profile_data.profile_timestamp_ms or 0

    @property
    def text(self) -> str:
        """Return the summary, or the descriptions if EverOS made none."""
        data = self.profile_data
        return data.summary or "\n".join(item.description for item in data.explicit_info if item.description)


class AgentCase(_Timed):
    agent_id: str
    task_intent: str
    approach: str


class AgentSkill(Record):
    agent_id: str
    name: str
    content: str


class _Item(_Wire):
    type: str
    text: str | None = None
    name: str | None = None


class PendingMessage(_Timed):
    """A message that is not flushed yet. `content` is a string or the items as they were sent."""

    session_id: str
    sender_id: str
    role: str
    content: str | list[_Item]

    @property
    def text(self) -> str:
        if isinstance(self.content, str):
            return self.content
        return "\n".join(item.text or item.name or "" for item in self.content)


class Records(_Wire):
    """The five lists of a search answer, validated together."""

    episodes: list[Episode] = []
    profiles: list[Profile] = []
    agent_cases: list[AgentCase] = []
    agent_skills: list[AgentSkill] = []
    unprocessed_messages: list[PendingMessage] = []
    _as_it_came: dict[str, list[_Json]] = PrivateAttr()

    @model_validator(mode="wrap")
    @classmethod
    def _keep(cls, data: Any, check: ModelWrapValidatorHandler[Self]) -> Self:
        records = check(data)
        records._as_it_came = data  # noqa: SLF001
        return records

    @property
    def as_it_came(self) -> dict[str, list[_Json]]:
        """Return the raw lists by name, for the `raw` of hits."""
        return self._as_it_came


class Page(Records):
    """One page of a listing. `total_count` counts all pages."""

    total_count: int


class HealthAnswer(_Wire):
    """`{"status": "ok"}` up to 1.1; later versions add version and capabilities."""

    status: str
    version: str | None = None
    capabilities: dict[str, bool] = {}

    def can(self, name: str) -> bool:
        """Return the capability, True for older versions, which do not report any."""
        return self.capabilities.get(name, True)
