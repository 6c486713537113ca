"""Remember over two conversations of a LangGraph agent, without a key for a model.

Start a gateway, then: pip install "memory-gateway-client[langgraph]" langgraph && python langgraph_store.py

It prints:

    user: I am allergic to peanuts.
    agent: Noted.
    user: What should the cook know about peanuts?
    agent: You told me: I am allergic to peanuts.
"""

import os
import uuid
from typing import TypedDict

from langgraph.graph import END, START, StateGraph
from langgraph.runtime import Runtime
from langgraph.store.base import BaseStore

from memory_gateway_client import Client
from memory_gateway_client.langgraph import MemoryGatewayStore


class State(TypedDict):
    """One turn: the user's message and the agent's answer."""

    message: str
    answer: str


def stand_in_model(message: str, memories: list[str]) -> str:
    """Answer as a model would that gets the memories in its prompt."""
    if not message.endswith("?"):
        return "Noted."
    return f"You told me: {memories[0]}" if memories else "I do not know."


def respond(state: State, runtime: Runtime[None]) -> dict[str, str]:
    """Recall, answer, and remember what the user stated."""
    store, message = runtime.store, state["message"]
    assert isinstance(store, BaseStore)  # noqa: S101  the graph is compiled with one
    recalled = [item.value["text"] for item in store.search(("memories",), query=message, limit=3)]
    if not message.endswith("?"):
        store.put(("memories",), str(uuid.uuid4()), {"text": message})
    return {"answer": stand_in_model(message, recalled)}


def main() -> None:
    """Run two conversations."""
    base_url = os.environ.get("MEMORY_GATEWAY_BASE_URL", "http://127.0.0.1:8010")
    with Client(base_url) as anonymous:
        user = anonymous.users.create(f"langgraph-{uuid.uuid4().hex[:8]}")
    with Client(base_url, user.user_key) as client:
        builder = StateGraph(State)
        builder.add_node("respond", respond)
        builder.add_edge(START, "respond")
        builder.add_edge("respond", END)
        graph = builder.compile(store=MemoryGatewayStore(client))
        for message in ("I am allergic to peanuts.", "What should the cook know about peanuts?"):
            print("user:", message)
            print("agent:", graph.invoke({"message": message, "answer": ""})["answer"])


if __name__ == "__main__":
    main()
