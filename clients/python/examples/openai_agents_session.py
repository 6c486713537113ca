"""Continue a conversation of the OpenAI Agents SDK, without a key for a model.

Start a gateway, then: pip install "memory-gateway-client[openai-agents]" && python openai_agents_session.py

It prints:

    user: My bicycle is blue.
    agent: I have read 1 message.
    user: Which color has it?
    agent: I have read 3 messages.
    found later: My bicycle is blue.
"""

import asyncio
import os
import uuid
from collections.abc import AsyncIterator
from typing import Any

from agents.models.interface import Model
from openai.types.responses import ResponseOutputMessage, ResponseOutputText

from agents import Agent, ModelResponse, Runner, Usage, set_tracing_disabled
from memory_gateway_client import AsyncClient
from memory_gateway_client.openai_agents import MemoryGatewaySession


class StandInModel(Model):
    """A model that counts the messages of its input."""

    async def get_response(self, system_instructions: str | None, input: Any, *_: Any, **__: Any) -> ModelResponse:  # noqa: A002
        """Answer with the number of messages."""
        text = f"I have read {len(input)} message{'s' if len(input) > 1 else ''}."
        content = ResponseOutputText(type="output_text", text=text, annotations=[])
        message = ResponseOutputMessage(
            id=f"msg_{uuid.uuid4().hex}", type="message", role="assistant", status="completed", content=[content]
        )
        return ModelResponse(output=[message], usage=Usage(), response_id=None)

    def stream_response(self, *_: Any, **__: Any) -> AsyncIterator[Any]:
        """Refuse: this example does not stream."""
        raise NotImplementedError


async def main() -> None:
    """Run two turns, each with a new agent and session object, then search."""
    set_tracing_disabled(True)
    base_url = os.environ.get("MEMORY_GATEWAY_BASE_URL", "http://127.0.0.1:8010")
    user_id = f"agents-{uuid.uuid4().hex[:8]}"
    async with AsyncClient(base_url) as anonymous:
        user = await anonymous.users.create(user_id)
    async with AsyncClient(base_url, user.user_key) as client:
        for message in ("My bicycle is blue.", "Which color has it?"):
            session = MemoryGatewaySession("c_1", client, user_id=user_id)
            answered = await Runner.run(Agent("Helper", model=StandInModel()), message, session=session)
            print("user:", message)
            print("agent:", answered.final_output)
        found = await client.memories.search("bicycle", scope=["all_user_memory"], top_k=1)
        print("found later:", found.results[0].text)


if __name__ == "__main__":
    asyncio.run(main())
