import core.localization
import django.db.models.deletion
from django.db import migrations, models

from store import rollups
from store.index import schema


def install(apps, schema_editor):
    schema.install(schema_editor)
    rollups.install(schema_editor)


def remove(apps, schema_editor):
    rollups.remove(schema_editor)
    schema.remove(schema_editor)


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ('accounts', '0001_initial'),
    ]

    operations = [
        migrations.CreateModel(
            name='IndexVersion',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('tokenizer', models.CharField(max_length=32, verbose_name='tokenizer')),
                ('built_at', models.DateTimeField(auto_now=True, verbose_name='built at')),
            ],
            options={
                'verbose_name': 'index version',
                'verbose_name_plural': 'index versions',
            },
        ),
        migrations.CreateModel(
            name='LeftUpstream',
            fields=[
                ('digest', models.CharField(max_length=64, primary_key=True, serialize=False, verbose_name='digest')),
                ('noted_at', models.DateTimeField(auto_now_add=True, verbose_name='noted at')),
            ],
            options={
                'verbose_name': 'retained engine name',
                'verbose_name_plural': 'retained engine names',
                'default_permissions': ('view',),
            },
        ),
        migrations.CreateModel(
            name='Memory',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('app_id', models.CharField(default='default', max_length=64, verbose_name='app ID')),
                ('project_id', models.CharField(default='default', max_length=64, verbose_name='project ID')),
                ('memory_id', models.CharField(max_length=256, verbose_name='memory ID')),
                ('agent_id', models.CharField(blank=True, max_length=64, verbose_name='agent ID')),
                ('memory_type', models.CharField(choices=[('episode', 'Episode'), ('profile', 'Profile'), ('agent_case', 'Agent case'), ('agent_skill', 'Agent skill'), ('unprocessed_message', 'Unprocessed message')], max_length=20, verbose_name='memory type')),
                ('category', models.CharField(blank=True, max_length=40, verbose_name='category')),
                ('sender_id', models.CharField(blank=True, max_length=128, verbose_name='sender ID')),
                ('speaker', models.CharField(blank=True, help_text="The speaker's name as questions use it.", max_length=64, verbose_name='speaker')),
                ('text', models.TextField(verbose_name='text')),
                ('original_text', models.TextField(blank=True, help_text='Text written by a model; empty for other memories.', verbose_name='original text')),
                ('importance', models.FloatField(blank=True, null=True, verbose_name='importance')),
                ('batch_id', models.CharField(blank=True, max_length=64, verbose_name='batch ID')),
                ('delivery_state', models.CharField(blank=True, choices=[('unconfirmed', 'Unconfirmed'), ('buffered', 'Buffered'), ('flushed', 'Flushed'), ('purged', 'Purged')], help_text='Only for messages recorded for an external engine.', max_length=12, verbose_name='delivery state')),
                ('sent_at', models.DateTimeField(blank=True, help_text='When an unconfirmed message was first sent.', null=True, verbose_name='sent at')),
                ('seq', models.IntegerField(default=0, verbose_name='seq')),
                ('chunk_index', models.IntegerField(blank=True, null=True, verbose_name='chunk index')),
                ('sources', models.JSONField(blank=True, default=list, verbose_name='sources')),
                ('supersedes', models.JSONField(blank=True, default=list, verbose_name='supersedes')),
                ('superseded_by', models.CharField(blank=True, max_length=256, verbose_name='superseded by')),
                ('payload', models.JSONField(blank=True, default=dict, verbose_name='payload')),
                ('created_at_ms', models.BigIntegerField(verbose_name='created at ms')),
                ('origin', models.CharField(choices=[('embedded', 'Embedded'), ('upstream', 'Upstream'), ('panel', 'Panel'), ('tool', 'Tool'), ('extracted', 'Extracted')], default='embedded', max_length=10, verbose_name='origin')),
                ('is_indexed', models.BooleanField(default=False, verbose_name='is indexed')),
                ('token_count', models.IntegerField(default=0, verbose_name='token count')),
                ('hidden_at', models.DateTimeField(blank=True, help_text='Set when deleted by a user; restorable until purged.', null=True, verbose_name='hidden at')),
                ('hidden_reason', models.CharField(blank=True, choices=[('superseded', 'Superseded'), ('with_source', 'Source deleted'), ('reworded', 'Source edited')], help_text='Empty if not hidden, or if deleted by a user.', max_length=12, verbose_name='hidden reason')),
                ('user', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='memories', to='accounts.memoryuser', verbose_name='user')),
            ],
            options={
                'verbose_name': 'memory',
                'verbose_name_plural': 'memories',
                'ordering': ('-id',),
            },
        ),
        migrations.CreateModel(
            name='EmbeddingSpace',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('model', models.CharField(max_length=200, verbose_name='model')),
                ('dimensions', models.IntegerField(help_text='0 until the first vector arrives, if the settings give no number.', verbose_name='dimensions')),
                ('sends_dimensions', models.BooleanField(default=False, help_text='Whether requests ask the model for this number.', verbose_name='sends dimensions')),
                ('is_active', models.BooleanField(default=False, verbose_name='is active')),
                ('knows_other_scripts', models.BooleanField(null=True, verbose_name='supports other scripts')),
                ('last_error', core.localization.MessageField(blank=True, verbose_name='last error')),
                ('failed_at', models.DateTimeField(blank=True, null=True, verbose_name='failed at')),
                ('created_at', models.DateTimeField(auto_now_add=True, verbose_name='created at')),
            ],
            options={
                'verbose_name': 'embedding space',
                'verbose_name_plural': 'embedding spaces',
                'constraints': [models.UniqueConstraint(condition=models.Q(('is_active', True)), fields=('is_active',), name='one_active_embedding_space')],
            },
        ),
        migrations.CreateModel(
            name='HourCount',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('span', models.IntegerField(verbose_name='span')),
                ('owner', models.CharField(max_length=32, verbose_name='owner')),
                ('start', models.IntegerField(verbose_name='start')),
                ('agent_id', models.CharField(max_length=64, verbose_name='agent ID')),
                ('category', models.CharField(max_length=40, verbose_name='category')),
                ('origin', models.CharField(max_length=10, verbose_name='origin')),
                ('app_id', models.CharField(max_length=64, verbose_name='app ID')),
                ('project_id', models.CharField(max_length=64, verbose_name='project ID')),
                ('delta', models.BigIntegerField(default=0, verbose_name='delta')),
                ('memories', models.BigIntegerField(verbose_name='memories')),
                ('low', models.BigIntegerField(help_text='Memories with importance below 0.34.', verbose_name='low')),
                ('mid', models.BigIntegerField(verbose_name='mid')),
                ('high', models.BigIntegerField(help_text='Memories with importance of 0.67 or more.', verbose_name='high')),
                ('weight', models.BigIntegerField(help_text='Sum of importance, in millionths.', verbose_name='weight')),
            ],
            options={
                'verbose_name': 'hour count',
                'verbose_name_plural': 'hour counts',
                'default_permissions': ('view',),
                'indexes': [models.Index(fields=['span', 'start'], name='hour_count_of_all_users'), models.Index(condition=models.Q(('memories__lte', 0)), fields=['id'], name='hour_count_empty'), models.Index(condition=models.Q(('delta', 0), _negated=True), fields=['id'], name='hour_count_unsettled')],
                'constraints': [models.UniqueConstraint(fields=('span', 'owner', 'start', 'agent_id', 'category', 'origin', 'app_id', 'project_id', 'delta'), name='hour_count_once')],
            },
        ),
        migrations.CreateModel(
            name='PendingEmbedding',
            fields=[
                ('memory', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='+', serialize=False, to='store.memory', verbose_name='memory')),
            ],
            options={
                'verbose_name': 'pending embedding',
                'verbose_name_plural': 'pending embeddings',
            },
        ),
        migrations.CreateModel(
            name='Session',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('app_id', models.CharField(default='default', max_length=64, verbose_name='app ID')),
                ('project_id', models.CharField(default='default', max_length=64, verbose_name='project ID')),
                ('session_id', models.CharField(max_length=128, verbose_name='session ID')),
                ('engine_session_id', models.CharField(help_text='Equals the session ID, unless another user already has that ID in the engine.', max_length=128, verbose_name='engine session ID')),
                ('kind', models.CharField(choices=[('chat', 'Chat'), ('resource', 'Resource'), ('memory_edit', 'Memory edit'), ('other', 'Other')], max_length=12, verbose_name='kind')),
                ('created_at', models.DateTimeField(auto_now_add=True, verbose_name='created at')),
                ('flushed_at', models.DateTimeField(blank=True, null=True, verbose_name='flushed at')),
                ('searchable_at', models.DateTimeField(blank=True, null=True, verbose_name='searchable at')),
                ('retry_at', models.DateTimeField(blank=True, help_text='When unconfirmed calls are retried.', null=True, verbose_name='retry at')),
                ('deleted_at', models.DateTimeField(blank=True, help_text='Set when permanently deleted; later writes are refused.', null=True, verbose_name='deleted at')),
                ('hidden_at', models.DateTimeField(blank=True, help_text='Set when deleted by a user; restorable until purged.', null=True, verbose_name='hidden at')),
                ('user', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='sessions', to='accounts.memoryuser', verbose_name='user')),
            ],
            options={
                'verbose_name': 'session',
                'verbose_name_plural': 'sessions',
                'ordering': ('-id',),
            },
        ),
        migrations.CreateModel(
            name='PendingExtraction',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('app_id', models.CharField(max_length=64, verbose_name='app ID')),
                ('project_id', models.CharField(max_length=64, verbose_name='project ID')),
                ('batch_id', models.CharField(blank=True, max_length=64, verbose_name='batch ID')),
                ('after_seq', models.IntegerField(default=-1, verbose_name='after seq')),
                ('until_seq', models.IntegerField(null=True, verbose_name='until seq')),
                ('attempts', models.IntegerField(default=0, verbose_name='attempts')),
                ('refusals', models.IntegerField(default=0, verbose_name='refusals')),
                ('retry_at', models.DateTimeField(null=True, verbose_name='retry at')),
                ('last_error', core.localization.MessageField(blank=True, verbose_name='last error')),
                ('given_up_at', models.DateTimeField(null=True, verbose_name='given up at')),
                ('created_at', models.DateTimeField(auto_now_add=True, verbose_name='created at')),
                ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='accounts.memoryuser', verbose_name='user')),
                ('session', models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='store.session', verbose_name='session')),
            ],
            options={
                'verbose_name': 'pending extraction',
                'verbose_name_plural': 'pending extractions',
                'ordering': ('id',),
            },
        ),
        migrations.AddField(
            model_name='memory',
            name='session',
            field=models.ForeignKey(blank=True, db_index=False, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='memories', to='store.session', verbose_name='session'),
        ),
        migrations.CreateModel(
            name='SessionCount',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('session_row', models.BigIntegerField(verbose_name='session row')),
                ('of_agent', models.BooleanField(verbose_name='of agent')),
                ('agent_id', models.CharField(max_length=64, verbose_name='agent ID')),
                ('memories', models.BigIntegerField(verbose_name='memories')),
                ('first_ms', models.BigIntegerField(verbose_name='first ms')),
                ('last_ms', models.BigIntegerField(verbose_name='last ms')),
            ],
            options={
                'verbose_name': 'session count',
                'verbose_name_plural': 'session counts',
                'default_permissions': ('view',),
                'indexes': [models.Index(fields=['of_agent', 'agent_id', '-memories', '-session_row', 'first_ms', 'last_ms'], name='session_count_most'), models.Index(fields=['of_agent', 'agent_id', 'last_ms', 'first_ms', 'memories'], name='session_count_ends'), models.Index(condition=models.Q(('memories__lte', 0)), fields=['id'], name='session_count_empty')],
                'constraints': [models.UniqueConstraint(fields=('session_row', 'of_agent', 'agent_id'), name='session_count_once')],
            },
        ),
        migrations.CreateModel(
            name='VectorPage',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('app_id', models.CharField(max_length=64, verbose_name='app ID')),
                ('project_id', models.CharField(max_length=64, verbose_name='project ID')),
                ('number', models.IntegerField(verbose_name='number')),
                ('rows', models.BinaryField(verbose_name='rows')),
                ('codes', models.BinaryField(verbose_name='codes')),
                ('space', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='store.embeddingspace', verbose_name='space')),
                ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='accounts.memoryuser', verbose_name='user')),
            ],
            options={
                'verbose_name': 'vector page',
                'verbose_name_plural': 'vector pages',
            },
        ),
        migrations.CreateModel(
            name='FactPage',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('app_id', models.CharField(max_length=64, verbose_name='app ID')),
                ('project_id', models.CharField(max_length=64, verbose_name='project ID')),
                ('number', models.IntegerField(verbose_name='number')),
                ('facts', models.BinaryField(verbose_name='facts')),
                ('names', models.TextField(verbose_name='names')),
                ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='accounts.memoryuser', verbose_name='user')),
            ],
            options={
                'verbose_name': 'fact page',
                'verbose_name_plural': 'fact pages',
                'constraints': [models.UniqueConstraint(fields=('user', 'app_id', 'project_id', 'number'), name='fact_page_of_one_user')],
            },
        ),
        migrations.CreateModel(
            name='IndexStatistics',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('app_id', models.CharField(max_length=64, verbose_name='app ID')),
                ('project_id', models.CharField(max_length=64, verbose_name='project ID')),
                ('documents', models.BigIntegerField(default=0, verbose_name='documents')),
                ('tokens', models.BigIntegerField(default=0, verbose_name='tokens')),
                ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='accounts.memoryuser', verbose_name='user')),
            ],
            options={
                'verbose_name': 'index statistics',
                'verbose_name_plural': 'index statistics',
                'constraints': [models.UniqueConstraint(fields=('user', 'app_id', 'project_id'), name='statistics_of_one_user')],
            },
        ),
        migrations.CreateModel(
            name='Embedding',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('digest', models.BinaryField(max_length=16, verbose_name='digest')),
                ('vector', models.BinaryField(verbose_name='vector')),
                ('space', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='store.embeddingspace', verbose_name='space')),
                ('memory', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='store.memory', verbose_name='memory')),
            ],
            options={
                'verbose_name': 'embedding',
                'verbose_name_plural': 'embeddings',
                'indexes': [models.Index(fields=['space', 'digest'], name='embedding_by_text')],
                'constraints': [models.UniqueConstraint(fields=('memory', 'space'), name='embedding_of_one_memory')],
            },
        ),
        migrations.AddIndex(
            model_name='session',
            index=models.Index(fields=['engine_session_id'], name='session_by_engine_id'),
        ),
        migrations.AddIndex(
            model_name='session',
            index=models.Index(fields=['session_id'], name='session_by_id'),
        ),
        migrations.AddIndex(
            model_name='session',
            index=models.Index(condition=models.Q(('flushed_at__isnull', False), ('searchable_at__isnull', True)), fields=['flushed_at'], name='session_flush_open'),
        ),
        migrations.AddIndex(
            model_name='session',
            index=models.Index(condition=models.Q(('hidden_at__isnull', False), ('deleted_at__isnull', False), _connector='OR'), fields=['user', 'app_id', 'project_id'], name='session_closed'),
        ),
        migrations.AddConstraint(
            model_name='session',
            constraint=models.UniqueConstraint(fields=('user', 'app_id', 'project_id', 'session_id'), name='session_of_one_user'),
        ),
        migrations.AddIndex(
            model_name='pendingextraction',
            index=models.Index(condition=models.Q(('given_up_at__isnull', True)), fields=['id'], name='extraction_pending'),
        ),
        migrations.AddConstraint(
            model_name='pendingextraction',
            constraint=models.UniqueConstraint(condition=models.Q(('session__isnull', True)), fields=('user', 'app_id', 'project_id'), name='one_pending_profile_per_user'),
        ),
        migrations.AddIndex(
            model_name='memory',
            index=models.Index(fields=['user', 'app_id', 'project_id', 'created_at_ms'], name='memory_by_time'),
        ),
        migrations.AddIndex(
            model_name='memory',
            index=models.Index(fields=['session', 'seq'], name='memory_in_session'),
        ),
        migrations.AddIndex(
            model_name='memory',
            index=models.Index(condition=models.Q(('is_indexed', False), models.Q(('origin', 'upstream'), _negated=True)), fields=['id'], name='memory_not_indexed'),
        ),
        migrations.AddIndex(
            model_name='memory',
            index=models.Index(condition=models.Q(('is_indexed', True), models.Q(('hidden_at__isnull', False), ('memory_type', 'unprocessed_message'), ('memory_type', 'profile'), _connector='OR')), fields=['user', 'app_id', 'project_id'], name='memory_set_apart'),
        ),
        migrations.AddIndex(
            model_name='memory',
            index=models.Index(condition=models.Q(('hidden_at__isnull', True)), fields=['created_at_ms', 'id'], name='memory_browsed_time'),
        ),
        migrations.AddIndex(
            model_name='memory',
            index=models.Index(condition=models.Q(('hidden_at__isnull', True)), fields=['category', 'created_at_ms', 'id'], name='memory_browsed_category'),
        ),
        migrations.AddIndex(
            model_name='memory',
            index=models.Index(condition=models.Q(('hidden_at__isnull', True)), fields=['user', 'created_at_ms', 'id'], name='memory_browsed_user'),
        ),
        migrations.AddIndex(
            model_name='memory',
            index=models.Index(condition=models.Q(('hidden_at__isnull', True)), fields=['user', 'category', 'created_at_ms', 'id'], name='memory_browsed_user_category'),
        ),
        migrations.AddIndex(
            model_name='memory',
            index=models.Index(condition=models.Q(('hidden_at__isnull', True)), fields=['agent_id', 'created_at_ms', 'id'], name='memory_browsed_agent'),
        ),
        migrations.AddIndex(
            model_name='memory',
            index=models.Index(condition=models.Q(('hidden_at__isnull', True)), fields=['agent_id', 'category', 'created_at_ms', 'id'], name='memory_browsed_agent_category'),
        ),
        migrations.AddIndex(
            model_name='memory',
            index=models.Index(condition=models.Q(('hidden_at__isnull', True)), fields=['session', 'created_at_ms', 'id'], name='memory_browsed_session'),
        ),
        migrations.AddIndex(
            model_name='memory',
            index=models.Index(condition=models.Q(('hidden_at__isnull', True)), fields=['origin', 'created_at_ms', 'id'], name='memory_browsed_origin'),
        ),
        migrations.AddIndex(
            model_name='memory',
            index=models.Index(condition=models.Q(('hidden_at__isnull', True)), fields=['memory_type', 'created_at_ms', 'id'], name='memory_browsed_type'),
        ),
        migrations.AddIndex(
            model_name='memory',
            index=models.Index(condition=models.Q(('hidden_at__isnull', True)), fields=['batch_id', 'created_at_ms', 'id'], name='memory_browsed_turn'),
        ),
        migrations.AddIndex(
            model_name='memory',
            index=models.Index(condition=models.Q(('hidden_at__isnull', True), ('importance__isnull', False)), fields=['category', 'created_at_ms', 'id', 'importance'], name='memory_browsed_importance'),
        ),
        migrations.AddIndex(
            model_name='memory',
            index=models.Index(condition=models.Q(('hidden_at__isnull', False)), fields=['created_at_ms', 'id'], name='memory_in_trash'),
        ),
        migrations.AddIndex(
            model_name='memory',
            index=models.Index(condition=models.Q(('delivery_state', 'unconfirmed')), fields=['user'], name='memory_unconfirmed_user'),
        ),
        migrations.AddIndex(
            model_name='memory',
            index=models.Index(condition=models.Q(('delivery_state', 'unconfirmed')), fields=['sent_at'], name='memory_unconfirmed_sent_at'),
        ),
        migrations.AddConstraint(
            model_name='memory',
            constraint=models.UniqueConstraint(fields=('memory_id', 'user', 'app_id', 'project_id'), name='memory_of_one_user'),
        ),
        migrations.AddConstraint(
            model_name='vectorpage',
            constraint=models.UniqueConstraint(fields=('user', 'app_id', 'project_id', 'space', 'number'), name='vector_page_of_one_user'),
        ),
        migrations.RunPython(install, remove),
    ]
