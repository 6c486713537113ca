import django.db.models.deletion
from django.db import migrations, models

_IS_INDEXED = models.Q(is_indexed=True)
_SET_APART = models.Q(hidden_at__isnull=False) | models.Q(memory_type="unprocessed_message")


class Migration(migrations.Migration):
    dependencies = [("accounts", "0002_rpc_tokens"), ("engine", "0007_names_left_upstream")]
    operations = [
        migrations.CreateModel(
            name="OwedExtraction",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("app_id", models.CharField(max_length=64)),
                ("project_id", models.CharField(max_length=64)),
                ("batch_id", models.CharField(blank=True, max_length=64)),
                ("after_seq", models.IntegerField(default=-1)),
                ("until_seq", models.IntegerField(null=True)),
                ("attempts", models.IntegerField(default=0)),
                ("refusals", models.IntegerField(default=0)),
                ("retry_at", models.DateTimeField(null=True)),
                ("last_error", models.CharField(blank=True, max_length=300)),
                ("given_up_at", models.DateTimeField(null=True)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                (
                    "session",
                    models.ForeignKey(
                        null=True, on_delete=django.db.models.deletion.CASCADE, related_name="+", to="engine.session"
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="+", to="accounts.memoryuser"
                    ),
                ),
            ],
            options={
                "ordering": ("id",),
                "indexes": [
                    models.Index(
                        fields=["id"], condition=models.Q(given_up_at__isnull=True), name="extraction_owed"
                    )
                ],
                "constraints": [
                    models.UniqueConstraint(
                        fields=["user", "app_id", "project_id"],
                        condition=models.Q(session__isnull=True),
                        name="one_owed_profile_of_one_user",
                    )
                ],
            },
        ),
        migrations.AlterField(
            model_name="memory",
            name="origin",
            field=models.CharField(
                choices=[
                    ("embedded", "Embedded"),
                    ("upstream", "Upstream"),
                    ("panel", "Panel"),
                    ("tool", "Tool"),
                    ("extracted", "Extracted"),
                ],
                default="embedded",
                max_length=10,
            ),
        ),
        migrations.RemoveIndex(model_name="memory", name="memory_set_apart"),
        migrations.AddIndex(
            model_name="memory",
            index=models.Index(
                fields=["user", "app_id", "project_id"],
                condition=_IS_INDEXED & (_SET_APART | models.Q(memory_type="profile")),
                name="memory_set_apart",
            ),
        ),
    ]
