"""The settings of a later version, which has one more migration."""

from memory_gateway.settings import *  # noqa: F403

MIGRATION_MODULES = {"store": "tests.fleet.next_store_migrations"}
