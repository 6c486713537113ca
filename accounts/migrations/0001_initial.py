import django.db.models.deletion
import django.db.models.functions.datetime
import uuid
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='MemoryUser',
            fields=[
                ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ('user_id', models.CharField(help_text='The id that the application gave.', max_length=64, unique=True)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
            ],
            options={
                'verbose_name': 'memory user',
                'ordering': ('user_id',),
                'default_permissions': ('add', 'view', 'export', 'erase'),
            },
        ),
        migrations.CreateModel(
            name='AuditEvent',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('actor_kind', models.CharField(choices=[('key', 'Key'), ('token', 'Token'), ('operator', 'Operator'), ('command', 'Command'), ('provisioning', 'Provisioning'), ('system', 'System')], max_length=16)),
                ('actor', models.CharField(blank=True, help_text='Key or token id, operator name or command.', max_length=150)),
                ('action', models.CharField(max_length=64)),
                ('user_id', models.CharField(blank=True, max_length=64)),
                ('subject_type', models.CharField(max_length=32)),
                ('subject_id', models.CharField(max_length=256)),
                ('request_id', models.CharField(blank=True, max_length=64)),
                ('detail', models.JSONField(blank=True, default=dict)),
            ],
            options={
                'verbose_name': 'audit event',
                'ordering': ('-at', '-id'),
                'default_permissions': ('view',),
                'indexes': [models.Index(fields=['user_id', 'at'], name='audit_of_user'), models.Index(fields=['at'], name='audit_by_time')],
            },
        ),
        migrations.CreateModel(
            name='SignInThrottle',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('network', models.CharField(max_length=64)),
                ('name_digest', models.CharField(blank=True, max_length=64)),
                ('failures', models.IntegerField(default=0)),
                ('counted_since', models.DateTimeField()),
                ('locked_until', models.DateTimeField(blank=True, null=True)),
            ],
            options={
                'verbose_name': 'sign-in throttle',
                'ordering': ('-counted_since',),
                'default_permissions': ('view', 'delete'),
                'indexes': [models.Index(fields=['counted_since'], name='throttle_by_time')],
                'constraints': [models.UniqueConstraint(fields=('network', 'name_digest'), name='throttle_of_one_name')],
            },
        ),
        migrations.CreateModel(
            name='RpcToken',
            fields=[
                ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ('label', models.CharField(blank=True, max_length=100)),
                ('scopes', models.CharField(help_text='What it may do, separated by spaces.', max_length=100)),
                ('prefix', models.CharField(editable=False, help_text='The first characters, to tell tokens apart.', max_length=12)),
                ('digest', models.CharField(editable=False, max_length=64, unique=True)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('expires_at', models.DateTimeField(blank=True, null=True)),
                ('revoked_at', models.DateTimeField(blank=True, editable=False, null=True)),
                ('last_used_at', models.DateTimeField(blank=True, editable=False, null=True)),
                ('operator', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('user', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='rpc_tokens', to='accounts.memoryuser')),
            ],
            options={
                'verbose_name': 'RPC token',
                'ordering': ('-created_at',),
                'default_permissions': ('add', 'view', 'revoke'),
                'constraints': [models.CheckConstraint(condition=models.Q(models.Q(('operator__isnull', True), ('user__isnull', False)), models.Q(('operator__isnull', False), ('user__isnull', True)), _connector='OR'), name='token_of_one_holder')],
            },
        ),
        migrations.CreateModel(
            name='UserKey',
            fields=[
                ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ('label', models.CharField(blank=True, max_length=100)),
                ('prefix', models.CharField(editable=False, help_text='The first characters, to tell keys apart.', max_length=12)),
                ('digest', models.CharField(editable=False, max_length=64, unique=True)),
                ('ciphertext', models.TextField(editable=False)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('expires_at', models.DateTimeField(blank=True, null=True)),
                ('revoked_at', models.DateTimeField(blank=True, editable=False, null=True)),
                ('last_used_at', models.DateTimeField(blank=True, editable=False, null=True)),
                ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='keys', to='accounts.memoryuser')),
            ],
            options={
                'verbose_name': 'user key',
                'ordering': ('-created_at',),
                'default_permissions': ('add', 'view', 'rotate', 'revoke'),
                'indexes': [models.Index(fields=['user', 'created_at'], name='key_of_user')],
            },
        ),
    ]
