"""Create ingested files of a user in the configured database: `python -m benchmarks.many_resources USER_ID NUMBER`.

Uploading two thousand files would take minutes.
"""

import os
import sys

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "memory_gateway.settings")
django.setup()

from accounts.models import MemoryUser  # noqa: E402
from core.ids import new_resource_id, resource_session_id, session_name  # noqa: E402
from resources.models import Attachment, Resource  # noqa: E402
from store.models import Session  # noqa: E402


def make(user: MemoryUser, number: int) -> None:
    resources = [_resource(user, position) for position in range(number)]
    Session.objects.bulk_create(
        Session(user=user, session_id=one.session_id, engine_session_id=one.session_id, kind=Session.Kind.RESOURCE)
        for one in resources
    )
    Resource.objects.bulk_create(resources)
    Attachment.objects.bulk_create(
        Attachment(
            user=user,
            session_id=one.session_id,
            resource=one,
            source=Attachment.Source.UPLOAD,
            type=one.content_type,
            name=one.filename,
            internal_uri=f"file:///{one.resource_id}",
        )
        for one in resources
    )


def _resource(user: MemoryUser, position: int) -> Resource:
    resource_id = new_resource_id()
    return Resource(
        resource_id=resource_id,
        user=user,
        session_id=resource_session_id(session_name(user.pk, user.user_id), resource_id),
        filename=f"note-{position}.txt",
        content_type="doc",
        mime_type="text/plain",
        status=Resource.Status.EXTRACTED,
    )


if __name__ == "__main__":
    make(MemoryUser.objects.get(user_id=sys.argv[1]), int(sys.argv[2]))
