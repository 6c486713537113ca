import django.db.models.deletion
import memories.models
from django.db import migrations, models


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ('accounts', '0001_initial'),
        ('store', '0001_initial'),
    ]

    operations = [
        migrations.CreateModel(
            name='Override',
            fields=[
                ('app_id', models.CharField(max_length=64, verbose_name='app ID')),
                ('project_id', models.CharField(max_length=64, verbose_name='project ID')),
                ('session_id', models.CharField(blank=True, max_length=128, verbose_name='session ID')),
                ('actor_kind', models.CharField(max_length=16, verbose_name='actor type')),
                ('actor', models.CharField(blank=True, max_length=150, verbose_name='actor')),
                ('created_at', models.DateTimeField(auto_now_add=True, verbose_name='created at')),
                ('undone_at', models.DateTimeField(blank=True, null=True, verbose_name='undone at')),
                ('override_id', models.CharField(default=memories.models.new_override_id, editable=False, max_length=40, primary_key=True, serialize=False, verbose_name='override ID')),
                ('memory_id', models.CharField(max_length=256, verbose_name='memory ID')),
                ('text', models.TextField(verbose_name='text')),
                ('original_text', models.TextField(verbose_name='original text')),
                ('updated_at', models.DateTimeField(auto_now=True, verbose_name='updated at')),
                ('row', models.ForeignKey(blank=True, editable=False, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='store.memory', verbose_name='row')),
                ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='accounts.memoryuser', verbose_name='user')),
            ],
            options={
                'verbose_name': 'override',
                'verbose_name_plural': 'overrides',
                'ordering': ('-created_at', '-override_id'),
            },
        ),
        migrations.CreateModel(
            name='OverrideRevision',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('number', models.PositiveIntegerField(verbose_name='number')),
                ('text', models.TextField(verbose_name='text')),
                ('category', models.CharField(blank=True, max_length=40, verbose_name='category')),
                ('importance', models.FloatField(blank=True, null=True, verbose_name='importance')),
                ('actor_kind', models.CharField(blank=True, max_length=16, verbose_name='actor type')),
                ('actor', models.CharField(blank=True, max_length=150, verbose_name='actor')),
                ('created_at', models.DateTimeField(auto_now_add=True, verbose_name='created at')),
                ('override', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='revisions', to='memories.override', verbose_name='override')),
            ],
            options={
                'verbose_name': 'override revision',
                'verbose_name_plural': 'override revisions',
                'ordering': ('override', 'number'),
            },
        ),
        migrations.CreateModel(
            name='Tombstone',
            fields=[
                ('app_id', models.CharField(max_length=64, verbose_name='app ID')),
                ('project_id', models.CharField(max_length=64, verbose_name='project ID')),
                ('session_id', models.CharField(blank=True, max_length=128, verbose_name='session ID')),
                ('actor_kind', models.CharField(max_length=16, verbose_name='actor type')),
                ('actor', models.CharField(blank=True, max_length=150, verbose_name='actor')),
                ('created_at', models.DateTimeField(auto_now_add=True, verbose_name='created at')),
                ('undone_at', models.DateTimeField(blank=True, null=True, verbose_name='undone at')),
                ('tombstone_id', models.CharField(default=memories.models.new_tombstone_id, editable=False, max_length=40, primary_key=True, serialize=False, verbose_name='tombstone ID')),
                ('memory_id', models.CharField(blank=True, max_length=256, verbose_name='memory ID')),
                ('reason', models.TextField(blank=True, verbose_name='reason')),
                ('row', models.ForeignKey(blank=True, editable=False, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='store.memory', verbose_name='row')),
                ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='accounts.memoryuser', verbose_name='user')),
            ],
            options={
                'verbose_name': 'tombstone',
                'verbose_name_plural': 'tombstones',
                'ordering': ('-created_at', '-tombstone_id'),
            },
        ),
        migrations.AddIndex(
            model_name='override',
            index=models.Index(fields=['user', 'app_id', 'project_id', 'memory_id'], name='override_history'),
        ),
        migrations.AddConstraint(
            model_name='override',
            constraint=models.UniqueConstraint(condition=models.Q(('undone_at__isnull', True)), fields=('user', 'app_id', 'project_id', 'memory_id'), name='one_override_per_memory'),
        ),
        migrations.AddConstraint(
            model_name='overriderevision',
            constraint=models.UniqueConstraint(fields=('override', 'number'), name='revision_numbers_of_one_override'),
        ),
        migrations.AddIndex(
            model_name='tombstone',
            index=models.Index(fields=['user', 'app_id', 'project_id', 'created_at', 'tombstone_id'], name='trash_of_user'),
        ),
        migrations.AddIndex(
            model_name='tombstone',
            index=models.Index(fields=['user', 'app_id', 'project_id', 'memory_id'], name='tombstone_history'),
        ),
        migrations.AddIndex(
            model_name='tombstone',
            index=models.Index(condition=models.Q(('undone_at__isnull', True), ('memory_id', '')), fields=['created_at', 'tombstone_id'], name='deleted_sessions'),
        ),
        migrations.AddConstraint(
            model_name='tombstone',
            constraint=models.UniqueConstraint(condition=models.Q(('undone_at__isnull', True), models.Q(('memory_id', ''), _negated=True)), fields=('user', 'app_id', 'project_id', 'memory_id'), name='one_tombstone_per_memory'),
        ),
        migrations.AddConstraint(
            model_name='tombstone',
            constraint=models.UniqueConstraint(condition=models.Q(('undone_at__isnull', True), ('memory_id', '')), fields=('user', 'app_id', 'project_id', 'session_id'), name='one_tombstone_per_session'),
        ),
    ]
