import itertools

from django.db import migrations, transaction

from remote import former_journal

_BATCH = 500
_COLUMNS = (
    "memory_id", "memory_type", "category", "sender_id", "agent_id", "speaker", "text", "batch_id", "seq", "payload",
    "created_at_ms", "origin", "is_covered", "is_replaced", "hidden_at", "chunk_index", "delivery_state", "sent_at",
)  # fmt: skip
_EMPTY = {"chunk_index": None, "delivery_state": "", "sent_at": None}


def convert(apps, schema_editor):
    """Turn journal rows into messages and outbox entries, in batches: a second run continues an interrupted one."""
    alias = schema_editor.connection.alias
    rows = apps.get_model("store", "Memory").objects.using(alias).select_related("session")
    rows = rows.filter(origin="upstream", session__isnull=False, delivery_state__in=former_journal.STATES)
    last = 0
    while batch := list(rows.filter(pk__gt=last).order_by("pk")[:_BATCH]):
        with transaction.atomic(using=alias):
            _convert(apps, alias, batch)
        last = batch[-1].pk


def _convert(apps, alias, batch):
    memories = apps.get_model("store", "Memory").objects.using(alias)
    entries = apps.get_model("remote", "OutboxEntry").objects.using(alias)
    found = [(row, _converted(row)) for row in batch]
    ids = [memory["memory_id"] for _row, converted in found for memory in converted.memories]
    known = memories.filter(memory_id__in=ids, user__in={row.user_id for row in batch})
    taken = set(known.values_list("user_id", "app_id", "project_id", "memory_id"))
    changed, added, removed, renamed = [], [], [], []
    for row, converted in found:
        owner = {name: getattr(row, name) for name in ("user_id", "app_id", "project_id")}
        new = []
        for memory in converted.memories:
            key = (*owner.values(), memory["memory_id"])
            if key not in taken:
                taken.add(key)
                new.append(memory)
        entries.create(**owner, session_id=row.session_id, **converted.entry)
        if not new:
            removed.append(row)
        for number, memory in enumerate(new):
            values = {**memory, **_EMPTY}
            if number:
                added.append(memories.model(**owner, session_id=row.session_id, state=row.state, **values))
                continue
            renamed.append((row, row.memory_id, memory["memory_id"]))
            for name, value in values.items():
                setattr(row, name, value)
            changed.append(row)
    for name in ("Tombstone", "Override"):
        decisions = apps.get_model("memories", name)._base_manager.using(alias)
        for row, former, memory_id in _decided(decisions, renamed):
            owned = decisions.filter(user=row.user_id, app_id=row.app_id, project_id=row.project_id)
            owned.filter(memory_id=former).update(memory_id=memory_id)
        decisions.filter(row__in=removed).update(row=None)
    memories.bulk_update(changed, _COLUMNS, batch_size=100)
    memories.bulk_create(added)
    memories.filter(pk__in=[row.pk for row in removed]).delete()


def _converted(row):
    values = {name: getattr(row, name) for name in (*_COLUMNS, "is_covered") if hasattr(row, name)}
    return former_journal.convert(row.user_id, (row.app_id, row.project_id), row.session.session_id, values)


def _decided(decisions, renamed):
    names = [former for _row, former, _new in renamed]
    known = set(decisions.filter(memory_id__in=names).values_list("memory_id", flat=True))
    return itertools.filterfalse(lambda one: one[1] not in known, renamed)


class Migration(migrations.Migration):
    atomic = False
    dependencies = [
        ("remote", "0001_initial"),
        ("memories", "0006_fill_ledger"),
        ("store", "0012_replaced"),
    ]
    operations = [migrations.RunPython(convert, migrations.RunPython.noop, elidable=True)]
