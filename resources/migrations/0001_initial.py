import core.ids
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
            name='Resource',
            fields=[
                ('resource_id', models.CharField(default=core.ids.new_resource_id, editable=False, max_length=40, primary_key=True, serialize=False)),
                ('app_id', models.CharField(default='default', max_length=64)),
                ('project_id', models.CharField(default='default', max_length=64)),
                ('session_id', models.CharField(max_length=128)),
                ('origin', models.CharField(choices=[('upload', 'Upload'), ('external', 'External')], default='upload', max_length=8)),
                ('filename', models.CharField(max_length=255)),
                ('title', models.CharField(blank=True, max_length=500, null=True)),
                ('description', models.TextField(blank=True, null=True)),
                ('content_type', models.CharField(max_length=8)),
                ('mime_type', models.CharField(blank=True, max_length=127, null=True)),
                ('size_bytes', models.BigIntegerField(blank=True, null=True)),
                ('sha256', models.CharField(blank=True, max_length=64)),
                ('storage_path', models.CharField(blank=True, help_text='Below the storage folder; uploads only.', max_length=255)),
                ('source_uri', models.CharField(blank=True, help_text='Where a registered file lies.', max_length=2048)),
                ('status', models.CharField(choices=[('pending', 'Pending'), ('ingesting', 'Ingesting'), ('extracted', 'Extracted'), ('empty', 'Empty'), ('failed', 'Failed'), ('deleted', 'Deleted')], default='pending', max_length=10)),
                ('error_message', models.TextField(blank=True)),
                ('attempts', models.IntegerField(default=0)),
                ('retry_at', models.DateTimeField(blank=True, null=True)),
                ('first_failed_at', models.DateTimeField(blank=True, help_text='Retried for seven days from here.', null=True)),
                ('lease_holder', models.CharField(blank=True, max_length=128)),
                ('leased_until', models.DateTimeField(blank=True, null=True)),
                ('flush_sent_at', models.DateTimeField(blank=True, help_text='After this, never sent again.', null=True)),
                ('searchable_at', models.DateTimeField(blank=True, null=True)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('updated_at', models.DateTimeField(auto_now=True)),
                ('deleted_at', models.DateTimeField(blank=True, null=True)),
                ('cleanup_owed', models.BooleanField(default=False, help_text='Deleted, but its file or what the engine keeps of it is not gone yet.')),
                ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='resources', to='accounts.memoryuser')),
            ],
            options={
                'ordering': ('-created_at', '-resource_id'),
            },
        ),
        migrations.CreateModel(
            name='Attachment',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('app_id', models.CharField(default='default', max_length=64)),
                ('project_id', models.CharField(default='default', max_length=64)),
                ('session_id', models.CharField(max_length=128)),
                ('source', models.CharField(choices=[('upload', 'Upload'), ('external_resource', 'External Resource'), ('memory_add', 'Memory Add')], max_length=20)),
                ('type', models.CharField(max_length=8)),
                ('name', models.CharField(max_length=255)),
                ('internal_uri', models.CharField(max_length=2048)),
                ('sha256', models.CharField(blank=True, max_length=64)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('user', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='attachments', to='accounts.memoryuser')),
                ('resource', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='attachments', to='resources.resource')),
            ],
            options={
                'ordering': ('-id',),
            },
        ),
        migrations.CreateModel(
            name='StorageIdentity',
            fields=[
                ('id', models.PositiveSmallIntegerField(default=1, editable=False, primary_key=True, serialize=False)),
                ('uuid', models.UUIDField(default=uuid.uuid4, editable=False)),
                ('bound_at', models.DateTimeField(auto_now=True)),
            ],
            options={
                'verbose_name_plural': 'storage identities',
                'default_permissions': ('view',),
                'constraints': [models.CheckConstraint(condition=models.Q(('id', 1)), name='one_storage_identity')],
            },
        ),
        migrations.AddIndex(
            model_name='resource',
            index=models.Index(fields=['user', 'created_at', 'resource_id'], name='resource_of_user'),
        ),
        migrations.AddIndex(
            model_name='resource',
            index=models.Index(fields=['user', 'app_id', 'project_id', 'status'], name='resource_in_scope'),
        ),
        migrations.AddIndex(
            model_name='resource',
            index=models.Index(condition=models.Q(('status__in', ['pending', 'ingesting', 'failed'])), fields=['status', 'retry_at'], name='resource_owed'),
        ),
        migrations.AddIndex(
            model_name='resource',
            index=models.Index(condition=models.Q(('cleanup_owed', True)), fields=['deleted_at'], name='resource_cleanup_owed'),
        ),
        migrations.AddIndex(
            model_name='resource',
            index=models.Index(fields=['created_at', 'resource_id'], name='resource_by_time'),
        ),
        migrations.AddIndex(
            model_name='resource',
            index=models.Index(condition=models.Q(('deleted_at__isnull', True), ('retry_at__isnull', True), ('status', 'failed')), fields=['updated_at'], name='resource_waiting'),
        ),
        migrations.AddConstraint(
            model_name='resource',
            constraint=models.UniqueConstraint(condition=models.Q(('deleted_at__isnull', True), models.Q(('sha256', ''), _negated=True)), fields=('user', 'app_id', 'project_id', 'origin', 'sha256'), name='one_live_resource_per_content'),
        ),
        migrations.AddConstraint(
            model_name='attachment',
            constraint=models.UniqueConstraint(fields=('user', 'app_id', 'project_id', 'session_id', 'name', 'internal_uri'), name='attachment_once'),
        ),
    ]
