"""`server_settings` with a longer interval of ticks, for busy machines."""

from tests.agents.rpc.server_settings import *  # noqa: F403

RPC_TICK_SECONDS = 1.0
