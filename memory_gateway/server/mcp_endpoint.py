"""MCP endpoint at `/mcp`: streamable HTTP without sessions, authenticated by API keys.

The SDK receives a request only after it is authenticated, complete and valid JSON.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import orjson
from django.http import HttpRequest
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

from accounts.api import limits
from accounts.api.authentication import bearer
from accounts.audit import Actor
from accounts.principal import Principal
from agents.mcp.server import build, current
from agents.mcp.work import Workers
from agents.rpc.origins import is_host_allowed, is_origin_allowed
from agents.tools.caller import caller_for
from core.errors import BadRequest, GatewayError, TooLarge, Unauthenticated
from core.rest import MAX_JSON_DEPTH, Forbidden, RequestTimeout, json_depth_exceeds
from memories.services.owned import owner_of
from memory_gateway.server.request_body import (
    BodyError,
    ClientGone,
    ClientTimeouts,
    IncomingBody,
    Message,
    Receive,
    TooMuch,
)
from memory_gateway.server.responses import made_answer, problem_answer
from memory_gateway.server.wsgi_bridge import Answer, InternalError, Scope, body_length

logger = logging.getLogger("memory_gateway.errors")

MAX_BODY_BYTES = 4 * 2**20
AGENT_HEADER = "x-agent-id"
_UNREADABLE = {"jsonrpc": "2.0", "id": None, "error": {"code": -32700, "message": "The body is no JSON."}}


class MethodNotAllowed(GatewayError):
    status, code, title = 405, "method_not_allowed", "Method not allowed"


class McpEndpoint:
    """MCP server that answers while `open()` is entered. Requests are independent, so any process may answer them."""

    def __init__(self, threads: int) -> None:
        self._workers = Workers(threads)
        self._manager = StreamableHTTPSessionManager(build(self._workers), json_response=True, stateless=True)

    @asynccontextmanager
    async def open(self, stop_seconds: float) -> AsyncIterator[None]:
        async with self._manager.run():
            yield
        closing = asyncio.to_thread(self._workers.close)
        await asyncio.wait([asyncio.ensure_future(closing)], timeout=stop_seconds)

    async def answer(self, scope: Scope, receive: Receive) -> Answer | None:
        """Return the response; None if the client has disconnected."""
        try:
            return await self._answer(scope, receive)
        except ClientGone:
            return None
        except TooMuch as error:
            return problem_answer(scope, TooLarge(str(error)))
        except BodyError as error:
            return problem_answer(scope, RequestTimeout(str(error)))
        except GatewayError as error:
            return problem_answer(scope, error)
        except Exception:
            logger.exception("A request to /mcp ended in an error")
            return problem_answer(scope, InternalError("The gateway failed."))

    async def _answer(self, scope: Scope, receive: Receive) -> Answer:
        headers = {name.decode("latin1"): value.decode("latin1") for name, value in scope["headers"]}
        _check_origin(scope, headers)
        if scope["method"] != "POST":
            # The gateway sends no streams to clients; the SDK would keep a GET open for ever.
            raise MethodNotAllowed("Send MCP messages as POST: there are no sessions and no streams here.")
        principal = await self._workers.run(lambda: _authenticated(scope, headers))
        caller = caller_for(owner_of(principal), Actor.key(principal), agent_id=headers.get(AGENT_HEADER))
        body = await _whole_body(scope, receive)
        try:
            orjson.loads(body)
        except orjson.JSONDecodeError:
            data = orjson.dumps(_UNREADABLE)
            return made_answer(scope, 400, b"application/json", data, user_id=principal.user_id)
        response = _CapturedResponse()
        token = current.set(caller)
        try:
            await self._manager.handle_request(scope, _replay(body, receive), response.send)
        finally:
            current.reset(token)
        return made_answer(
            scope, response.status, response.content_type, bytes(response.body), user_id=principal.user_id
        )


def _check_origin(scope: Scope, headers: dict[str, str]) -> None:
    """Check the `Host` and `Origin` headers.

    Raises: `BadRequest`, `Forbidden`.
    """
    host, origin = headers.get("host", ""), headers.get("origin")
    if not is_host_allowed(host):
        raise BadRequest("This host name is not one of ours.")
    scheme, peer = scope.get("scheme", "http"), _peer(scope)
    if origin is not None and not is_origin_allowed(origin, host=host, scheme=scheme, peer=peer):
        raise Forbidden("Pages of this origin may not call here.")


def _authenticated(scope: Scope, headers: dict[str, str]) -> Principal:
    """Return the user of the request's API key.

    Raises: `Unauthenticated`, `TooManyRequests`.
    """
    try:
        return limits.authenticate(_peer(scope), _key(headers))
    except Unauthenticated:
        limits.count_anonymous(_peer(scope))
        raise


def _key(headers: dict[str, str]) -> str:
    """Return the request's API key.

    Raises: `Unauthenticated`.
    """
    request = HttpRequest()
    request.META["HTTP_AUTHORIZATION"] = headers.get("authorization", "")
    key = bearer(request)
    if key is None:
        raise Unauthenticated("This endpoint needs an API key. Send the header Authorization: Bearer uk_….")
    return key


def _peer(scope: Scope) -> str:
    return str((scope.get("client") or ("", 0))[0])


async def _whole_body(scope: Scope, receive: Receive) -> bytes:
    """Return the complete body.

    Raises: `BodyError`, `TooLarge`.
    """
    body = IncomingBody(receive, body_length(scope), MAX_BODY_BYTES, ClientTimeouts())
    if (body.length or 0) > MAX_BODY_BYTES:
        raise TooLarge(f"The body must be at most {MAX_BODY_BYTES} bytes.")
    data = await body.beginning(MAX_BODY_BYTES + 1)
    if json_depth_exceeds(data, MAX_JSON_DEPTH):
        raise TooLarge(f"The body must nest at most {MAX_JSON_DEPTH} levels deep.")
    return data


def _replay(body: bytes, receive: Receive) -> Receive:
    """Return a receive function that replays the body and then passes on the connection's messages."""
    messages: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def next_message() -> Message:
        return messages.pop() if messages else await receive()

    return next_message


class _CapturedResponse:
    """The SDK's response, which is one JSON document, captured."""

    def __init__(self) -> None:
        self.status = 500
        self.content_type = b"application/json"
        self.body = bytearray()

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self.content_type = dict(message["headers"]).get(b"content-type", self.content_type)
        elif message["type"] == "http.response.body":
            self.body += message.get("body", b"")
