from django.db import migrations

from store.index import schema, words


def install(apps, schema_editor):
    schema.install_words(schema_editor)
    schema_editor.execute(words.QUEUE_ALL)


def remove(apps, schema_editor):
    schema.remove_words(schema_editor)


class Migration(migrations.Migration):
    dependencies = [("store", "0001_initial")]

    operations = [migrations.RunPython(install, remove)]
