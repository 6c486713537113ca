"""WSGI application for other servers:

REST, documentation and panel, without the background workers of `manage.py serve`.
"""

from memory_gateway.django_setup import application  # first: it sets Django up for the rest

# isort: split
from django.db import connections

from resources.services import storage_binding

__all__ = ["application"]

storage_binding.require()
connections.close_all()
