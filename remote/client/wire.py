"""Validate answers of EverOS 1.0 to 1.6 as typed values: limited size, JSON only, unknown keys ignored."""

import logging
from collections.abc import Iterator
from typing import Annotated, Any, ClassVar, Literal, Self

import orjson
from pydantic import (
    AfterValidator,
    AwareDatetime,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ModelWrapValidatorHandler,
    PrivateAttr,
    ValidationError,
    model_validator,
)

from core.json_data import without_base64
from core.network.http_client import Response
from core.storable import Repair, parse_json
from remote.client.failures import invalid_response
from store.types import MemoryType

logger = logging.getLogger("memory_gateway.remote")

_MAX_ANSWER_BYTES = 16 * 2**20
_MAX_ERROR_BYTES = 64 * 1024
_MAX_REQUEST_ID_CHARS = 128


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

    @classmethod
    def checked(cls, data: Any) -> Self:
        """Return EverOS's data as a typed value. Raises: `InvalidResponse`, whose log line contains no values."""
        try:
            return cls.model_validate(data)
        except ValidationError as error:
            first = error.errors(include_url=False, include_context=False, include_input=False)[0]
            raise invalid_response(f"{cls.__name__}.{'.'.join(map(str, first['loc']))}: {first['msg']}") from None


class Envelope(_Wire):
    """A successful answer; `data` is not validated yet."""

    request_id: Annotated[str, AfterValidator(lambda text: text[:_MAX_REQUEST_ID_CHARS])] = ""
    data: Any = None


class _Error(_Wire):
    code: str = ""
    message: str = ""


class _Refusal(_Wire):
    """An error, as `{"error": {...}}` of EverOS or `{"detail": …}` of FastAPI."""

    error: _Error | None = None
    detail: Any = None


class Queued(_Wire):
    """The data of a 202. The request id of the answer is the task id."""

    status: Literal["queued"]


class Task(_Wire):
    status: Literal["pending", "queued", "processing", "success", "failed"]
    error_code: str | None = None


class Added(_Wire):
    status: Literal["accumulated", "extracted"]


class Flushed(_Wire):
    status: Literal["extracted", "no_extraction"]


class Specification(_Wire):
    """EverOS's OpenAPI document."""

    paths: dict[str, Any]


class Deleted(_Wire):
    count: Annotated[int, Field(ge=0)]


class DeletedByIds(_Wire):
    deleted: Annotated[int, Field(ge=0)]


class Record(_Wire):
    """The fields that all five kinds of memories share. `created_at_ms` is 0 for a kind without a time."""

    memory_type: ClassVar[MemoryType]
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


# `filed_under` is the user or agent that the memory belongs to.


class Episode(_Timed):
    """An episode. `session_id` is null for a merged episode."""

    memory_type = "episode"
    filed_under: str | None = Field(alias="user_id")
    text: str = Field(alias="episode")


class _Statement(_Wire):
    description: str = ""


class _ProfileData(_Wire):
    summary: str | None = None
    explicit_info: list[_Statement] = []
    profile_timestamp_ms: int | None = None


class Profile(Record):
    memory_type = "profile"
    filed_under: str | None = Field(alias="user_id")
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
    memory_type = "agent_case"
    filed_under: str = Field(alias="agent_id")
    task_intent: str
    approach: str

    @property
    def text(self) -> str:
        return f"{self.task_intent}\n{self.approach}"


class AgentSkill(Record):
    memory_type = "agent_skill"
    filed_under: str = Field(alias="agent_id")
    text: str = Field(alias="content")


class _Item(_Wire):
    text: str | None = None
    name: str | None = None


class PendingMessage(_Timed):
    """A message that is not flushed yet. `content` is a text, or the items of the message."""

    memory_type = "unprocessed_message"
    filed_under: ClassVar[None] = None
    session_id: str
    content: str | list[_Item]

    @property
    def text(self) -> str:
        if isinstance(self.content, str):
            return self.content
        return "\n".join(item.text or item.name or "" for item in self.content)


AnyRecord = Episode | Profile | AgentCase | AgentSkill | PendingMessage


class Records(_Wire):
    """The five lists of a search answer, validated together. File contents are left out."""

    episodes: list[Episode] = []
    profiles: list[Profile] = []
    agent_cases: list[AgentCase] = []
    agent_skills: list[AgentSkill] = []
    unprocessed_messages: list[PendingMessage] = []

    _data: dict[str, list[_Json]] = PrivateAttr()

    @model_validator(mode="wrap")
    @classmethod
    def _keep(cls, data: Any, check: ModelWrapValidatorHandler[Self]) -> Self:
        records = check(data)
        records._data = without_base64(data)  # noqa: SLF001
        return records

    def all(self) -> Iterator[tuple[AnyRecord, _Json]]:
        """Yield each record with the JSON that EverOS sent, without file contents."""
        for name in ("episodes", "agent_cases", "agent_skills", "profiles", "unprocessed_messages"):
            yield from zip(getattr(self, name), self._data.get(name, ()), strict=True)


class Page(Records):
    """One page of a listing. `total_count` counts all pages."""

    total_count: int


class HealthAnswer(_Wire):
    """`{"status": "ok"}` up to 1.1; later versions add capabilities."""

    status: str
    capabilities: dict[str, bool] = {}

    def can(self, name: str) -> bool:
        """Return the capability, True for older versions, which do not report any."""
        return self.capabilities.get(name, True)


def read_json(response: Response) -> Any:
    """Return the JSON body, made storable. Raises: `InvalidResponse` for anything else."""
    content_type = response.headers.get("content-type", "").partition(";")[0].strip().lower()
    if content_type != "application/json":
        raise invalid_response(f"{response.status} as {content_type[:80] or 'nothing'}")
    body, repair = response.body(_MAX_ANSWER_BYTES), Repair()
    try:
        value = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        try:
            value = parse_json(body)  # also with lone surrogates and long numbers
        except ValueError:
            raise invalid_response(f"not valid JSON: {error}") from None
    value = repair.json("answer", value)
    if repair.changes:
        logger.warning("EverOS: part of an answer was replaced: %s", repair.changes[0].message)
    return value


def read_refusal(response: Response) -> tuple[str, str]:
    """Return the code and text of an error; the code is empty for answers of proxies."""
    body = response.body(_MAX_ERROR_BYTES)
    try:
        refusal = _Refusal.model_validate_json(body)
    except ValidationError:
        return "", body.decode("utf-8", "replace")
    error = refusal.error or _Error(message=str(refusal.detail or ""))
    return error.code, error.message
