"""The gateway's settings with a few more addresses, whose views do what real ones do rarely: hang, fail, stream."""

from memory_gateway.settings import *  # noqa: F403

ROOT_URLCONF = "tests.memory_gateway.site_urls"
