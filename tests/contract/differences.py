"""All that may differ between the engines, for callers: what an engine has only together with an LLM or an embedding
model. `docs/understand/engines.md` repeats this table.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

EngineName = Literal["embedded", "everos"]


class Difference(NamedTuple):
    """Behavior of each engine in one point of the contract."""

    embedded: str
    everos: str


DIFFERENCES: dict[str, Difference] = {
    "`method`: `vector`": Difference("422 on the field `method`", "200"),
    "`method`: `agentic`": Difference("422 on the field `method`", "200"),
    "`method`: `hybrid`": Difference("200, by keyword alone: `meta.method` says `keyword`", "200"),
    "`memory_type`: `profile`": Difference("none", "some time after a flush"),
    "`memory_type`: `agent_case`": Difference("none", "some time after a flush"),
    "`memory_type`: `agent_skill`": Difference("none", "some time after a flush"),
}

STATUS_OF_METHOD: dict[EngineName, dict[str, int]] = {
    "embedded": {"keyword": 200, "hybrid": 200, "vector": 422, "agentic": 422},
    "everos": {"keyword": 200, "hybrid": 200, "vector": 200, "agentic": 200},
}
METHOD_USED: dict[EngineName, dict[str, str]] = {
    "embedded": {"keyword": "keyword", "hybrid": "keyword"},
    "everos": {"keyword": "keyword", "hybrid": "hybrid", "vector": "vector", "agentic": "agentic"},
}
LLM_MADE_TYPES: dict[EngineName, frozenset[str]] = {
    "embedded": frozenset(),
    "everos": frozenset({"profile", "agent_case", "agent_skill"}),
}
