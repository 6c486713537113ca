"""Keep the vectors of the tokens of memories, and of each embedding space the reduction that they are stored with."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("store", "0023_memories_without_cascade")]

    operations = [
        migrations.AddField(
            model_name="embeddingspace",
            name="reduction",
            field=models.BinaryField(null=True, verbose_name="reduction"),
        ),
        migrations.CreateModel(
            name="TokenVectors",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("layout", models.BigIntegerField(verbose_name="layout")),
                ("vectors", models.BinaryField(verbose_name="vectors")),
                (
                    "memory",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="store.memory",
                        verbose_name="memory",
                    ),
                ),
                (
                    "space",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="store.embeddingspace",
                        verbose_name="space",
                    ),
                ),
            ],
            options={
                "verbose_name": "token vectors",
                "verbose_name_plural": "token vectors",
                "constraints": [
                    models.UniqueConstraint(fields=("memory", "space"), name="token_vectors_of_one_memory")
                ],
            },
        ),
    ]
