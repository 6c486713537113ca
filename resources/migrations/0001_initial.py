import core.ids
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
            name='Resource',
            fields=[
                ('resource_id', models.CharField(default=core.ids.new_resource_id, editable=False, max_length=40, primary_key=True, serialize=False, verbose_name='resource ID')),
                ('app_id', models.CharField(default='default', max_length=64, verbose_name='app ID')),
                ('project_id', models.CharField(default='default', max_length=64, verbose_name='project ID')),
                ('session_id', models.CharField(max_length=128, verbose_name='session ID')),
                ('origin', models.CharField(choices=[('upload', 'Upload'), ('external', 'External')], default='upload', max_length=8, verbose_name='origin')),
                ('filename', models.CharField(max_length=255, verbose_name='filename')),
                ('title', models.CharField(blank=True, max_length=500, null=True, verbose_name='title')),
                ('description', models.TextField(blank=True, null=True, verbose_name='description')),
                ('content_type', models.CharField(max_length=8, verbose_name='content type')),
                ('mime_type', models.CharField(blank=True, max_length=127, null=True, verbose_name='MIME type')),
                ('size_bytes', models.BigIntegerField(blank=True, null=True, verbose_name='size (bytes)')),
                ('sha256', models.CharField(blank=True, max_length=64, verbose_name='SHA-256')),
                ('storage_path', models.CharField(blank=True, help_text='Relative to the storage folder; uploads only.', max_length=255, verbose_name='storage path')),
                ('source_uri', models.CharField(blank=True, help_text='Address of a registered file.', max_length=2048, verbose_name='source URI')),
                ('status', models.CharField(choices=[('pending', 'Pending'), ('ingesting', 'Ingesting'), ('extracted', 'Extracted'), ('empty', 'Empty'), ('failed', 'Failed'), ('deleted', 'Deleted')], default='pending', max_length=10, verbose_name='status')),
                ('error_message', core.localization.MessageField(blank=True, verbose_name='error message')),
                ('attempts', models.IntegerField(default=0, verbose_name='attempts')),
                ('retry_at', models.DateTimeField(blank=True, null=True, verbose_name='retry at')),
                ('first_failed_at', models.DateTimeField(blank=True, help_text='Retries end seven days after this time.', null=True, verbose_name='first failed at')),
                ('lease_holder', models.CharField(blank=True, max_length=128, verbose_name='lease holder')),
                ('leased_until', models.DateTimeField(blank=True, null=True, verbose_name='leased until')),
                ('flush_sent_at', models.DateTimeField(blank=True, help_text='After this time, it is never sent again.', null=True, verbose_name='flush sent at')),
                ('searchable_at', models.DateTimeField(blank=True, null=True, verbose_name='searchable at')),
                ('created_at', models.DateTimeField(auto_now_add=True, verbose_name='created at')),
                ('updated_at', models.DateTimeField(auto_now=True, verbose_name='updated at')),
                ('deleted_at', models.DateTimeField(blank=True, null=True, verbose_name='deleted at')),
                ('cleanup_pending', models.BooleanField(default=False, help_text='Deleted, but its file or engine data is not removed yet.', verbose_name='cleanup pending')),
                ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='resources', to='accounts.memoryuser', verbose_name='user')),
            ],
            options={
                'verbose_name': 'resource',
                'verbose_name_plural': 'resources',
                'ordering': ('-created_at', '-resource_id'),
            },
        ),
        migrations.CreateModel(
            name='Attachment',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('app_id', models.CharField(default='default', max_length=64, verbose_name='app ID')),
                ('project_id', models.CharField(default='default', max_length=64, verbose_name='project ID')),
                ('session_id', models.CharField(max_length=128, verbose_name='session ID')),
                ('source', models.CharField(choices=[('upload', 'Upload'), ('external_resource', 'External resource'), ('memory_add', 'Added with a message')], max_length=20, verbose_name='source')),
                ('type', models.CharField(max_length=8, verbose_name='type')),
                ('name', models.CharField(max_length=255, verbose_name='name')),
                ('internal_uri', models.CharField(max_length=2048, verbose_name='internal URI')),
                ('sha256', models.CharField(blank=True, max_length=64, verbose_name='SHA-256')),
                ('created_at', models.DateTimeField(auto_now_add=True, verbose_name='created at')),
                ('user', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='attachments', to='accounts.memoryuser', verbose_name='user')),
                ('resource', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='attachments', to='resources.resource', verbose_name='resource')),
            ],
            options={
                'verbose_name': 'attachment',
                'verbose_name_plural': 'attachments',
                'ordering': ('-id',),
            },
        ),
        migrations.CreateModel(
            name='StorageIdentity',
            fields=[
                ('id', models.PositiveSmallIntegerField(default=1, editable=False, primary_key=True, serialize=False, verbose_name='ID')),
                ('uuid', models.UUIDField(default=uuid.uuid4, editable=False, verbose_name='UUID')),
                ('bound_at', models.DateTimeField(auto_now=True, verbose_name='bound at')),
            ],
            options={
                'verbose_name': 'storage identity',
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
            index=models.Index(condition=models.Q(('status__in', ['pending', 'ingesting', 'failed'])), fields=['status', 'retry_at'], name='resource_unfinished'),
        ),
        migrations.AddIndex(
            model_name='resource',
            index=models.Index(condition=models.Q(('cleanup_pending', True)), fields=['deleted_at'], name='resource_cleanup_pending'),
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
