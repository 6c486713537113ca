"""As `server_settings`, with ticks that a busy machine keeps up with."""

from tests.agents.rpc.server_settings import *  # noqa: F403

RPC_TICK_SECONDS = 1.0
