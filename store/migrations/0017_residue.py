"""Call what a remote still holds by its name."""

from django.db import migrations, models

from core.persistence.migration_operations import require_stopped


class Migration(migrations.Migration):

    dependencies = [
        ("store", "0016_triggers_by_state"),
        ("operations", "0002_roles"),
    ]

    operations = [
        migrations.RunPython(require_stopped, migrations.RunPython.noop, elidable=True),
        migrations.RenameModel("LeftUpstream", "Residue"),
        migrations.AlterModelOptions(
            "Residue",
            {
                "default_permissions": ("view",),
                "verbose_name": "residue of a remote",
                "verbose_name_plural": "residue of remotes",
            },
        ),
        migrations.AlterField(
            "memory",
            "origin",
            models.CharField(
                choices=[
                    ("embedded", "Embedded"),
                    ("upstream", "Remote"),
                    ("panel", "Panel"),
                    ("tool", "Tool"),
                    ("extracted", "Extracted"),
                ],
                default="embedded",
                max_length=10,
                verbose_name="origin",
            ),
        ),
    ]
