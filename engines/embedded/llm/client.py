"""Questions to a language model behind an OpenAI-compatible address, answered in JSON of a given shape."""

from __future__ import annotations

from functools import cache
from typing import Any, TypeVar

from django.conf import settings
from pydantic import BaseModel, ConfigDict, ValidationError

from core.http_client import Deadline
from core.model_endpoint import Endpoint, EndpointError


class Answer(BaseModel):
    """What models are asked for: what they say beyond it is let through and never used."""

    model_config = ConfigDict(extra="ignore", frozen=True)


_Shape = TypeVar("_Shape", bound=Answer)


class Unusable(EndpointError):
    """The endpoint works, but the model's words are not the JSON that was asked for."""

    def __init__(self, detail: str) -> None:
        super().__init__(detail, is_refusal=True)


class ChatClient:
    """One per process, endpoint and model; threads share it."""

    def __init__(self, base_url: str, api_key: str, model: str) -> None:
        self.model = model
        self.endpoint = Endpoint(base_url, api_key, "The LLM endpoint")

    def ask(self, task: str, data: str, shape: type[_Shape], seconds: float) -> _Shape:
        """What the model makes of `data`, by the rules of `task`.

        Only what every endpoint understands is sent: some refuse a temperature, some a response format. Errors:
        `EndpointError` after `seconds` at most, `Unusable`.
        """
        messages = [{"role": "system", "content": task}, {"role": "user", "content": data}]
        body = {"model": self.model, "messages": messages, "stream": False}
        answer = self.endpoint.post("/chat/completions", body, Deadline.after(seconds))
        words = self._words(answer)
        self.endpoint.pause.end()
        try:
            return shape.model_validate_json(_json_in(words))
        except ValidationError:
            raise Unusable("The LLM did not answer in the form that it was asked for.") from None

    def _words(self, answer: Any) -> str:
        """Errors: `EndpointError` for what is no answer of a chat."""
        try:
            words = answer["choices"][0]["message"]["content"]
        except (TypeError, KeyError, IndexError):
            words = None
        if not isinstance(words, str):
            raise self.endpoint.fail("gave an answer without a message.")
        return words


def _json_in(words: str) -> str:
    """The object in a model's words, which may stand after its thoughts and between fences."""
    said = words.rpartition("</think>")[2]
    start, end = said.find("{"), said.rfind("}")
    return said[start : end + 1] if start >= 0 else said


def is_set() -> bool:
    """Whether the settings name an LLM."""
    return bool(settings.MEMORY_GATEWAY_LLM_BASE_URL)


def client() -> ChatClient:
    """The process's client of the endpoint that the settings name."""
    return _client(
        settings.MEMORY_GATEWAY_LLM_BASE_URL, settings.MEMORY_GATEWAY_LLM_API_KEY, settings.MEMORY_GATEWAY_LLM_MODEL
    )


@cache
def _client(base_url: str, api_key: str, model: str) -> ChatClient:
    return ChatClient(base_url, api_key, model)
