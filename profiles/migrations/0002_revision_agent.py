from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('profiles', '0001_initial'),
    ]

    operations = [
        migrations.AddField(
            model_name='profilerevision',
            name='agent_id',
            field=models.CharField(blank=True, default='', max_length=64, verbose_name='agent ID'),
        ),
    ]
