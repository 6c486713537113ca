"""Render resources as plain data in the documented order."""

from __future__ import annotations

from typing import Any

from core.times import isoformat
from resources.models import Resource


def answer(resource: Resource) -> dict[str, Any]:
    """Return the answer of upload, register and delete."""
    return {
        "resource_id": resource.resource_id,
        "session_id": resource.session_id,
        "uri": resource.uri,
        "status": status_of(resource),
    }


def item(resource: Resource) -> dict[str, Any]:
    """Return a list entry: the documented fields, then the additional ones."""
    return {
        "resource_id": resource.resource_id,
        "user_id": resource.user.user_id,
        "filename": resource.filename,
        "content_type": resource.content_type,
        "mime_type": resource.mime_type,
        "uri": resource.uri,
        "session_id": resource.session_id,
        "status": status_of(resource),
        "title": resource.title,
        "description": resource.description,
        "created_at": isoformat(resource.created_at),
        "updated_at": isoformat(resource.updated_at),
        "error_message": resource.error_message or None,
        "size_bytes": resource.size_bytes,
        "sha256": resource.sha256 or None,
        "app_id": resource.app_id,
        "project_id": resource.project_id,
    }


def status_of(resource: Resource) -> str:
    """Return the status of the contract, which has one value for pending and ingesting."""
    is_pending = resource.status == Resource.Status.PENDING
    return str(Resource.Status.INGESTING if is_pending else resource.status)
