"""Request and response shapes of `POST /memories/search`."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    AwareDatetime,
    BaseModel,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    TypeAdapter,
    with_config,
)
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, core_schema
from typing_extensions import TypedDict

from accounts.api.schemas import ScopedBody
from core.ids import MAX_SESSION_ID_CHARS, Name, check_session_id
from core.messages import Translatable as _
from core.rest import WHOLE
from core.shapes import shared
from documents.mime_types import ContentType
from memories.api.schemas.memories import (
    AsOf,
    ExternalIdOut,
    Importance,
    KindOfMemory,
    MemoryId,
    MemoryMetadata,
    MemoryTags,
    SessionKey,
)
from memories.api.schemas.messages import TimeZone
from memories.services.scoped_hits import Scope, SearchCommand
from store.filters import MAX_LIST, MAX_MS
from store.neighbors import MAX_NEIGHBORS
from store.types import MAX_TOP_K, Method, Role

TOP_K = 8  # of a search without it
DEFAULT_TOP_K = 20  # of a search with -1
MAX_QUERY_CHARS = 8192
_MAX_CHAT_CHARS = MAX_SESSION_ID_CHARS - len("chat:")


def _check_conversation_id(value: str) -> str:
    try:
        check_session_id(f"chat:{value}" if value else "")
    except ValueError:
        raise ValueError(
            _("must be 1 to %(number)s characters without control characters", number=_MAX_CHAT_CHARS)
        ) from None
    return value


ConversationId = Annotated[
    str,
    AfterValidator(_check_conversation_id),
    Field(json_schema_extra={"pattern": rf"^[^\u0000-\u001f\u007f-\u009f\u2028\u2029]{{1,{_MAX_CHAT_CHARS}}}$"}),
]


Query = Annotated[str, Field(max_length=MAX_QUERY_CHARS, description="What to search for, in any language.")]


def _check_top_k(value: int) -> int:
    if value == -1:
        return DEFAULT_TOP_K
    if 1 <= value <= MAX_TOP_K:
        return value
    raise ValueError(_("must be 1 to 100, or -1 for the default of %(number)s", number=DEFAULT_TOP_K))


# `store.filters` reads filters; these types only describe them in the schema.
_OBJECT = ConfigDict(extra="forbid", json_schema_extra={"minProperties": 1})

_Text = Annotated[str, Field(max_length=512)]
_Texts = Annotated[list[_Text], Field(min_length=1, max_length=MAX_LIST)]
_Milliseconds = Annotated[int, Field(ge=0, le=MAX_MS)]
_Moment = Annotated[str, Field(json_schema_extra={"format": "date-time"})]
_Time = _Milliseconds | _Moment
_Times = Annotated[list[_Time], Field(min_length=1, max_length=MAX_LIST)]

_EQ = Field(description="Equal to this value.")
_NE = Field(description="Different from this value.")
_GT = Field(description="Greater than this value.")
_GTE = Field(description="Greater than or equal to this value.")
_LT = Field(description="Less than this value.")
_LTE = Field(description="Less than or equal to this value.")
_IN = Field(description="Equal to one of these values.")

# Not classes: `in` is no name that a class could have.
TextComparison = TypedDict(
    "TextComparison",
    {
        "eq": Annotated[_Text, _EQ],
        "ne": Annotated[_Text, _NE],
        "gt": Annotated[_Text, _GT],
        "gte": Annotated[_Text, _GTE],
        "lt": Annotated[_Text, _LT],
        "lte": Annotated[_Text, _LTE],
        "in": Annotated[_Texts, _IN],
    },
    total=False,
)
TimeComparison = TypedDict(
    "TimeComparison",
    {
        "eq": Annotated[_Time, _EQ],
        "ne": Annotated[_Time, _NE],
        "gt": Annotated[_Time, _GT],
        "gte": Annotated[_Time, _GTE],
        "lt": Annotated[_Time, _LT],
        "lte": Annotated[_Time, _LTE],
        "in": Annotated[_Times, _IN],
    },
    total=False,
)
SenderComparison = TypedDict(
    "SenderComparison", {"eq": Annotated[_Text, _EQ], "in": Annotated[_Texts, _IN]}, total=False
)
TypeComparison = TypedDict(
    "TypeComparison",
    {"eq": Annotated[_Text, _EQ], "ne": Annotated[_Text, _NE], "in": Annotated[_Texts, _IN]},
    total=False,
)


class NumberComparison(TypedDict, total=False):
    eq: Annotated[Importance, _EQ]
    gt: Annotated[Importance, _GT]
    gte: Annotated[Importance, _GTE]
    lt: Annotated[Importance, _LT]
    lte: Annotated[Importance, _LTE]


class TagComparison(TypedDict, total=False):
    any: Annotated[_Texts, Field(description="At least one of these tags.")]
    all: Annotated[_Texts, Field(description="All of these tags.")]
    none: Annotated[_Texts, Field(description="None of these tags.")]


_Plain = _Text | float | bool | None
_Ordered = _Text | float
MetadataComparison = TypedDict(
    "MetadataComparison",
    {
        "eq": Annotated[_Plain, _EQ],
        "gt": Annotated[_Ordered, _GT],
        "gte": Annotated[_Ordered, _GTE],
        "lt": Annotated[_Ordered, _LT],
        "lte": Annotated[_Ordered, _LTE],
        "in": Annotated[list[_Plain], Field(min_length=1, max_length=MAX_LIST, description=str(_IN.description))],
        "exists": Annotated[bool, Field(description="True for memories with the key, false for the others.")],
    },
    total=False,
)
for _comparison, _doc in {
    TextComparison: "Conditions on a text, which all must hold.",
    TimeComparison: "Conditions on a time, which all must hold.",
    SenderComparison: "Conditions on the sender, which all must hold.",
    TypeComparison: "Conditions on the type, which all must hold.",
    NumberComparison: "Conditions on the importance, which all must hold.",
    TagComparison: "Conditions on the tags, which all must hold.",
    MetadataComparison: "Conditions on a value of the metadata, or on an item of a list there, which all must hold.",
}.items():
    _comparison.__doc__ = _doc
    with_config(_OBJECT)(_comparison)


_PLAIN = {"type": ["string", "number", "boolean", "null"], "maxLength": 512}
_METADATA_KEYS: dict[str, Any] = {
    r"^metadata\..+$": {
        "anyOf": [
            _PLAIN,
            {
                "type": "object",
                "minProperties": 1,
                "additionalProperties": False,
                "properties": {
                    "eq": _PLAIN,
                    "in": {"type": "array", "items": _PLAIN, "minItems": 1, "maxItems": MAX_LIST},
                    "exists": {"type": "boolean"},
                    **{op: {"type": ["string", "number"], "maxLength": 512} for op in ("gt", "gte", "lt", "lte")},
                },
            },
        ]
    }
}


@with_config(ConfigDict(extra="forbid", json_schema_extra={"patternProperties": _METADATA_KEYS}))
class SearchFilter(TypedDict, total=False):
    """Conditions, which all must hold. A plain value means `eq`; times are Unix milliseconds or ISO 8601.

    `metadata.KEY` compares one key, such as `{"metadata.place.city": {"in": ["Oslo"]}}`.
    """

    AND: Annotated[list[SearchFilter], Field(description="Filters that all must hold.")]
    OR: Annotated[list[SearchFilter], Field(description="Filters; at least one must hold.")]
    NOT: Annotated[SearchFilter | list[SearchFilter], Field(description="Filters that all must fail.")]
    session_id: Annotated[_Text | TextComparison, Field(description="The memory's session.")]
    parent_type: Annotated[_Text | TextComparison, Field(description="What it belongs to: `session` or `resource`.")]
    parent_id: Annotated[_Text | TextComparison, Field(description="The id of that session or resource.")]
    timestamp: Annotated[_Time | TimeComparison, Field(description="When the memory's message was sent.")]
    sender_id: Annotated[_Text | SenderComparison, Field(description="The sender of the memory's message.")]
    type: Annotated[_Text | TypeComparison, Field(description="The type: `Conversation` for episodes.")]
    created_at: Annotated[_Time | TimeComparison, Field(description="Another name of `timestamp`.")]
    category: Annotated[_Text | TypeComparison, Field(description="The category.")]
    importance: Annotated[Importance | NumberComparison, Field(description="The importance.")]
    agent_id: Annotated[_Text | TypeComparison, Field(description="The agent; empty for none.")]
    role: Annotated[_Text | TypeComparison, Field(description="The role of the memory's message.")]
    tags: Annotated[_Text | _Texts | TagComparison, Field(description="A tag, or a list: one of them is enough.")]
    metadata: Annotated[
        dict[Annotated[str, Field(min_length=1)], _Plain | MetadataComparison],
        Field(description="Conditions by key, whose parts are separated by dots. `metadata.KEY` means the same."),
    ]


class FilterTree:
    """Marks plain JSON data that the schema describes as `SearchFilter`: `Annotated[dict[str, Any], FilterTree]`."""

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.dict_schema(core_schema.str_schema(), core_schema.any_schema())

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return handler(TypeAdapter(SearchFilter).core_schema)


class SearchBody(ScopedBody):
    """A search in the caller's memories."""

    query: Query = Field(min_length=1, examples=["When is the payment due?"])
    conversation_id: ConversationId | None = Field(
        None,
        description="The conversation that `current_chat` searches. Absent: that search scope finds nothing.",
        examples=["c_456"],
    )
    scope: list[Scope] = Field(
        default=["current_chat", "resources"],
        min_length=1,
        max_length=100,
        description="The search scopes: `current_chat` (the session `chat:{conversation_id}`), `resources` (extracted "
        "files) and `all_user_memory`.",
    )
    agent_id: Name | None = Field(None, description="Only memories of this agent of the caller. Absent: of all.")
    method: Method = Field(
        "hybrid",
        description="The search method. `vector` and `agentic` need a model; ask the operator whether there is one.",
    )
    top_k: Annotated[int, AfterValidator(_check_top_k), WHOLE] = Field(
        TOP_K,
        json_schema_extra={"anyOf": [{"const": -1}, {"minimum": 1, "maximum": MAX_TOP_K}]},
        description=f"The maximum number of results for each search scope, 1 to {MAX_TOP_K}; -1 means {DEFAULT_TOP_K}. "
        "Profiles and unprocessed messages do not count.",
        examples=[3],
    )
    radius: float | None = Field(
        None,
        ge=0,
        le=1,
        description="The minimum similarity of results found by vectors. Keyword results are not affected.",
    )
    include_profile: bool = Field(
        True,
        description="Also return, after the memories, up to three entries of the caller's profiles that fit the query, "
        "and the profile that the engine made. Not with `agent_id`.",
    )
    enable_llm_rerank: bool = Field(True, description="Let a language model sort the results, if one is configured.")
    filters: Annotated[dict[str, Any], FilterTree] | None = Field(
        None,
        description="Conditions that narrow the search.",
        examples=[{"timestamp": {"gte": "2026-01-01T00:00:00Z"}}],
    )
    min_relevance: float | None = Field(
        None,
        ge=0,
        le=1,
        description="The least `relevance` of results. Absent: memories that share only common words with the query "
        "are left out; 0: they are not.",
    )
    history: bool = Field(
        True, description="Also return memories that a newer result replaces, after it. False: leave them out."
    )
    fold: bool = Field(
        True,
        description="Return memories of the same text, sender and role once, with `copies`, and questions that repeat "
        "the query last. False: return all in the order of their scores.",
    )
    now: Annotated[AwareDatetime, Field(strict=False)] | None = Field(
        None,
        strict=False,
        description="The time from which words such as `yesterday` count, with its time zone. Absent: the present.",
        examples=["2026-06-10T09:00:00+08:00"],
    )
    as_of: AsOf = None
    timezone: TimeZone | None = Field(
        None,
        description="The time zone of the query: an IANA name, an offset or a city. Absent: that of `now`, of the "
        "caller's profile or of the installation.",
        examples=["Asia/Shanghai"],
    )
    context: Annotated[int, Field(ge=0, le=MAX_NEIGHBORS), WHOLE] = Field(
        0,
        description="The number of memories to return before and after each result, from the same session.",
        examples=[1],
    )
    max_tokens: Annotated[int, Field(ge=1, le=1_000_000), WHOLE] | None = Field(
        None,
        description="The maximum length of the results without `raw`, in estimated tokens: the last are left out, and "
        "the text of a first one that is too long is cut. Absent: no maximum.",
    )
    max_chars_per_memory: Annotated[int, Field(ge=1, le=1_000_000), WHOLE] | None = Field(
        None,
        description="The maximum length of each `text`: of a longer one, the part that fits the query best. Absent: "
        "texts are whole.",
    )
    explain: bool = Field(False, description="Return `explain` with each result.", examples=[True])
    raw: bool = Field(True, description="Return the engine's own record as `raw` of each result; false: `{}`.")

    def command(self) -> SearchCommand:
        given = shared(SearchCommand, self) | {"as_of": None}
        return SearchCommand(scopes=frozenset(self.scope), zone=self.timezone or "", **given)


