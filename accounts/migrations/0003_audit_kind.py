from functools import reduce
from operator import or_
from typing import Any, Final

from django.db import migrations, models
from django.db.models import Q

_VERBS: Final = {
    "read": ("download", "find", "list", "search", "view"),
    "sign_in": ("lock_out", "refuse", "sign_in", "sign_out", "unlock"),
}
_RENAMED: Final = {
    "memory.trash": "trash.view",
    "memory.lab": "lab.search",
    "memory.dashboard": "dashboard.view",
    **{f"memories.{verb}": f"job.{verb}" for verb in ("delete", "restore", "categorize", "purge", "reread", "move")},
}


def set_kinds(apps: Any, schema_editor: Any) -> None:
    """Rename actions that were named after memories, and set the kind of the events."""
    events = apps.get_model("accounts", "AuditEvent").objects.using(schema_editor.connection.alias)
    for old, new in _RENAMED.items():
        events.filter(action=old).update(action=new)
    for kind, verbs in _VERBS.items():
        events.filter(reduce(or_, (Q(action__endswith=f".{verb}") for verb in verbs))).update(kind=kind)


class Migration(migrations.Migration):
    dependencies = (("accounts", "0002_idempotency_key"),)
    operations = (
        migrations.AddField(
            "auditevent",
            "kind",
            models.CharField(
                choices=[("change", "Changes"), ("read", "Reads"), ("sign_in", "Sign-ins")],
                default="change",
                max_length=8,
                verbose_name="kind",
            ),
        ),
        migrations.RunPython(set_kinds, migrations.RunPython.noop),
        migrations.AddIndex("auditevent", models.Index(fields=["kind", "id"], name="audit_of_kind")),
    )
