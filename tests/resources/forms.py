"""Upload forms as bytes, and stored resources for tests."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field
from typing import Any

from django.test import Client

from accounts.models import MemoryUser
from core.persistence.files import stored_files
from resources import storage
from resources.models import Resource
from resources.services import IncomingFile
from resources.services.storage_binding import FILE
from tests.conftest import Person

BOUNDARY = "b0undary"
CONTENT_TYPE = f"multipart/form-data; boundary={BOUNDARY}"


@dataclass
class Form:
    """A multipart body, built part by part. Names given as bytes are sent unchanged."""

    body: bytearray = field(default_factory=bytearray)

    def text(self, name: str, value: str | bytes) -> Form:
        data = value if isinstance(value, bytes) else value.encode()
        return self.part(f'form-data; name="{name}"'.encode(), data)

    def file(
        self, data: bytes, filename: str | bytes = "notes.txt", *, content_type: str = "", name: str = "file"
    ) -> Form:
        filename_bytes = filename if isinstance(filename, bytes) else filename.encode()
        return self.part(f'form-data; name="{name}"; filename="'.encode() + filename_bytes + b'"', data, content_type)

    def part(self, disposition: bytes, data: bytes, content_type: str = "") -> Form:
        kind = f"Content-Type: {content_type}\r\n".encode() if content_type else b""
        self.body += f"--{BOUNDARY}\r\n".encode() + b"Content-Disposition: " + disposition + b"\r\n" + kind + b"\r\n"
        self.body += data + b"\r\n"
        return self

    def whole(self) -> bytes:
        return bytes(self.body) + f"--{BOUNDARY}--\r\n".encode()

    def post(self, client: Client, **headers: Any) -> Any:
        return client.generic("POST", "/resources", self.whole(), content_type=CONTENT_TYPE, headers=headers or None)


def upload(person: Person, data: bytes = b"The quarterly report.", filename: str = "notes.txt", **fields: str) -> Any:
    """POST /resources as that person and return the response."""
    form = Form()
    for name, value in fields.items():
        form.text(name, value)
    return form.file(data, filename).post(person.client)


def stored_resource(person: Person, text: str = "The quarterly report.", **fields: Any) -> Resource:
    """Create a pending resource with its file, as an upload that crashed right after writing the row."""
    incoming = IncomingFile(fields.pop("filename", "notes.txt"))
    incoming.write(text.encode() + uuid.uuid4().hex.encode())
    incoming.finish()
    resource = Resource(
        user=MemoryUser.objects.get(pk=person.user_pk),
        filename=incoming.filename,
        content_type="text",
        mime_type=incoming.mime_type,
        size_bytes=incoming.size_bytes,
        sha256=incoming.sha256,
        **fields,
    )
    resource.session_id = f"resource:{person.user_id}:{resource.resource_id}"
    resource.storage_path = storage.storage_path(person.user_pk, resource.resource_id, ".txt")
    stored_files().put(incoming.path, resource.storage_path)
    resource.save(force_insert=True)
    return resource


def files_below(root: Any) -> list[str]:
    """Return the files of users, without the storage's id."""
    found = sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()) if root.exists() else []
    return [path for path in found if path != FILE]
