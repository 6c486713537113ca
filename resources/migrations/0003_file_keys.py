import re

from django.db import migrations

# The absolute path or `file://` address of a stored file, in any storage folder.
_STORED = re.compile(
    r"(?:file://)?/(?:.*/)?"
    r"(?P<key>[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/(?:r_[0-9a-f]{32}|memory_attachments/[0-9a-f]{64})"
    r"/content(?:\.[a-z0-9]{1,8})?)",
    re.DOTALL,
)
_BATCH = 1000


def addresses_to_keys(apps, schema_editor):
    """Replace the `file://` addresses of stored files by their keys. Addresses that callers gave stay."""
    attachments = apps.get_model("resources", "Attachment").objects.using(schema_editor.connection.alias)
    stored = attachments.filter(source__in=["upload", "memory_add"], internal_uri__startswith="file:///").exclude(sha256="")
    changed = []
    for row in stored.only("pk", "user_id", "internal_uri").iterator(chunk_size=_BATCH):
        found = _STORED.fullmatch(row.internal_uri)
        if found and found["key"].startswith(f"{row.user_id}/"):
            row.internal_uri = found["key"]
            changed.append(row)
        if len(changed) >= _BATCH:
            attachments.bulk_update(changed, ["internal_uri"])
            changed = []
    attachments.bulk_update(changed, ["internal_uri"])


class Migration(migrations.Migration):

    dependencies = [
        ("resources", "0002_trash"),
    ]

    operations = [
        migrations.RunPython(addresses_to_keys, migrations.RunPython.noop, elidable=True),
    ]
