"""Create many stored files without uploads: rows and folders, two hours old."""

from __future__ import annotations

import os
import time
from pathlib import Path

from accounts.audit import Actor
from accounts.services import create_user
from core.ids import new_resource_id
from core.persistence.files import root
from resources import storage
from resources.models import Resource
from resources.services import storage_binding


def create_stored_files(user_id: str = "alice", files: int = 150) -> None:
    """Create a user with files, and bind the storage folder to the database."""
    user_pk = create_user(user_id, actor=Actor.command("tests")).key.user_id
    resources = []
    for number in range(files):
        resource_id = new_resource_id()
        path = storage.storage_path(user_pk, resource_id, ".txt")
        resources.append(
            Resource(
                resource_id=resource_id,
                user_id=user_pk,
                session_id=f"resource:{user_id}:{resource_id}",
                filename=f"{number}.txt",
                content_type="text",
                mime_type="text/plain",
                size_bytes=4,
                sha256=f"{number:064x}",
                storage_path=path,
                status=Resource.Status.EXTRACTED,
            )
        )
        write_old_file(root() / path)
    Resource.objects.bulk_create(resources)
    storage_binding.bind()


def write_old_file(path: Path, age_seconds: float = 7200) -> Path:
    """Write a file into a separate folder with an old modification time."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("text")
    then = time.time() - age_seconds
    os.utime(path.parent, (then, then))
    return path
