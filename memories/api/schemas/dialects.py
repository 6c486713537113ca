"""Read messages in the words of OpenAI's and Anthropic's APIs: what they mean in the words of `POST /memories/add`.

Every function takes plain JSON. What it does not know it returns as it is, for the schema to accept or refuse.
"""

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, get_args
from urllib.parse import unquote_to_bytes

from core.messages import Translatable as _
from core.times import to_ms
from documents import mime_types
from documents.mime_types import ContentType

_OWN: Final = frozenset(get_args(ContentType))
_TEXTS: Final = {"input_text": "text", "output_text": "text", "summary_text": "text", "refusal": "refusal"}
_PICTURES: Final = frozenset({"image_url", "input_image"})
_FILES: Final = frozenset({"file", "input_file"})
_CALLS: Final = frozenset({"tool_use", "server_tool_use", "mcp_tool_use"})
_ROLES: Final = {"developer": "system", "function": "tool"}
_THOUGHTS: Final = frozenset({"thinking", "redacted_thinking", "reasoning"})
# What the answers of models carry extra the message itself.
_OF_ANSWERS: Final = frozenset(
    {"annotations", "container", "id", "model", "phase", "status", "stop_details", "stop_reason", "stop_sequence",
     "type", "usage"}
)  # fmt: skip
_OF_PARTS: Final = frozenset({"annotations", "cache_control", "citations", "logprobs"})
_REASONING: Final = ("reasoning_content", "reasoning")
MAX_NAMED_CHARS: Final = 100
_UNREADABLE: Final = _("names a file that only its sender can read: its name is kept as text")


@dataclass(frozen=True, slots=True)
class Part:
    """A part as an item of ours. `place` is where its address or its bytes stand, `warning` what is lost of it."""

    values: Mapping[str, Any]
    place: str = ""
    warning: str = ""


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a tool among the parts of a message."""

    id: object
    name: object
    arguments: str


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer of a tool among the parts of a message."""

    call_id: object
    content: object


@dataclass(frozen=True, slots=True)
class Thought:
    """A part in which a model reasons. It is not stored."""


def read_part(value: object) -> Part | Call | Answer | Thought:
    """Return what a part of a message means. An unknown part is its name as text.

    Raises: ValueError for a part without its content.
    """
    if isinstance(value, str):
        return Part({"type": "text", "text": value})
    if not isinstance(value, Mapping) or not isinstance(kind := value.get("type"), str):
        return Part(value)  # type: ignore[arg-type]
    part = {name: item for name, item in value.items() if name not in _OF_PARTS}
    if kind in _THOUGHTS:
        return Thought()
    if kind in _CALLS:
        return Call(part.get("id"), part.get("name"), _as_json(part.get("input")))
    if kind.endswith("tool_result") and isinstance(part.get("content", ""), str | list):
        return Answer(part.get("tool_use_id"), part.get("content", ""))
    return _read_content(kind, part) or (Part(part) if kind in _OWN else _placeholder(kind, part))


def _read_content(kind: str, part: Mapping[str, Any]) -> Part | None:
    """Return a text or a file as an item of ours; None for another part."""
    if kind in _TEXTS:
        return Part({"type": "text", "text": part.get(_TEXTS[kind], part.get("text"))})
    if kind in _PICTURES:
        return _picture(part)
    if kind in _FILES:
        return _file(kind, part)
    if kind == "input_audio":
        audio = part.get(kind)
        given = audio if isinstance(audio, Mapping) else {}
        return _inline("audio", given.get("data"), f"{kind}.data", ext=given.get("format"))
    if kind in {"image", "document"} and isinstance(part.get("source"), Mapping):
        return _source(kind, part)
    return None


def _picture(part: Mapping[str, Any]) -> Part:
    given = part.get("image_url")
    if given is None and part.get("file_id"):
        return _registered("image", part, part)
    address, place = (given.get("url"), "image_url.url") if isinstance(given, Mapping) else (given, "image_url")
    return _addressed("image", address, place)


