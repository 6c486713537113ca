"""Serve a stand-in for EverOS that needs little CPU: `python -m benchmarks.upstream --port 1995 --latency-ms 5`.

It accepts adds and flushes, and answers each search after the latency with eight episodes (about 10 kB) of the
requested sessions in the format of EverOS 1.5.1. Their time is in the future, so that no caller waits for newer ones.
"""

import argparse
import asyncio
import zlib
from functools import lru_cache
from typing import Any

import httptools
import orjson
import uvloop

EPISODES = 8
_TEXT = (
    "{user} said: the supplier is paid within thirty days after the invoice arrived, unless the delivery note is "
    "missing; "
    "付款期限为收到发票后三十天内。"
) * 4
_ID = "00000000-0000-4000-8000-000000000000"


def episode(user_id: str, session_id: str, number: int) -> dict[str, Any]:
    text = _TEXT.replace("{user}", user_id)
    return {
        "id": f"{user_id}_ep_20261120_{zlib.crc32(session_id.encode()) * EPISODES + number:08d}",
        "user_id": user_id,
        "app_id": "default",
        "project_id": "default",
        "session_id": session_id,
        "timestamp": "2099-11-20T08:43:17.600000Z",
        "sender_ids": [user_id],
        "summary": text[:200],
        "subject": text[:90],
        "episode": text,
        "type": "Conversation",
        "score": round(1 - number / 10, 3),
        "atomic_facts": [],
    }


def _data(name: str, body: dict[str, Any]) -> dict[str, Any]:
    if name == "add":
        return {"message_count": len(body["messages"]), "status": "accumulated"}
    if name == "flush":
        return {"status": "extracted"}
    asked = (body.get("filters") or {}).get("session_id", "chat:c1")
    sessions = asked["in"] if isinstance(asked, dict) else [asked]
    count = 1 if name == "get" else EPISODES
    episodes = [episode(body["user_id"], sessions[number % len(sessions)], number) for number in range(count)]
    others: dict[str, list[Any]] = {"profiles": [], "agent_cases": [], "agent_skills": [], "unprocessed_messages": []}
    return {"episodes": episodes, **others, "total_count": len(episodes), "count": len(episodes)}


@lru_cache(maxsize=1024)
def answer(name: str, body: bytes) -> bytes:
    """Return the whole HTTP response. Responses are cached by question."""
    if name == "health":
        capabilities = dict.fromkeys(("llm", "embed", "rerank", "multimodal_llm", "parser"), True)
        data: dict[str, Any] = {"status": "ok", "version": "1.5.1", "capabilities": capabilities}
    else:
        data = {"request_id": _ID, "data": _data(name, orjson.loads(body))}
    payload = orjson.dumps(data)
    head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(payload)}\r\n\r\n"
    return head.encode() + payload


class Connection(asyncio.Protocol):
    """A connection that serves one request at a time."""

    def __init__(self, latency_seconds: float) -> None:
        self._latency_seconds = latency_seconds
        self._parser = httptools.HttpRequestParser(self)
        self._loop = asyncio.get_running_loop()
        self._transport: Any = None
        self._path = b""
        self._body = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def on_url(self, url: bytes) -> None:
        self._path, self._body = url, b""

    def on_body(self, data: bytes) -> None:
        self._body += data

    def on_message_complete(self) -> None:
        name = self._path.decode().rpartition("/")[2]
        answered = answer(name, self._body)
        if name == "search":
            self._loop.call_later(self._latency_seconds, self._transport.write, answered)
        else:
            self._transport.write(answered)


async def serve(port: int, latency_seconds: float) -> None:
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Connection(latency_seconds), "127.0.0.1", port, backlog=256)
    await server.serve_forever()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--latency-ms", type=float, default=5.0)
    options = parser.parse_args()
    uvloop.run(serve(options.port, options.latency_ms / 1000))


if __name__ == "__main__":
    main()
