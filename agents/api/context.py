"""`POST /memories/context`: what an agent's prompt should hold about the caller."""

from typing import Annotated, Literal

from drf_spectacular.utils import extend_schema
from pydantic import BaseModel, Field
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.viewsets import ViewSet

from accounts.api.authentication import caller, reads
from accounts.api.openapi import RequiredBodies, problems, request_body, success
from accounts.api.schemas import ScopedBody
from accounts.audit import Actor
from accounts.bound_keys import agent_of
from accounts.scopes import SEARCH
from agents.tools.caller import Caller
from agents.tools.context import MAX_TOKENS, make_context
from core import readable
from core.ids import Name
from core.rest import WHOLE, parse
from core.times import isoformat
from memories.api.schemas.search import ConversationId, Query
from memories.services.lookup import owner_of


class ContextBody(ScopedBody):
    """A request for what the prompt of an agent should hold."""

    query: Query = Field(
        "",
        description="What the user asks now. Absent: the newest memories follow the facts.",
        examples=["When is the payment due?"],
    )
    conversation_id: ConversationId | None = Field(
        None,
        description="The conversation that the agent has before it. Its messages are left out.",
        examples=["c_456"],
    )
    agent_id: Name | None = Field(None, description="The caller's agent. Facts of its other agents are left out.")
    max_tokens: Annotated[int, Field(ge=100, le=100_000), WHOLE] = Field(
        MAX_TOKENS, description="The maximum length of the text in tokens, by an upper estimate.", examples=[800]
    )


class ContextSource(BaseModel):
    """A part of the context."""

    kind: Literal["profile", "fact", "memory"] = Field(
        description="`profile`: a profile document; `fact`: a fact about the user; `memory`: another memory.",
        examples=["fact"],
    )
    id: str = Field(
        description="The id of the memory; `user` or `work` for a profile document.",
        examples=["613144a3-5245-5052-80e6-47a15e6817f1"],
    )
    created_at: str | None = Field(
        description="The time that the memory is about; null for a profile document.",
        examples=["2026-06-10T10:00:00+00:00"],
    )


class PromptContext(BaseModel):
    """The context of an agent's prompt."""

    text: str = Field(
        description="The text, marked as data; empty if nothing is known. What changes least comes first.",
        examples=["<relevant-memories>\n- [user_memory_fact] Ana is allergic to nuts.\n</relevant-memories>"],
    )
    sources: list[ContextSource] = Field(description="The parts of the text, in its order.")


@extend_schema(tags=["memories"])
class ContextViewSet(ViewSet):
    scopes = {"make": SEARCH}
    schema = RequiredBodies()

    @extend_schema(
        operation_id="make_context",
        summary="Make the context of a prompt",
        request=request_body(ContextBody),
        responses={200: success(PromptContext, "The context."), **problems(413, 422, 502)},
    )
    @reads
    def make(self, request: Request) -> Response:
        """Make what an agent's prompt should hold: the profile, the facts, and the memories that fit a query."""
        body = parse(ContextBody, request.data)
        principal = caller(request)
        owner = owner_of(principal, body.app_id, body.project_id)
        context = make_context(
            Caller(owner, agent_of(principal, body.agent_id) or "", Actor.key(principal), interface="rest"),
            body.query,
            conversation_id=body.conversation_id,
            max_tokens=body.max_tokens,
        )
        sources = [
            {
                "kind": source.kind,
                "id": source.id,
                "created_at": None
                if source.created_at_ms is None
                else isoformat(readable.moment(source.created_at_ms)),
            }
            for source in context.sources
        ]
        return Response({"text": context.text, "sources": sources})