class AttachmentOut(BaseModel):
    """A file that a memory mentions or comes from."""

    type: ContentType = Field(description="The kind of content.", examples=["text"])
    name: str = Field(description="The file's name.", examples=["contract.txt"])
    internal_uri: str = Field(
        description="The address of the stored file, or the `source_uri` of a registered one.",
        examples=["file:///srv/memory-gateway/contract.txt"],
    )


class LinkOut(BaseModel):
    """A link to another memory of the answer: the newer one replaces the older one."""

    memory_id: MemoryId
    is_newer: bool = Field(description="True if that memory is the newer one.", examples=[True])
    relation: str = Field(description="The property that both state.", examples=["phone"])
    rule: str = Field(description="Why one replaces the other.", examples=["change"])
    confidence: Literal["high", "low"] = Field(
        description="`history` false leaves out only what is replaced with high confidence.", examples=["high"]
    )


class Explanation(BaseModel):
    """The reasons for a result."""

    legs: dict[str, Any] = Field(
        description="The rank, score and matched words for each leg of the search, such as `keyword` and `vector`.",
        examples=[{"keyword": {"rank": 1, "score": 0.27, "matched": ["payment", "due"]}}],
    )
    override_id: str | None = Field(
        description="The override that the text comes from; null without one.", examples=[None]
    )
    links: list[LinkOut] = Field(
        description="The newer memories of the answer that replace it, and the older ones that it replaces.",
        examples=[[]],
    )


