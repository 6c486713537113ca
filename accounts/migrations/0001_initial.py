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
                ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False, verbose_name='ID')),
                ('user_id', models.CharField(help_text='Chosen by the application.', max_length=64, unique=True, verbose_name='user ID')),
                ('created_at', models.DateTimeField(auto_now_add=True, verbose_name='created at')),
            ],
            options={
                'verbose_name': 'memory user',
                'verbose_name_plural': 'memory users',
                'ordering': ('user_id',),
                'default_permissions': ('add', 'view', 'export', 'erase'),
            },
        ),
        migrations.CreateModel(
            name='AuditEvent',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), verbose_name='time')),
                ('actor_kind', models.CharField(choices=[('key', 'API key'), ('token', 'Token'), ('operator', 'Operator'), ('command', 'Command'), ('provisioning', 'Provisioning'), ('system', 'System')], max_length=16, verbose_name='actor type')),
                ('actor', models.CharField(blank=True, help_text='API key or token ID, operator name or command.', max_length=150, verbose_name='actor')),
                ('action', models.CharField(max_length=64, verbose_name='action')),
                ('user_id', models.CharField(blank=True, max_length=64, verbose_name='user ID')),
                ('subject_type', models.CharField(max_length=32, verbose_name='subject type')),
                ('subject_id', models.CharField(max_length=256, verbose_name='subject ID')),
                ('request_id', models.CharField(blank=True, max_length=64, verbose_name='request ID')),
                ('detail', models.JSONField(blank=True, default=dict, verbose_name='detail')),
            ],
            options={
                'verbose_name': 'audit event',
                'verbose_name_plural': 'audit events',
                'ordering': ('-at', '-id'),
                'default_permissions': ('view',),
                'indexes': [models.Index(fields=['user_id', 'at'], name='audit_of_user'), models.Index(fields=['at'], name='audit_by_time')],
            },
        ),
        migrations.CreateModel(
            name='SignInThrottle',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('network', models.CharField(max_length=64, verbose_name='network')),
                ('name_digest', models.CharField(blank=True, max_length=64, verbose_name='name digest')),
                ('failures', models.IntegerField(default=0, verbose_name='failures')),
                ('counted_since', models.DateTimeField(verbose_name='counted since')),
                ('locked_until', models.DateTimeField(blank=True, null=True, verbose_name='locked until')),
            ],
            options={
                'verbose_name': 'sign-in throttle',
                'verbose_name_plural': 'sign-in throttles',
                'ordering': ('-counted_since',),
                'default_permissions': ('view', 'delete'),
                'indexes': [models.Index(fields=['counted_since'], name='throttle_by_time')],
                'constraints': [models.UniqueConstraint(fields=('network', 'name_digest'), name='throttle_of_one_name')],
            },
        ),
        migrations.CreateModel(
            name='RpcToken',
            fields=[
                ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False, verbose_name='ID')),
                ('label', models.CharField(blank=True, max_length=100, verbose_name='label')),
                ('scopes', models.CharField(help_text='Granted permissions, separated by spaces.', max_length=100, verbose_name='scopes')),
                ('prefix', models.CharField(editable=False, help_text='First characters, to tell tokens apart.', max_length=12, verbose_name='prefix')),
                ('digest', models.CharField(editable=False, max_length=64, unique=True, verbose_name='digest')),
                ('created_at', models.DateTimeField(auto_now_add=True, verbose_name='created at')),
                ('expires_at', models.DateTimeField(blank=True, null=True, verbose_name='expires at')),
                ('revoked_at', models.DateTimeField(blank=True, editable=False, null=True, verbose_name='revoked at')),
                ('last_used_at', models.DateTimeField(blank=True, editable=False, null=True, verbose_name='last used at')),
                ('operator', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL, verbose_name='operator')),
                ('user', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='rpc_tokens', to='accounts.memoryuser', verbose_name='user')),
            ],
            options={
                'verbose_name': 'RPC token',
                'verbose_name_plural': 'RPC tokens',
                'ordering': ('-created_at',),
                'default_permissions': ('add', 'view', 'revoke'),
                'constraints': [models.CheckConstraint(condition=models.Q(models.Q(('operator__isnull', True), ('user__isnull', False)), models.Q(('operator__isnull', False), ('user__isnull', True)), _connector='OR'), name='token_of_one_holder')],
            },
        ),
        migrations.CreateModel(
            name='UserKey',
            fields=[
                ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False, verbose_name='ID')),
                ('label', models.CharField(blank=True, max_length=100, verbose_name='label')),
                ('prefix', models.CharField(editable=False, help_text='First characters, to tell keys apart.', max_length=12, verbose_name='prefix')),
                ('digest', models.CharField(editable=False, max_length=64, unique=True, verbose_name='digest')),
                ('ciphertext', models.TextField(editable=False, verbose_name='ciphertext')),
                ('created_at', models.DateTimeField(auto_now_add=True, verbose_name='created at')),
                ('expires_at', models.DateTimeField(blank=True, null=True, verbose_name='expires at')),
                ('revoked_at', models.DateTimeField(blank=True, editable=False, null=True, verbose_name='revoked at')),
                ('last_used_at', models.DateTimeField(blank=True, editable=False, null=True, verbose_name='last used at')),
                ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='keys', to='accounts.memoryuser', verbose_name='user')),
            ],
            options={
                'verbose_name': 'API key',
                'verbose_name_plural': 'API keys',
                'ordering': ('-created_at',),
                'default_permissions': ('add', 'view', 'rotate', 'revoke'),
                'indexes': [models.Index(fields=['user', 'created_at'], name='key_of_user')],
            },
        ),
    ]
