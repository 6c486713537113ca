"""Store with each user's index statistics which tokenizer wrote the entries, instead of once for all."""

from django.db import migrations, models

from core.persistence.migration_operations import AddColumn, require_stopped


def name_tokenizers(apps, schema_editor):
    known = apps.get_model("store", "IndexVersion").objects.order_by("pk").first()
    if known is not None:
        apps.get_model("store", "IndexStatistics").objects.update(tokenizer=known.tokenizer)


def name_tokenizer(apps, schema_editor):
    tokenizers = set(apps.get_model("store", "IndexStatistics").objects.values_list("tokenizer", flat=True))
    if tokenizers:
        # No version has an empty name, so several ask for a rebuild.
        known = tokenizers.pop() if len(tokenizers) == 1 else ""
        apps.get_model("store", "IndexVersion").objects.create(tokenizer=known)


class Migration(migrations.Migration):
    dependencies = [("store", "0021_statistics_of_agents"), ("operations", "0002_roles")]

    operations = [
        migrations.RunPython(require_stopped, migrations.RunPython.noop, elidable=True),
        AddColumn(
            model_name="indexstatistics",
            name="tokenizer",
            field=models.CharField(
                db_default="",
                default="",
                help_text="The version that wrote all entries; empty if several did, with … while they are rewritten.",
                max_length=32,
                verbose_name="tokenizer",
            ),
        ),
        migrations.RunPython(name_tokenizers, name_tokenizer),
        migrations.DeleteModel("IndexVersion"),
    ]
