"""The one ASGI application behind the one port."""

from __future__ import annotations

import os

from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "memory_gateway.settings")
application = get_asgi_application()