class NeighborOut(BaseModel):
    """A memory next to a result in its session."""

    id: MemoryId
    sender_id: str = Field(description="The sender.")
    text: str = Field(description="The text.")
    timestamp_ms: int = Field(description="When it was sent, in Unix milliseconds.")


class PlaceOut(BaseModel):
    """The place of a passage in its file, or in a long text."""

    page: int | None = Field(description="The page, counted from 1.", examples=[3])
    heading: str | None = Field(description="The heading above it.", examples=["Payment"])
    box: Annotated[list[float], Field(min_length=4, max_length=4)] | None = Field(
        description="Left, top, right and bottom of recognized text, as fractions of the page or picture.",
        examples=[None],
    )
    second: float | None = Field(description="Its first second in a recording.", examples=[None])
    until_second: float | None = Field(description="Its last second in a recording.", examples=[None])
    start: int | None = Field(description="The first character of `passage` in the text, from 0.", examples=[None])
    end: int | None = Field(description="The character after its last.", examples=[None])


class ContextOut(BaseModel):
    """The memories around a result, oldest first, without deleted ones."""

    before: list[NeighborOut] = Field(description="The memories before the result.", examples=[[]])
    after: list[NeighborOut] = Field(description="The memories after the result.", examples=[[]])


class CopyOut(BaseModel):
    """Another memory with the same text, sender and role."""

    id: MemoryId
    session_id: SessionKey
    created_at: str = Field(description="The time of the copy.", examples=["2026-06-10T10:00:00+00:00"])


