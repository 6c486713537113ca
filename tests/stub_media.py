"""Stand-ins for models that describe pictures and transcribe recordings, which fail, stall and lie when told to."""

from __future__ import annotations

import base64
import io
import json
import wave
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from email import message_from_bytes, policy
from email.message import EmailMessage
from typing import Any

from PIL import Image

from tests.server import free_port
from tests.stub_http import WIRE, answering_posts
from tests.stub_llm import ENVELOPES

NO_TRANSCRIPTS: dict[str, Any] = {"error": {"error": {"message": "no, sk-secret"}}, "list": [], "nothing": {}}
VISION_FAULTS: tuple[int | str, ...] = (500, 429, 401, 404, *(set(WIRE) - {"slow", "reset after"}), *ENVELOPES)
TRANSCRIPTION_FAULTS: tuple[int | str, ...] = (500, 429, "reset within", "drip", "html", "bomb", *NO_TRANSCRIPTS)


class StubMedia:
    """`failure` is None, a status, or a name of `WIRE`, `ENVELOPES` or `NO_TRANSCRIPTS`.

    `picture` and `transcript` are the answers; `pictures` and `recordings` are the bytes that were received.
    """

    def __init__(self) -> None:
        self.failure: int | str | None = None
        self.picture: Any = {"description": "A red bicycle leans against a wall in Lisbon.", "text": "RUA AUGUSTA 12"}
        self.transcript: Any = {
            "text": "The meeting moved to Thursday. Bring the blue folder.",
            "segments": [
                {"id": 0, "start": 0.0, "end": 4.2, "text": " The meeting moved to Thursday."},
                {"id": 1, "start": 65.5, "end": 71.0, "text": " Bring the blue folder."},
            ],
        }
        self.pictures: list[bytes] = []
        self.recordings: list[bytes] = []
        self.prompts: list[str] = []
        self.fields: list[dict[str, str]] = []
        self.keys: set[str | None] = set()
        self.port = free_port()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    @property
    def calls(self) -> int:
        return len(self.pictures) + len(self.recordings)

    def answer(self, path: str, headers: Mapping[str, str], body: Any) -> tuple[int | str, bytes]:
        self.keys.add(headers.get("Authorization"))
        is_picture = path == "/v1/chat/completions"
        if is_picture:
            answer = self._describe(body)
        elif path == "/v1/audio/transcriptions":
            answer = self._transcribe(headers["Content-Type"], body)
        else:
            return 404, b"{}"
        failure = self.failure
        if isinstance(failure, int):
            return failure, b'{"error": {"message": "no, sk-secret"}}'
        envelopes = ENVELOPES if is_picture else NO_TRANSCRIPTS
        if failure in envelopes:
            return 200, json.dumps(envelopes[failure]).encode()
        return failure or 200, answer if isinstance(answer, bytes) else json.dumps(answer).encode()

    def _describe(self, body: Any) -> Any:
        text, picture = body["messages"][1]["content"]
        start, encoded = picture["image_url"]["url"].split(",", 1)
        assert start.startswith("data:image/"), start
        assert start.endswith(";base64"), start
        self.pictures.append(base64.b64decode(encoded, validate=True))
        self.prompts.append(text["text"])
        content = self.picture if isinstance(self.picture, str) else json.dumps(self.picture)
        return {"choices": [{"message": {"role": "assistant", "content": content}}]}

    def _transcribe(self, content_type: str, body: bytes) -> Any:
        form = message_from_bytes(f"Content-Type: {content_type}\r\n\r\n".encode() + body, policy=policy.default)
        assert isinstance(form, EmailMessage)
        fields = {}
        for part in form.iter_parts():
            assert isinstance(part, EmailMessage)
            name = part.get_param("name", header="content-disposition")
            if filename := part.get_filename():
                fields[str(name)] = filename
                self.recordings.append(part.get_payload(decode=True))  # type: ignore[arg-type]
            else:
                fields[str(name)] = str(part.get_content()).strip()
        self.fields.append(fields)
        return self.transcript


@contextmanager
def running_media() -> Iterator[StubMedia]:
    stub = StubMedia()
    with answering_posts(stub.port, stub.answer, lambda: bool(stub.failure)):
        yield stub


def photo(color: str = "red") -> bytes:
    """Return a picture without text."""
    output = io.BytesIO()
    Image.new("RGB", (40, 30), color).save(output, "PNG")
    return output.getvalue()


def recording(seconds: int = 1, value: int = 0) -> bytes:
    output = io.BytesIO()
    with wave.open(output, "wb") as sound:
        sound.setnchannels(1)
        sound.setsampwidth(2)
        sound.setframerate(8_000)
        sound.writeframes(bytes([value]) * 16_000 * seconds)
    return output.getvalue()
