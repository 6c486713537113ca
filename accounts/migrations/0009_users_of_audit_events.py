from collections.abc import Iterable
from typing import Any

from django.db import migrations

_BATCH = 500


def add_subjects(apps: Any, schema_editor: Any) -> None:
    """Add the rows of the users whom events name in their column or their detail, and remove them from the detail."""
    event, subject = (apps.get_model("accounts", name) for name in ("AuditEvent", "AuditSubject"))
    events = event.objects.using(schema_editor.connection.alias)
    rows = subject.objects.using(schema_editor.connection.alias)
    quote = schema_editor.quote_name
    table, of_event = quote(subject._meta.db_table), quote(event._meta.db_table)
    schema_editor.execute(
        f"INSERT INTO {table} (event_id, user_id) SELECT id, user_id FROM {of_event} WHERE user_id <> ''"  # noqa: S608
    )
    batch: list[Any] = []
    for one in events.filter(detail__has_key="users").only("pk", "detail").iterator(chunk_size=_BATCH):
        names = one.detail.pop("users")
        if isinstance(names, list):  # a job of sessions has their number
            batch.append((one, {name[:64] for name in names if isinstance(name, str) and name}))
        if len(batch) == _BATCH:
            _save(events, rows, subject, batch)
            batch = []
    _save(events, rows, subject, batch)


def _save(events: Any, rows: Any, subject: Any, batch: Iterable[tuple[Any, set[str]]]) -> None:
    batch = list(batch)
    found = (subject(event_id=one.pk, user_id=name) for one, names in batch for name in sorted(names))
    rows.bulk_create(found, batch_size=5_000, ignore_conflicts=True)
    events.bulk_update([one for one, _names in batch], ["detail"])


class Migration(migrations.Migration):
    dependencies = (("accounts", "0008_audit_by_digest"),)
    operations = (migrations.RunPython(add_subjects, migrations.RunPython.noop),)
