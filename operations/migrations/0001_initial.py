import core.localization
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
                ('name', models.CharField(max_length=64, primary_key=True, serialize=False, verbose_name='name')),
                ('lease_holder', models.CharField(blank=True, max_length=128, verbose_name='lease holder')),
                ('leased_until', models.DateTimeField(blank=True, null=True, verbose_name='leased until')),
            ],
            options={
                'verbose_name': 'lease',
                'verbose_name_plural': 'leases',
            },
        ),
        migrations.CreateModel(
            name='Job',
            fields=[
                ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False, verbose_name='ID')),
                ('kind', models.CharField(max_length=32, verbose_name='kind')),
                ('actor_kind', models.CharField(max_length=16, verbose_name='actor type')),
                ('actor', models.CharField(blank=True, max_length=150, verbose_name='actor')),
                ('params', models.JSONField(blank=True, default=dict, verbose_name='params')),
                ('status', models.CharField(choices=[('queued', 'Queued'), ('running', 'Running'), ('done', 'Done'), ('failed', 'Failed'), ('stopped', 'Stopped')], default='queued', max_length=8, verbose_name='status')),
                ('done', models.BigIntegerField(default=0, verbose_name='done')),
                ('total', models.BigIntegerField(default=0, verbose_name='total')),
                ('cursor', models.JSONField(blank=True, default=dict, editable=False, verbose_name='cursor')),
                ('result', models.JSONField(blank=True, default=dict, verbose_name='result')),
                ('error', core.localization.MessageField(blank=True, verbose_name='error')),
                ('created_at', models.DateTimeField(auto_now_add=True, verbose_name='created at')),
                ('started_at', models.DateTimeField(blank=True, null=True, verbose_name='started at')),
                ('finished_at', models.DateTimeField(blank=True, null=True, verbose_name='finished at')),
                ('stop_asked_at', models.DateTimeField(blank=True, null=True, verbose_name='stop requested at')),
                ('undone_at', models.DateTimeField(blank=True, help_text='When the undo started.', null=True, verbose_name='undone at')),
                ('lease_holder', models.CharField(blank=True, max_length=128, verbose_name='lease holder')),
                ('leased_until', models.DateTimeField(blank=True, null=True, verbose_name='leased until')),
            ],
            options={
                'verbose_name': 'job',
                'verbose_name_plural': 'jobs',
                'ordering': ('-created_at',),
                'default_permissions': ('view',),
                'indexes': [models.Index(fields=['created_at'], name='job_by_time'), models.Index(condition=models.Q(('status__in', ['queued', 'running'])), fields=['created_at'], name='job_to_do')],
            },
        ),
        migrations.CreateModel(
            name='UnmatchedDecision',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('session_id', models.CharField(max_length=128, verbose_name='session ID')),
                ('memory_id', models.CharField(max_length=256, verbose_name='memory ID')),
                ('tombstone_id', models.CharField(blank=True, max_length=40, verbose_name='tombstone ID')),
                ('override_id', models.CharField(blank=True, max_length=40, verbose_name='override ID')),
                ('hides', models.JSONField(default=list, help_text='Similar new memories, hidden until a person decides.', verbose_name='hidden memories')),
                ('job', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='unmatched', to='operations.job', verbose_name='job')),
                ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='accounts.memoryuser', verbose_name='user')),
            ],
            options={
                'verbose_name': 'unmatched decision',
                'verbose_name_plural': 'unmatched decisions',
                'ordering': ('-id',),
                'default_permissions': ('view',),
            },
        ),
        migrations.CreateModel(
            name='JobStep',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('number', models.PositiveIntegerField(verbose_name='number')),
                ('changes', models.JSONField(default=list, verbose_name='changes')),
                ('job', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='steps', to='operations.job', verbose_name='job')),
            ],
            options={
                'verbose_name': 'job step',
                'verbose_name_plural': 'job steps',
                'ordering': ('job', 'number'),
                'default_permissions': ('view',),
                'constraints': [models.UniqueConstraint(fields=('job', 'number'), name='step_numbers_of_one_job')],
            },
        ),
    ]