class SearchResultOut(BaseModel):
    """A memory that was found."""

    id: MemoryId = Field(examples=["3585351e-1010-5bcf-9fd0-5f9f188cc235"])
    memory_type: KindOfMemory
    session_id: SessionKey = Field(examples=["resource:u_123:r_9f2c41d07b8e4a6f93d1c5e2a7b40868"])
    text: str = Field(
        description="The text, with the active override.",
        examples=["Payment is due within 30 days after receipt of the invoice."],
    )
    score: float | None = Field(
        description="The relevance, comparable within one response only; null if the engine gives none.",
        examples=[0.27],
    )
    relevance: float | None = Field(
        description="The share of the query that the memory and its context cover, 0 to 1, comparable between searches "
        "and methods; null if it is not known.",
        examples=[0.62],
    )
    sender_id: str = Field(description="The sender; empty if it is not known.", examples=["u_123"])
    sender_name: str | None = Field(description="The sender's name; null without one.", examples=[None])
    role: Role | None = Field(description="The role of its message; null for other memories.", examples=["user"])
    category: str = Field(description="The category; empty for files, and if it is not known.", examples=[""])
    timestamp_ms: int = Field(description="The time it is about, in Unix milliseconds.", examples=[1780308000000])
    created_at: str = Field(description="The same time as text.", examples=["2026-06-01T10:00:00+00:00"])
    superseded_by: str | None = Field(
        description="The id of a newer memory of the answer that replaces it; null without one.", examples=[None]
    )
    copies: list[CopyOut] = Field(description="Other memories with the same text, sender and role.", examples=[[]])
    source_scope: Scope = Field(
        description="The search scope that found it; of several, the most specific.", examples=["resources"]
    )
    resource_id: str | None = Field(
        description="The resource that it comes from; null for other memories.",
        examples=["r_9f2c41d07b8e4a6f93d1c5e2a7b40868"],
    )
    resource_uri: str | None = Field(
        description="The public address of that resource; null for other memories.",
        examples=["resource://u_123/r_9f2c41d07b8e4a6f93d1c5e2a7b40868"],
    )
    attachments: list[AttachmentOut] = Field(description="The files that the memory mentions or comes from.")
    place: PlaceOut | None = Field(
        description="The place in its file, or of `passage` in a long text; null for other memories, and of "
        "files that the remote read.",
        examples=[None],
    )
    passage: str | None = Field(
        description="The part of a text of more than 1,200 characters that fits the query best; null for others.",
        examples=[None],
    )
    raw: dict[str, Any] = Field(
        description="The engine's own record, without file contents. Its fields depend on the engine. Empty if the "
        "request has `raw` false.",
        examples=[{"filename": "contract.txt", "page": None, "heading": None, "position": 0}],
    )
    tags: MemoryTags = None
    metadata: MemoryMetadata = None
    external_id: ExternalIdOut = None
    explain: Explanation | None = Field(None, description="The reasons for this result. Absent unless requested.")
    context: ContextOut | None = Field(None, description="The memories around it. Absent unless requested.")


