"""Django setup for servers: import this before anything that needs the settings."""

import os

from django.core.wsgi import get_wsgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "memory_gateway.settings")
application = get_wsgi_application()
