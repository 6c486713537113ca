"""Answer one message of streamable HTTP by the SDK's server, without an event loop.

Without sessions and streams nothing waits for the client, so that a request stays in its thread, as over REST.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import anyio
import orjson
from mcp.server.connection import Connection
from mcp.server.runner import ServerRunner, modern_error_data
from mcp.shared.dispatcher import CallOptions
from mcp.shared.exceptions import MCPError, NoBackChannelError
from mcp.shared.inbound import (
    ERROR_CODE_HTTP_STATUS,
    MCP_PROTOCOL_VERSION_HEADER,
    InboundLadderRejection,
    classify_inbound_request,
    unsupported_protocol_version_rejection,
)
from mcp.shared.transport_context import TransportContext
from mcp_types import DEFAULT_NEGOTIATED_VERSION, JSONRPCError, JSONRPCRequest, JSONRPCResponse, RequestId
from mcp_types.jsonrpc import jsonrpc_message_adapter
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
from pydantic import ValidationError

from agents.mcp.server import build, unreadable

_TRANSPORT: Final = TransportContext(kind="streamable-http", can_send_request=False)


def answer(body: bytes, headers: Mapping[str, str]) -> tuple[int, bytes]:
    """Return the HTTP status and body of the answer to a message; `headers` have lower-case names."""
    try:
        data = orjson.loads(body)
        message = jsonrpc_message_adapter.validate_python(data, by_name=False)
    except (orjson.JSONDecodeError, ValidationError):
        return 400, _document(unreadable(body))
    version = headers.get(MCP_PROTOCOL_VERSION_HEADER, DEFAULT_NEGOTIATED_VERSION)
    is_modern = version not in HANDSHAKE_PROTOCOL_VERSIONS
    if not isinstance(message, JSONRPCRequest):
        is_served = not is_modern or unsupported_protocol_version_rejection(version) is None
        # Without sessions there is nothing that a notification could change.
        return (202, b"") if is_served and "id" not in data else (400, _document(unreadable(body)))
    try:
        connection = _connection(data, headers) if is_modern else Connection.from_envelope(version, None, None)
        result = _finished(_result(connection, message))
    except (MCPError, ValidationError) as raised:
        error = modern_error_data(raised)
        status = ERROR_CODE_HTTP_STATUS.get(error.code, 200) if is_modern else 200
        return status, _document(JSONRPCError(jsonrpc="2.0", id=message.id, error=error))
    return 200, _document(JSONRPCResponse(jsonrpc="2.0", id=message.id, result=result))


def _document(message: JSONRPCResponse | JSONRPCError) -> bytes:
    return message.model_dump_json(by_alias=True, exclude_unset=True).encode()


def _connection(data: dict[str, Any], headers: Mapping[str, str]) -> Connection:
    """Return the connection that a request since 2026 describes. Raises: `MCPError`."""
    route = classify_inbound_request(data, headers=headers)
    if isinstance(route, InboundLadderRejection):
        raise MCPError(code=route.code, message=route.message, data=route.data)
    return Connection.from_envelope(route.protocol_version, route.client_info, route.client_capabilities)


async def _result(connection: Connection, request: JSONRPCRequest) -> dict[str, Any]:
    runner = ServerRunner(_SERVER, connection, {})
    return await runner.on_request(_Exchange(request.id), request.method, request.params)


async def _at_once(call: Callable[[], Any]) -> Any:
    return call()


_SERVER: Final = build(_at_once)


def _finished(work: Awaitable[Any]) -> Any:
    """Return the result of a coroutine that waits for nothing. Raises: its errors."""
    steps = work.__await__()
    try:
        next(steps)
    except StopIteration as end:
        return end.value
    raise RuntimeError("The MCP SDK waits for something, which needs an event loop.")


@dataclass
class _Exchange:
    """A request as the SDK's server sees it: its only message to the client is the answer."""

    request_id: RequestId
    transport: TransportContext = _TRANSPORT
    message_metadata: None = None
    can_send_request: bool = False
    cancel_requested: anyio.Event = field(default_factory=anyio.Event)

    async def send_raw_request(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None
    ) -> dict[str, Any]:
        raise NoBackChannelError(method)

    async def notify(self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None) -> None:
        """Send nothing."""

    async def progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        """Send nothing."""
