"""MCP endpoint at `/mcp`: streamable HTTP without sessions, authenticated by API keys and OAuth tokens.

The SDK receives a request only after it is authenticated, complete and valid JSON.
"""

import asyncio
import codecs
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import orjson
from django.conf import settings
from django.http import HttpRequest
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp_types import INTERNAL_ERROR, INVALID_REQUEST

from accounts.api import limits
from accounts.api.authentication import bearer
from accounts.audit import Actor, Source, source
from accounts.oauth import SCOPES, WRITE, Access
from accounts.services import OAUTH_PREFIX
from agents.mcp.server import Workers, build, current, unreadable
from agents.oauth.views import MCP, challenge, origin_of
from agents.rpc.origins import is_host_allowed, is_origin_allowed, is_secure
from agents.tools.caller import caller_for
from core.errors import BadRequest, GatewayError, TooLarge, Unauthenticated
from core.rest import Forbidden, MethodNotAllowed
from core.storable import MAX_JSON_DEPTH, depth_exceeds
from memories.services.lookup import owner_of
from memory_gateway.server.request_body import (
    BodyError,
    ClientGone,
    ClientTimeouts,
    IncomingBody,
    Message,
    Receive,
    Scope,
)
from memory_gateway.server.responses import body_answer, problem_answer
from memory_gateway.server.wsgi_bridge import Answer, InternalError, body_length, refusal_of, require_plain_body

logger = logging.getLogger("memory_gateway.errors")

MAX_BODY_BYTES = 4 * 2**20
AGENT_HEADER = "x-agent-id"


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
        except (BodyError, GatewayError) as error:
            return _refusal(scope, refusal_of(error))
        except Exception:
            logger.exception("A request to /mcp failed")
            return _refusal(scope, InternalError("The gateway failed."))

    async def _answer(self, scope: Scope, receive: Receive) -> Answer:
        headers = {name.decode("latin1"): value.decode("latin1") for name, value in scope["headers"]}
        _check_origin(scope, headers)
        source.set(Source.of(_peer(scope), headers.get("user-agent", "")))  # of this request's task
        if scope["method"] != "POST":
            # The gateway sends no streams to clients; the SDK would keep a GET open for ever.
            raise MethodNotAllowed("Send MCP messages as POST: there are no sessions and no streams here.")
        access = await self._workers.run(lambda: _authenticated(scope, headers))
        caller = caller_for(
            owner_of(access.principal), access.actor, interface="mcp", agent_id=headers.get(AGENT_HEADER)
        )
        caller = replace(caller, may_write=WRITE in access.scopes)
        require_plain_body(scope)
        incoming = IncomingBody(receive, body_length(scope), MAX_BODY_BYTES, ClientTimeouts())
        if (incoming.length or 0) > MAX_BODY_BYTES:
            raise TooLarge(f"The body must be at most {MAX_BODY_BYTES} bytes.")
        body = await incoming.beginning(MAX_BODY_BYTES + 1)
        if depth_exceeds(body, MAX_JSON_DEPTH):
            raise TooLarge(f"The body must nest at most {MAX_JSON_DEPTH} levels deep.")
        body = body.removeprefix(codecs.BOM_UTF8)
        try:
            is_message = isinstance(orjson.loads(body), dict)
        except orjson.JSONDecodeError:
            is_message = False
        if not is_message:
            data = unreadable(body).model_dump_json().encode()
            return body_answer(scope, 400, b"application/json", data, user_id=caller.owner.user_id)
        unread: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]
        sent: list[Message] = []

        async def replay() -> Message:
            return unread.pop() if unread else await receive()

        async def capture(message: Message) -> None:
            sent.append(message)

        token = current.set(caller)
        try:
            await self._manager.handle_request(scope, replay, capture)
        finally:
            current.reset(token)
        start, *parts = sent  # one JSON document
        content_type = dict(start["headers"]).get(b"content-type", b"application/json")
        data = b"".join(part.get("body", b"") for part in parts)
        if data and data[:1] != b"{":  # the SDK's plain words
            raise BadRequest(data.decode())
        return body_answer(scope, start["status"], content_type, data, user_id=caller.owner.user_id)


def _refusal(scope: Scope, error: GatewayError) -> Answer:
    """Return an error as JSON-RPC, whose message the official clients show, with the problem document as its data."""
    answer = problem_answer(scope, error, is_english=True)
    code = INTERNAL_ERROR if error.status >= 500 else INVALID_REQUEST
    content = {"code": code, "message": error.detail, "data": orjson.loads(answer.body)}
    headers = [(name, b"application/json" if name == b"content-type" else value) for name, value in answer.headers]
    if error.status == 405:
        headers.append((b"allow", b"POST"))
    if error.status == 401:
        sent = dict(scope["headers"])
        found = challenge(
            scope.get("scheme", "http"), sent[b"host"].decode("latin1"), is_invalid=b"authorization" in sent
        )
        headers = [(name, found.encode() if name == b"www-authenticate" else value) for name, value in headers]
    return Answer(error.status, headers, orjson.dumps({"jsonrpc": "2.0", "id": None, "error": content}))


def _check_origin(scope: Scope, headers: dict[str, str]) -> None:
    """Check the scheme and the `Host` and `Origin` headers. Raises: `BadRequest`, `Forbidden`."""
    host, origin = headers.get("host", ""), headers.get("origin")
    if not is_host_allowed(host):
        raise BadRequest("This gateway does not serve this host name.")
    scheme, peer = scope.get("scheme", "http"), _peer(scope)
    if not is_secure(scheme):
        raise Forbidden("This endpoint accepts API keys over HTTPS only. Use an https:// address.")
    if origin is not None and not is_origin_allowed(origin, host=host, scheme=scheme, peer=peer):
        raise Forbidden("Requests from this origin are not allowed.")


def _authenticated(scope: Scope, headers: dict[str, str]) -> Access:
    """Return the user of the request's API key or OAuth token. Raises: `Unauthenticated`, `TooManyRequests`."""
    request = HttpRequest()
    request.META["HTTP_AUTHORIZATION"] = headers.get("authorization", "")
    try:
        token = bearer(request)
        if token and token.startswith(OAUTH_PREFIX) and settings.MEMORY_GATEWAY_OAUTH:
            resource = origin_of(scope.get("scheme", "http"), headers["host"]) + MCP
            return limits.authenticate_token(_peer(scope), token, resource)
        if token:
            principal = limits.authenticate(_peer(scope), token)
            return Access(principal, Actor.key(principal), SCOPES)
    except Unauthenticated:
        limits.count_anonymous(_peer(scope))
        raise
    limits.count_anonymous(_peer(scope))
    raise Unauthenticated("This endpoint needs an API key or an OAuth token. Send the header Authorization: Bearer ….")


def _peer(scope: Scope) -> str:
    return str((scope.get("client") or ("", 0))[0])
