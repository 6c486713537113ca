import django.db.models.deletion
import uuid
from django.db import migrations, models


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ('accounts', '0001_initial'),
    ]

    operations = [
        migrations.CreateModel(
            name='Lease',
            fields=[
                ('name', models.CharField(max_length=64, primary_key=True, serialize=False)),
                ('holder', models.CharField(max_length=128)),
                ('expires_at', models.DateTimeField()),
            ],
        ),
        migrations.CreateModel(
            name='Job',
            fields=[
                ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ('kind', models.CharField(max_length=32)),
                ('actor_kind', models.CharField(max_length=16)),
                ('actor', models.CharField(blank=True, max_length=150)),
                ('params', models.JSONField(blank=True, default=dict)),
                ('status', models.CharField(choices=[('queued', 'Queued'), ('running', 'Running'), ('done', 'Done'), ('failed', 'Failed'), ('stopped', 'Stopped')], default='queued', max_length=8)),
                ('done', models.BigIntegerField(default=0)),
                ('total', models.BigIntegerField(default=0)),
                ('cursor', models.JSONField(blank=True, default=dict, editable=False)),
                ('result', models.JSONField(blank=True, default=dict)),
                ('error', models.TextField(blank=True)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('started_at', models.DateTimeField(blank=True, null=True)),
                ('finished_at', models.DateTimeField(blank=True, null=True)),
                ('stop_asked_at', models.DateTimeField(blank=True, null=True)),
                ('undone_at', models.DateTimeField(blank=True, help_text='When somebody began to undo it.', null=True)),
                ('holder', models.CharField(blank=True, editable=False, max_length=128)),
                ('leased_until', models.DateTimeField(blank=True, editable=False, null=True)),
            ],
            options={
                'ordering': ('-created_at',),
                'default_permissions': ('view',),
                'indexes': [models.Index(fields=['created_at'], name='job_by_time'), models.Index(condition=models.Q(('status__in', ['queued', 'running'])), fields=['created_at'], name='job_to_do')],
            },
        ),
        migrations.CreateModel(
            name='UnmatchedDecision',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('session_id', models.CharField(max_length=128)),
                ('memory_id', models.CharField(max_length=256)),
                ('tombstone_id', models.CharField(blank=True, max_length=40)),
                ('override_id', models.CharField(blank=True, max_length=40)),
                ('hides', models.JSONField(default=list, help_text='The memories that are held back.')),
                ('job', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='unmatched', to='operations.job')),
                ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='accounts.memoryuser')),
            ],
            options={
                'ordering': ('-id',),
                'default_permissions': ('view',),
            },
        ),
        migrations.CreateModel(
            name='JobStep',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('number', models.PositiveIntegerField()),
                ('changes', models.JSONField(default=list)),
                ('job', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='steps', to='operations.job')),
            ],
            options={
                'ordering': ('job', 'number'),
                'default_permissions': ('view',),
                'constraints': [models.UniqueConstraint(fields=('job', 'number'), name='step_numbers_of_one_job')],
            },
        ),
    ]