def _file(kind: str, part: Mapping[str, Any]) -> Part:
    nested = part.get("file")
    given, path = (nested, "file.") if kind == "file" and isinstance(nested, Mapping) else (part, "")
    name = given.get("filename")
    if given.get("file_url") is not None:
        return _addressed(None, given["file_url"], f"{path}file_url", name)
    if given.get("file_data") is None and given.get("file_id"):
        return _registered("file", given, given)
    data, place = given.get("file_data"), f"{path}file_data"
    is_address = isinstance(data, str) and data.startswith("data:")
    return _addressed(None, data, place, name) if is_address else _inline(None, data, place, name=name)


def _source(kind: str, part: Mapping[str, Any]) -> Part:
    source, name = part["source"], part.get("title")
    of_kind: ContentType | None = "image" if kind == "image" else None
    if source.get("type") == "url":
        return _addressed(of_kind, source.get("url"), "source.url", name)
    if source.get("type") == "base64":
        return _inline(of_kind, source.get("data"), "source.data", mime=source.get("media_type"), name=name)
    if source.get("type") == "file":
        return _registered(kind, part, source)
    text = source.get("data") if source.get("type") == "text" else _texts_of(source.get("content"))
    if isinstance(text, str) and text:
        return Part({"type": "text", "text": f"{name}\n\n{text}" if isinstance(name, str) and name else text})
    return _placeholder(kind, part)


def _texts_of(content: object) -> str:
    """Return a text, or the texts of a list of parts."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    texts = [part.get("text") for part in parts if isinstance(part, Mapping)]
    return "\n".join(text for text in texts if isinstance(text, str))


def _addressed(kind: ContentType | None, address: object, place: str, name: object = None) -> Part:
    """Return a file at an address, or in a `data:` address. Raises: ValueError without one."""
    if not isinstance(address, str) or not address:
        raise ValueError(_("%(field)s: is required", field=place))
    if address.startswith("data:"):
        head, comma, data = address[len("data:") :].partition(",")
        mime, *options = head.split(";")
        if not comma:
            raise ValueError(_("%(field)s: must be data:<type>;base64,<data>, or an address", field=place))
        if "base64" not in options:
            data = base64.b64encode(unquote_to_bytes(data)).decode()
        return _inline(kind, data, place, mime=mime, name=name)
    kind = kind or mime_types.content_type_of(None, str(name or address.partition("?")[0]))
    return Part({"type": kind, "uri": address, **_named(name)}, place)


def _inline(
    kind: ContentType | None, data: object, place: str, *, mime: object = None, name: object = None, ext: object = None
) -> Part:
    """Return a file as base64. Raises: ValueError without one."""
    if not isinstance(data, str) or not data:
        raise ValueError(_("%(field)s: is required", field=place))
    known = mime_types.normalize(mime)
    if kind is None:
        kind = mime_types.content_type_of(known, str(name or ""))
    if ext is None and known in mime_types.EXTENSIONS and (not name or "." not in str(name)):
        ext = mime_types.extension_of(known).lstrip(".")
    values = {"type": kind, "base64": data, **_named(name)}
    return Part(values | ({} if ext is None else {"ext": ext}), place)


def _named(name: object) -> dict[str, object]:
    return {"name": name} if name else {}


def _registered(kind: str, part: Mapping[str, Any], source: Mapping[str, Any]) -> Part:
    """Return the name and the id of a file that its sender uploaded elsewhere."""
    return Part({"type": "text", "text": f"[{_name_of(kind, part)}] {source['file_id']}"}, warning=_UNREADABLE)


def _placeholder(kind: str, part: Mapping[str, Any]) -> Part:
    """Return the text of a part of an unknown kind, or its name."""
    text = part.get("text")
    if not isinstance(text, str) or not text:
        text = f"[{_name_of(kind, part)}]"
    return Part({"type": "text", "text": text}, warning=_("has an unknown type: its text or its name is kept as text"))


def _name_of(kind: str, part: Mapping[str, Any]) -> str:
    names = (part.get(key) for key in ("filename", "name", "title"))
    name = next((name for name in names if isinstance(name, str) and name), "")
    kind = " ".join(kind.split())[:MAX_NAMED_CHARS].upper()
    return f"{kind}: {' '.join(name.split())[:MAX_NAMED_CHARS]}" if name else kind


def _as_json(value: object) -> str:
    return value if isinstance(value, str) else json.dumps({} if value is None else value, ensure_ascii=False)


def read_message(value: Mapping[str, Any]) -> dict[str, Any]:
    """Return a message in our words: role, name, tool calls, and a `content` with what the message has next to it."""
    values = {name: item for name, item in (_read_item(value) or value).items() if name not in _OF_ANSWERS}
    if isinstance(role := values.get("role"), str):
        values["role"] = _ROLES.get(role, role)
    name = values.pop("name", None)
    if values.get("sender_name") is None and name is not None:
        values["sender_name"] = name
    calls = values.get("tool_calls")
    if isinstance(calls, list):
        values["tool_calls"] = [_read_call(call, number) for number, call in enumerate(calls)]
    if isinstance(called := values.pop("function_call", None), Mapping):
        values["tool_calls"] = [*(values.get("tool_calls") or []), _read_call({"function": called}, 0)]
    extra: list[dict[str, Any]] = [{"type": "thinking"} for key in _REASONING if values.pop(key, None)]
    if refusal := values.pop("refusal", None):
        extra.append({"type": "refusal", "refusal": refusal})
    if isinstance(audio := values.pop("audio", None), Mapping) and audio.get("transcript"):
        extra.append({"type": "text", "text": audio["transcript"]})
    if extra:
        content = values.get("content")
        values["content"] = [*(content if isinstance(content, list) else [content] if content else []), *extra]
    return values


def _read_item(value: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return an item of OpenAI's Responses API as a message; None for another."""
    kind = value.get("type")
    timed = {name: value[name] for name in ("sender_id", "timestamp") if name in value}
    if kind == "function_call":
        function = {name: value.get(name) for name in ("name", "arguments")}
        return {**timed, "role": "assistant", "tool_calls": [{"id": value.get("call_id"), "function": function}]}
    if kind == "function_call_output":
        return {**timed, "role": "tool", "tool_call_id": value.get("call_id"), "content": value.get("output")}
    return {**timed, "role": "assistant", "content": [{"type": kind}]} if kind in _THOUGHTS else None


