"""Settings of a server with short socket timeouts and without rate limits."""

from memory_gateway.settings import *  # noqa: F403

RPC_HANDSHAKE_SECONDS = 2.0
RPC_TICK_SECONDS = 0.5
RPC_REQUESTS_PER_SECOND = 0
FAILED_AUTHENTICATIONS_PER_MINUTE = 0
