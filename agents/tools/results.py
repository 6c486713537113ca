"""Tool results in OpenClaw's shape: `content` for the model, `details` for programs."""

from __future__ import annotations

from typing import Any

Result = dict[str, Any]


def result(text: str, /, **details: Any) -> Result:
    return {"content": [{"type": "text", "text": text}], "details": details}


def failed(error: str, text: str) -> Result:
    """Return an error result; `error` is a code such as "missing_param"."""
    return result(text, error=error)