def _read_call(call: object, number: int) -> object:
    """Return a call of a tool as OpenAI's API writes it; those of others have objects as arguments, and no id."""
    if not isinstance(call, Mapping):
        return call
    values = {key: item for key, item in call.items() if key != "index"}
    if values.get("type") == "custom" and isinstance(custom := values.pop("custom", None), Mapping):
        function: object = {"name": custom.get("name"), "arguments": _as_json(custom.get("input"))}
        return {**values, "type": "function", "function": function}
    function = values.get("function")
    if isinstance(function, Mapping) and not isinstance(function.get("arguments"), str):
        values["function"] = {**function, "arguments": _as_json(function.get("arguments"))}
    return {"id": f"call_{number}", **values}


def read_time(moment: object) -> object:
    """Return a time as Unix milliseconds, if it is a text or has a fraction of a second.

    Raises: ValueError for a text that is no time, or has no time zone.
    """
    if isinstance(moment, float) and not moment.is_integer():
        return round(moment * 1000) if abs(moment) < 1e11 else round(moment)
    if not isinstance(moment, str):
        return moment
    if moment.isascii() and moment.isdigit() and len(moment) < 20:
        return int(moment)
    try:
        at = datetime.fromisoformat(moment)
    except ValueError:
        at = None
    if at is None or at.tzinfo is None:
        raise ValueError(_("must be Unix milliseconds, or a time such as 2027-01-31T12:00:00+00:00"))
    return to_ms(at)
