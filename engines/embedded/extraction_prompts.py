"""Ask a language model to extract memories and agent skills from a conversation, and to write the user's profile.

Each item of an answer is validated separately; invalid items are left out.
"""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Annotated, Any, Final, Literal

from pydantic import AfterValidator, BeforeValidator, Field, ValidationError

from core.network.language_model import RULE, ChatClient, ModelAnswer

MAX_MEMORIES: Final = 30
MAX_OF_AGENTS: Final = 3
MAX_REPLACED: Final = 5
MAX_TRAITS: Final = 20
# Limits of one answer, because a prompt injection must neither flood a user's memories nor replace most of them.

Kind = Literal["fact", "preference", "decision", "lesson", "error", "feature_request"]
CATEGORY_OF: Final[Mapping[Kind, str]] = {
    "fact": "user_memory_fact",
    "preference": "user_memory_preference",
    "decision": "user_memory_decision",
    "lesson": "self_improving_learnings",
    "error": "self_improving_errors",
    "feature_request": "self_improving_feature_requests",
}

_USER_PROMPT: Final = """\
You keep a person's memory. You get a conversation between that person (role user), agents, and in group chats other
people (role participant: what they say of themselves is about them, not about the person), memories that are known
already (with `known`), and messages from before (with `context`: only to understand the others). From the numbered
messages take what will be worth knowing in later conversations.

memories: short, self-contained sentences in the language of the conversation, names instead of pronouns, dates instead
of "yesterday" (each message has its time). kind is one of
- fact: something lasting about the person, their people, work, things, plans;
- preference: what they like, dislike, want to be treated like;
- decision: what they have decided or agreed on;
"""
_AGENT_PROMPT: Final = """\
- lesson: what an agent found out to work, to be done so the next time;
- error: a mistake of an agent, with its cause and the way out;
- feature_request: how the person wishes agents to behave, or what they should be able to do.
cases: a task that an agent worked on here: task_intent, approach (the steps that worked, with the tools it called:
tool_calls and the answers with their tool_call_id), key_insight, quality 0..1.
skills: a way of doing things that will work again elsewhere: name, description, content (the steps).
"""
_RULES_PROMPT: Final = """\
importance: 0 (a trifle) to 1 (must never be forgotten). messages: the numbers of the messages that say it. replaces:
the numbers of known memories that are no longer true because of it; nothing that still holds. Leave out what is known
already, small talk, questions, what an agent supposes, and secrets such as passwords. Empty lists are a good answer.
"""
_ANSWER_FORM: Final = (
    'The answer\'s form: {"memories": [{"kind": "fact", "text": "…", "importance": 0.6, "messages": [1], '
    '"replaces": []}]%s}. '
)
_AGENT_ANSWER_FORM: Final = (
    ', "cases": [{"task_intent": "…", "approach": "…", "key_insight": "…", "quality": 0.8, "messages": [1, 2]}], '
    '"skills": [{"name": "…", "description": "…", "content": "…", "messages": [2]}]'
)
_PROFILE_PROMPT: Final = (
    "You describe a person by what is remembered of them, for agents that work for them. Each line of the data is one "
    "memory. Write a summary of 1 to 5 sentences in the language of most memories: who they are, what they do, what "
    "they like, what is going on; and traits that several memories show, each with what it rests on. Say nothing that "
    'the memories do not say. The answer\'s form: {"summary": "…", "traits": [{"trait": "…", "basis": "…"}]}. '
) + RULE


def _stripped(value: str) -> str:
    if not (value := value.strip()):
        raise ValueError("must hold words")
    return value


_Unit = Annotated[float, Field(allow_inf_nan=False), AfterValidator(lambda value: min(max(value, 0.0), 1.0))]
_Numbers = Annotated[list[int], Field(max_length=100)]
_Short = Annotated[str, Field(max_length=200), AfterValidator(_stripped)]
_Sentence = Annotated[str, Field(max_length=500), AfterValidator(_stripped)]
_Long = Annotated[str, Field(max_length=4000), AfterValidator(_stripped)]


class Statement(ModelAnswer):
    """A short memory."""

    kind: Kind
    text: _Sentence
    importance: _Unit = 0.5
    messages: Annotated[_Numbers, Field(min_length=1)]
    replaces: _Numbers = []


class Case(ModelAnswer):
    """A task that an agent did, and its steps."""

    task_intent: _Sentence
    approach: _Long
    key_insight: Annotated[str, Field(max_length=1000)] | None = None
    quality: _Unit = 0.5
    messages: Annotated[_Numbers, Field(min_length=1)]


class Skill(ModelAnswer):
    """A method that an agent can use again."""

    name: _Short
    description: Annotated[str, Field(max_length=1000)] = ""
    content: _Long
    messages: Annotated[_Numbers, Field(min_length=1)]


class Trait(ModelAnswer):
    trait: _Sentence
    basis: Annotated[str, Field(max_length=1000)] = ""


def _valid(shape: type[ModelAnswer]) -> BeforeValidator:
    """Return a validator of lists that leaves out items without the shape."""

    def validate(items: Any) -> Any:
        if not isinstance(items, list):
            return items
        valid = []
        for item in items:
            with suppress(ValidationError):
                valid.append(shape.model_validate(item))
        return valid

    return BeforeValidator(validate)


class ExtractionAnswer(ModelAnswer):
    """The valid items of an answer, before they are compared with stored memories."""

    memories: Annotated[list[Statement], _valid(Statement)]
    cases: Annotated[list[Case], _valid(Case)] = []
    skills: Annotated[list[Skill], _valid(Skill)] = []


class ProfileAnswer(ModelAnswer):
    summary: _Long
    traits: Annotated[list[Trait], _valid(Trait), AfterValidator(lambda traits: traits[:MAX_TRAITS])] = []


def extract(
    client: ChatClient, lines: Iterable[Mapping[str, Any]], seconds: float, *, of_agents: bool
) -> ExtractionAnswer:
    """Return the items that the model extracts from a window; with `of_agents` also those about agents.

    Raises: `EndpointError`.
    """
    form = _ANSWER_FORM % (_AGENT_ANSWER_FORM if of_agents else "")
    task = _USER_PROMPT + (_AGENT_PROMPT if of_agents else "") + _RULES_PROMPT + form + RULE
    answer = client.ask(task, lines, ExtractionAnswer, seconds)
    return ExtractionAnswer(
        memories=[one for one in answer.memories if of_agents or is_of_user(one.kind)][:MAX_MEMORIES],
        cases=answer.cases[:MAX_OF_AGENTS] if of_agents else [],
        skills=answer.skills[:MAX_OF_AGENTS] if of_agents else [],
    )


def describe(client: ChatClient, lines: Iterable[Mapping[str, Any]], seconds: float) -> ProfileAnswer:
    """Return the model's profile of a user from lines of memories. Raises: `EndpointError`."""
    return client.ask(_PROFILE_PROMPT, lines, ProfileAnswer, seconds)


def is_of_user(kind: Kind) -> bool:
    """Return True for kinds that describe the user: only the user's own messages are sources for them."""
    return CATEGORY_OF[kind].startswith("user_")
