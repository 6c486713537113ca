import re

from django.db import migrations

# The absolute path of a stored file, in any storage folder.
_STORED = re.compile(
    r"/(?:.*/)?"
    r"(?P<key>[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/(?:r_[0-9a-f]{32}|memory_attachments/[0-9a-f]{64})"
    r"/content(?:\.[a-z0-9]{1,8})?)",
    re.DOTALL,
)
_BATCH = 500


def paths_to_keys(apps, schema_editor):
    """Replace the absolute paths of files in the journal by their keys."""
    memories = apps.get_model("store", "Memory").objects.using(schema_editor.connection.alias)
    entries = memories.filter(origin="upstream", memory_type="unprocessed_message").exclude(delivery_state="")
    changed = []
    for row in entries.only("pk", "user_id", "payload").iterator(chunk_size=_BATCH):
        if _change(row):
            changed.append(row)
        if len(changed) >= _BATCH:
            memories.bulk_update(changed, ["payload"])
            changed = []
    memories.bulk_update(changed, ["payload"])


def _change(row):
    """Change the row's payload; return True if it had such a path."""
    is_changed = False
    for item in (row.payload.get("message") or {}).get("content") or ():
        found = _STORED.fullmatch(item.get("file") or "")
        if found and found["key"].startswith(f"{row.user_id}/"):
            item["file"] = found["key"]
            is_changed = True
    return is_changed


class Migration(migrations.Migration):

    dependencies = [
        ("store", "0003_pending_deletion"),
    ]

    operations = [
        migrations.RunPython(paths_to_keys, migrations.RunPython.noop, elidable=True),
    ]
