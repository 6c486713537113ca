"""Error responses and close frames in OpenClaw's shapes."""

from collections.abc import Mapping
from typing import Any


class Failure(Exception):
    """A request that fails, with the `error` and `payload` of its response."""

    def __init__(
        self,
        code: str,
        message: str,
        *,
        details: Mapping[str, Any] | None = None,
        retry_after_ms: int | None = None,
        payload: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(message)
        self.error: dict[str, Any] = {"code": code, "message": message}
        if details is not None:
            self.error["details"] = details
        if retry_after_ms is not None:
            self.error |= {"retryable": True, "retryAfterMs": retry_after_ms}
        self.payload = payload


class Refusal(Exception):
    """A socket to close, with the `code` and `reason` of the close frame, after a response with the `failure`."""

    def __init__(self, code: int, reason: str = "", failure: Failure | None = None) -> None:
        super().__init__(reason)
        self.code = code
        self.reason = reason
        self.failure = failure


def invalid(message: str, details: Mapping[str, Any] | None = None) -> Failure:
    return Failure("INVALID_REQUEST", message, details=details)


def plugin_failure(status: int, message: str, detail: str | None = None) -> Failure:
    """Return an error of a memory plugin method: its panel reads the payload, other clients the error."""
    payload: dict[str, Any] = {"error": message, "status": status}
    if detail is not None:
        payload["detail"] = detail
    return Failure(f"http_{status}", message, payload=payload)


def refused(failure: Failure, *, code: int = 1008) -> Refusal:
    """Return a refused `connect`: an error response, then a close frame with the message as its reason."""
    return Refusal(code, str(failure), failure)
