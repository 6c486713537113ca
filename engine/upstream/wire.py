"""EverOS's answers as typed values, for versions 1.0 to 1.5: what we use is checked, unknown keys are let through."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

_Moment = Annotated[AwareDatetime, Field(strict=False)]  # a string on the wire
_Score = Annotated[float, Field(allow_inf_nan=False)]
_Id = Annotated[str, Field(min_length=1, max_length=256)]
_Json = dict[str, Any]


class _Wire(BaseModel):
    model_config = ConfigDict(strict=True, extra="ignore", frozen=True)


class Queued(_Wire):
    """What a 202 carries; the task's id is the answer's request id."""

    status: Literal["queued"]


class Task(_Wire):
    status: Literal["pending", "queued", "processing", "success", "failed"]
    error_code: str | None = None

    @property
    def is_over(self) -> bool:
        return self.status in {"success", "failed"}


class Added(_Wire):
    """1.0.0 gives no `message_count`."""

    status: Literal["accumulated", "extracted"]
    message_count: int | None = None


class Flushed(_Wire):
    status: Literal["extracted", "no_extraction"]


class Episode(_Wire):
    """`session_id` is null for a merged episode. `user_id` is whose it is."""

    id: _Id
    user_id: str | None
    app_id: str = "default"
    project_id: str = "default"
    session_id: str | None = None
    timestamp: _Moment
    episode: str
    subject: str | None = None
    summary: str | None = None
    score: _Score | None = None


class _ProfileData(_Wire):
    summary: str | None = None
    profile_timestamp_ms: int | None = None


class Profile(_Wire):
    id: _Id
    user_id: str | None
    app_id: str = "default"
    project_id: str = "default"
    profile_data: _ProfileData
    score: _Score | None = None


class AgentCase(_Wire):
    id: _Id
    agent_id: str
    app_id: str = "default"
    project_id: str = "default"
    session_id: str | None = None
    timestamp: _Moment
    task_intent: str
    approach: str
    score: _Score | None = None


class AgentSkill(_Wire):
    id: _Id
    agent_id: str
    app_id: str = "default"
    project_id: str = "default"
    name: str
    content: str
    score: _Score | None = None


class PendingMessage(_Wire):
    """A message that no flush has turned into memories yet; `content` is a string or the items as they were sent."""

    id: _Id
    app_id: str = "default"
    project_id: str = "default"
    session_id: str
    sender_id: str
    role: str
    content: str | list[_Json]
    timestamp: _Moment


class Records(_Wire):
    """The five lists of a search as they came: each record is checked by itself, and kept as the hit's `raw`."""

    episodes: list[_Json] = []
    profiles: list[_Json] = []
    agent_cases: list[_Json] = []
    agent_skills: list[_Json] = []
    unprocessed_messages: list[_Json] = []


class Page(_Wire):
    """One page of a listing; `total_count` counts all pages."""

    episodes: list[_Json] = []
    agent_cases: list[_Json] = []
    total_count: int


class HealthAnswer(_Wire):
    """`{"status": "ok"}` up to 1.1; later versions say what they are and can do."""

    status: str
    version: str | None = None
    capabilities: dict[str, bool] = {}


MAX_VERSION_PARTS = 3


def version_of(text: str | None) -> tuple[int, ...]:
    """ "1.5.1" as (1, 5, 1); (1, 0) for servers that do not say."""
    parts = (text or "1.0").split(".")[:MAX_VERSION_PARTS]
    return tuple(int(part) if part.isdigit() else 0 for part in parts)