class ScopeMeta(BaseModel):
    """Statistics of one search scope."""

    asked: int = Field(description="The number of results requested; 0 if there was nothing to search.")
    sessions: int | None = Field(description="The number of sessions searched; null for all of the caller's.")
    found: int = Field(description="The number of results of the engine, before the search scopes were merged.")
    hidden: int = Field(
        description="The number of results left out because they are deleted. The embedded engine does not count them."
    )
    replaced: int = Field(description="The number of results whose text comes from an override.")
    degraded: str | None = Field(description="Why another method than the requested one ran; null if it did not.")
    exhausted: bool = Field(
        description="True if deletions leave fewer than `top_k` results and the engine cannot return more."
    )
    ms: float = Field(description="Milliseconds until the engine answered for all search scopes together.")


class SearchMeta(BaseModel):
    """Statistics of a search."""

    method: Method = Field(description="The method that ran.", examples=["keyword"])
    scopes: dict[Scope, ScopeMeta] = Field(
        description="The statistics by search scope.",
        examples=[
            {
                "resources": {
                    "asked": 3,
                    "sessions": 2,
                    "found": 1,
                    "hidden": 0,
                    "replaced": 0,
                    "degraded": "No embedding model is configured: searched by keyword only.",
                    "exhausted": False,
                    "ms": 1.4,
                }
            }
        ],
    )
    left_out: int | None = Field(
        None, description="The number of results left out because of `max_tokens`. Absent without it."
    )
    corrected: dict[str, str] = Field(
        description="Misspelled words of the query, with the words of the memories that were searched instead.",
        examples=[{}],
    )
    as_of: str | None = Field(
        None, description="The time that the request names by `as_of`. Absent without it.", examples=[None]
    )
    hint: str | None = Field(
        None,
        description="A sentence on finding more, or on what `as_of` searched, in the language of `Accept-Language`. "
        "Absent unless there is `as_of`, the default search scopes return few results and leave out sessions of the "
        "caller, `current_chat` has no `conversation_id`, or `timezone` is unknown.",
    )


class SearchOut(BaseModel):
    """The results of a search."""

    results: list[SearchResultOut] = Field(description="The memories, best first.")
    meta: SearchMeta = Field(description="The method that ran, and statistics.")
