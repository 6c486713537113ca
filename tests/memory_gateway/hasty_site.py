"""The settings of `site` in a process with `ulimit -n 1024` that gives clients little time."""

import resource

from tests.memory_gateway.site import *  # noqa: F403

resource.setrlimit(resource.RLIMIT_NOFILE, (1024, 1024))
HTTP_HEAD_SECONDS = 2.0
HTTP_KEEP_ALIVE_SECONDS = 2
ANONYMOUS_REQUESTS_PER_MINUTE = 0
