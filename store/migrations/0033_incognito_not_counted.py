"""Count no memories of incognito sessions, which lists leave out too."""

from functools import partial

from django.db import migrations, transaction

from store import rollups


def write(apps, schema_editor, *, knows_incognito):
    with transaction.atomic():  # a writer between the two statements of SQLite would find no view
        rollups.write_counted_view(schema_editor, knows_incognito=knows_incognito)
    sessions = apps.get_model("store", "Session").objects.filter(incognito_until__isnull=False)
    counted = sessions.exclude(state="purged").order_by("user").values_list("user", flat=True).distinct()
    if user_pks := list(counted):
        list(rollups.mend(user_pks))


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("store", "0032_expiry_of_all_users")]

    operations = [
        migrations.RunPython(partial(write, knows_incognito=True), partial(write, knows_incognito=False)),
    ]
