"""WSGI application for other servers, without the WebSockets and the background worker of `manage.py serve`."""

from memory_gateway.django_setup import application  # first: it sets Django up for the rest

# isort: split
from django.db import connections

from resources.services import storage_binding

__all__ = ["application"]

storage_binding.require()
connections.close_all()
