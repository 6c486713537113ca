"""What a language model makes of a conversation: short memories, what agents learned, and who the user is.

Each thing that it says is checked by itself: one that is odd is left out, and the others stay.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal, TypeVar

from pydantic import AfterValidator, Field, ValidationError

from engines.embedded.llm.client import Answer, ChatClient
from engines.embedded.llm.framing import RULE, framed

MAX_MEMORIES: Final = 30
MAX_OF_AGENTS: Final = 3
MAX_REPLACED: Final = 5
"""So much at most comes of one answer: a text that makes a model say anything must neither flood a memory nor empty
it."""
MAX_TRAITS: Final = 20

Kind = Literal["fact", "preference", "decision", "lesson", "error", "feature_request"]
CATEGORY_OF: Final[Mapping[Kind, str]] = {
    "fact": "user_memory_fact",
    "preference": "user_memory_preference",
    "decision": "user_memory_decision",
    "lesson": "self_improving_learnings",
    "error": "self_improving_errors",
    "feature_request": "self_improving_feature_requests",
}

_OF_USERS: Final = """\
You keep a person's memory. You get a conversation between that person (role user) and agents, memories that are known
already (with `known`), and messages from before (with `context`: only to understand the others). From the numbered
messages take what will be worth knowing in later conversations.

memories: short, self-contained sentences in the language of the conversation, names instead of pronouns, dates instead
of "yesterday" (each message has its time). kind is one of
- fact: something lasting about the person, their people, work, things, plans;
- preference: what they like, dislike, want to be treated like;
- decision: what they have decided or agreed on;
"""
_OF_AGENTS: Final = """\
- lesson: what an agent found out to work, to be done so the next time;
- error: a mistake of an agent, with its cause and the way out;
- feature_request: how the person wishes agents to behave, or what they should be able to do.
cases: a task that an agent worked on here: task_intent, approach (the steps that worked), key_insight, quality 0..1.
skills: a way of doing things that will work again elsewhere: name, description, content (the steps).
"""
_FORM: Final = """\
importance: 0 (a trifle) to 1 (must never be forgotten). messages: the numbers of the messages that say it. replaces:
the numbers of known memories that are no longer true because of it; nothing that still holds. Leave out what is known
already, small talk, questions, what an agent supposes, and secrets such as passwords. Empty lists are a good answer.
"""
_ANSWER: Final = (
    'The answer\'s form: {"memories": [{"kind": "fact", "text": "…", "importance": 0.6, "messages": [1], '
    '"replaces": []}]%s}. '
)
_ANSWER_OF_AGENTS: Final = (
    ', "cases": [{"task_intent": "…", "approach": "…", "key_insight": "…", "quality": 0.8, "messages": [1, 2]}], '
    '"skills": [{"name": "…", "description": "…", "content": "…", "messages": [2]}]'
)
_PROFILE: Final = (
    "You describe a person by what is remembered of them, for agents that work for them. Each line of the data is one "
    "memory. Write a summary of 1 to 5 sentences in the language of most memories: who they are, what they do, what "
    "they like, what is going on; and traits that several memories show, each with what it rests on. Say nothing that "
    'the memories do not say. The answer\'s form: {"summary": "…", "traits": [{"trait": "…", "basis": "…"}]}. '
) + RULE


def _unit(value: float) -> float:
    return min(max(value, 0.0), 1.0)


def _stripped(value: str) -> str:
    if not (value := value.strip()):
        raise ValueError("must hold words")
    return value


_Unit = Annotated[float, Field(allow_inf_nan=False), AfterValidator(_unit)]
_Numbers = Annotated[list[int], Field(max_length=100)]
_Short = Annotated[str, Field(max_length=200), AfterValidator(_stripped)]
_Sentence = Annotated[str, Field(max_length=500), AfterValidator(_stripped)]
_Long = Annotated[str, Field(max_length=4000), AfterValidator(_stripped)]


class Told(Answer):
    """A short memory."""

    kind: Kind
    text: _Sentence
    importance: _Unit = 0.5
    messages: Annotated[_Numbers, Field(min_length=1)]
    replaces: _Numbers = []


class Case(Answer):
    """How an agent did a task."""

    task_intent: _Sentence
    approach: _Long
    key_insight: Annotated[str, Field(max_length=1000)] | None = None
    quality: _Unit = 0.5
    messages: Annotated[_Numbers, Field(min_length=1)]


class Skill(Answer):
    """What an agent can do again."""

    name: _Short
    description: Annotated[str, Field(max_length=1000)] = ""
    content: _Long
    messages: Annotated[_Numbers, Field(min_length=1)]


class Trait(Answer):
    trait: _Sentence
    basis: Annotated[str, Field(max_length=1000)] = ""


class _Extracted(Answer):
    memories: list[Any]
    cases: list[Any] = []
    skills: list[Any] = []


class _Described(Answer):
    summary: _Long
    traits: list[Any] = []


@dataclass(frozen=True, slots=True)
class Extracted:
    """What is left of an answer after all checks but those that need our rows."""

    memories: Sequence[Told]
    cases: Sequence[Case]
    skills: Sequence[Skill]


@dataclass(frozen=True, slots=True)
class Described:
    summary: str
    traits: Sequence[Trait]


_Shape = TypeVar("_Shape", bound=Answer)


def extract(client: ChatClient, lines: Iterable[Mapping[str, Any]], seconds: float, *, of_agents: bool) -> Extracted:
    """What the model makes of messages (with `message`, `role`, `speaker`, `at`, `text`), known memories (with `known`,
    `text`) and context. `of_agents`: what agents learned, too. Errors: `EndpointError`."""
    form = _ANSWER % (_ANSWER_OF_AGENTS if of_agents else "")
    task = _OF_USERS + (_OF_AGENTS if of_agents else "") + _FORM + form + RULE
    answer = client.ask(task, framed(lines), _Extracted, seconds)
    memories = [told for told in _checked(Told, answer.memories) if of_agents or told.kind in _KINDS_OF_USERS]
    return Extracted(
        memories[:MAX_MEMORIES],
        _checked(Case, answer.cases)[:MAX_OF_AGENTS] if of_agents else (),
        _checked(Skill, answer.skills)[:MAX_OF_AGENTS] if of_agents else (),
    )


def describe(client: ChatClient, memories: Iterable[Mapping[str, Any]], seconds: float) -> Described:
    """The user as the memories show them. Errors: `EndpointError`."""
    answer = client.ask(_PROFILE, framed(memories), _Described, seconds)
    return Described(answer.summary, _checked(Trait, answer.traits)[:MAX_TRAITS])


_KINDS_OF_USERS: Final = frozenset({"fact", "preference", "decision"})


def is_of_user(kind: Kind) -> bool:
    """Whether it says something about the user, for which only the user's own words are a source."""
    return kind in _KINDS_OF_USERS


def _checked(shape: type[_Shape], given: Sequence[Any]) -> list[_Shape]:
    found = []
    for one in given:
        try:
            found.append(shape.model_validate(one))
        except ValidationError:
            continue
    return found
