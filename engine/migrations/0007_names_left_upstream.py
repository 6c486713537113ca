from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("engine", "0006_browse_and_rollups")]
    operations = [
        migrations.CreateModel(
            name="LeftUpstream",
            fields=[
                ("digest", models.CharField(max_length=64, primary_key=True, serialize=False)),
                ("noted_at", models.DateTimeField(auto_now_add=True)),
            ],
            options={
                "verbose_name": "name left upstream",
                "verbose_name_plural": "names left upstream",
                "default_permissions": ("view",),
            },
        ),
    ]
