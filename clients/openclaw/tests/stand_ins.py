"""Stand-ins for a language model (OpenAI's chat completions, streamed) and for Telegram's Bot API, on one port."""

from __future__ import annotations

import json
import queue
import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from typing import Any

CALL = re.compile(r"CALL (\w+) (\{.*?\})")
REPLY_SECONDS = 240.0


class StandIns:
    """`prompts` are the messages of the model's calls, as JSON; `sent` gets the chat and the text of each reply."""

    def __init__(self) -> None:
        self.prompts: list[str] = []
        self.updates: list[dict[str, Any]] = []
        self.sent: queue.SimpleQueue[tuple[int, str]] = queue.SimpleQueue()
        self._numbers = count(1)

    def say(self, sender: int, text: str) -> str:
        """Send a message from a Telegram user to the agent and return the agent's reply."""
        number = next(self._numbers)
        person = {"id": sender, "is_bot": False, "first_name": f"P{sender}"}
        chat = {"id": sender, "type": "private", "first_name": person["first_name"]}
        message = {"message_id": number, "date": int(time.time()), "from": person, "chat": chat, "text": text}
        self.updates.append({"update_id": number, "message": message})
        while (reply := self.sent.get(timeout=REPLY_SECONDS))[0] != sender:
            pass
        return reply[1]

    def complete(self, body: dict[str, Any]) -> bytes:
        """Reply with a stream: the tool call that the user's message names, a quotation of the prompt, or a word."""
        self.prompts.append(json.dumps(body["messages"], ensure_ascii=False))
        texts = [message for message in body["messages"] if "INTERNAL_CONTEXT" not in json.dumps(message)]
        last, content = texts[-1], _text(texts[-1])
        delta: dict[str, Any] = {"role": "assistant", "content": "Understood."}
        if last["role"] == "user" and (call := CALL.search(content)):
            function = {"name": call[1], "arguments": call[2]}
            calls = [{"index": 0, "id": "c1", "type": "function", "function": function}]
            delta = {"role": "assistant", "tool_calls": calls}
        elif "QUOTE" in content:
            delta["content"] = f"You wrote: {content}"
        reason = "tool_calls" if "tool_calls" in delta else "stop"
        chunks = ({"delta": delta, "finish_reason": None}, {"delta": {}, "finish_reason": reason})
        lines = [{"id": "1", "object": "chat.completion.chunk", "choices": [{"index": 0, **chunk}]} for chunk in chunks]
        return "".join(f"data: {line}\n\n" for line in [*map(json.dumps, lines), "[DONE]"]).encode()

    def telegram(self, method: str, body: dict[str, Any]) -> Any:
        if method == "getMe":
            return {"id": 4096, "is_bot": True, "first_name": "Bot", "username": "stand_in_bot"}
        if method == "getUpdates":
            deadline = time.monotonic() + min(body.get("timeout", 0), 5)
            while not (new := [one for one in self.updates if one["update_id"] >= body.get("offset", 0)]):
                if time.monotonic() >= deadline:
                    break
                time.sleep(0.02)
            return new
        if method in {"sendMessage", "editMessageText"}:
            self.sent.put((int(body["chat_id"]), body["text"]))
            chat = {"id": int(body["chat_id"]), "type": "private"}
            return {"message_id": next(self._numbers), "date": int(time.time()), "chat": chat, "text": body["text"]}
        return True


def _text(message: dict[str, Any]) -> str:
    content = message.get("content") or ""
    return content if isinstance(content, str) else "\n".join(part.get("text", "") for part in content)


@contextmanager
def running_stand_ins(port: int) -> Iterator[StandIns]:
    stand_ins = StandIns()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)) or b"{}")
            if self.path == "/v1/chat/completions":
                answer, kind = stand_ins.complete(body), "text/event-stream"
            else:
                result = stand_ins.telegram(self.path.rpartition("/")[2], body)
                answer, kind = json.dumps({"ok": True, "result": result}).encode(), "application/json"
            self.send_response(200)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        do_GET = do_POST  # noqa: N815

        def log_message(self, *_arguments: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    try:
        yield stand_ins
    finally:
        server.shutdown()
        server.server_close()
