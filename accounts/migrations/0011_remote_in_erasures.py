"""Say in the events of begun erasures, which receipts are made of, what remotes held as receipts say it now."""

from typing import Any

from django.db import migrations


def convert(apps: Any, schema_editor: Any) -> None:
    events = apps.get_model("accounts", "AuditEvent").objects.using(schema_editor.connection.alias)
    for event in events.filter(action="user.erase_begin", detail__has_key="upstream").iterator():
        held = event.detail.pop("upstream")
        if held is not None:
            address, sent = held.pop("base_url"), held.pop("messages")
            held |= {"base_urls": [address] if address else [], "withdrawn": 0, "sent": sent}
        events.filter(pk=event.pk).update(detail=event.detail | {"remote": held})


class Migration(migrations.Migration):

    dependencies = [("accounts", "0010_authority")]

    operations = [migrations.RunPython(convert, migrations.RunPython.noop, elidable=True)]
