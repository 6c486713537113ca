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
            name='ProfileMemory',
            fields=[
                ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False, verbose_name='ID')),
                ('memory_type', models.CharField(choices=[('user', 'User'), ('work', 'Work')], max_length=20, verbose_name='document type')),
                ('content', models.JSONField(verbose_name='content')),
                ('status', models.CharField(choices=[('active', 'Active'), ('disabled', 'Disabled')], default='active', max_length=20, verbose_name='status')),
                ('version', models.PositiveIntegerField(help_text='Incremented by every change; the ETag is derived from it.', verbose_name='version')),
                ('created_at', models.DateTimeField(auto_now_add=True, verbose_name='created at')),
                ('updated_at', models.DateTimeField(auto_now=True, verbose_name='updated at')),
                ('owner', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='accounts.memoryuser', verbose_name='user')),
            ],
            options={
                'verbose_name': 'profile',
                'verbose_name_plural': 'profiles',
                'ordering': ('owner', 'memory_type'),
                'default_permissions': ('view', 'change', 'restore', 'disable'),
            },
        ),
        migrations.CreateModel(
            name='ProfileRevision',
            fields=[
                ('id', models.BigAutoField(primary_key=True, serialize=False, verbose_name='ID')),
                ('version', models.PositiveIntegerField(verbose_name='version')),
                ('action', models.CharField(choices=[('write', 'Write'), ('patch', 'Patch'), ('restore', 'Restore'), ('disable', 'Disable'), ('enable', 'Enable')], max_length=16, verbose_name='action')),
                ('content', models.JSONField(verbose_name='content')),
                ('actor_kind', models.CharField(max_length=16, verbose_name='actor type')),
                ('actor', models.CharField(blank=True, max_length=150, verbose_name='actor')),
                ('created_at', models.DateTimeField(auto_now_add=True, verbose_name='created at')),
                ('profile', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='revisions', to='profiles.profilememory', verbose_name='profile')),
            ],
            options={
                'verbose_name': 'profile revision',
                'verbose_name_plural': 'profile revisions',
                'ordering': ('profile', '-version'),
                'default_permissions': ('view',),
            },
        ),
        migrations.AddConstraint(
            model_name='profilememory',
            constraint=models.UniqueConstraint(fields=('owner', 'memory_type'), name='one_profile_of_each_type'),
        ),
        migrations.AddConstraint(
            model_name='profilerevision',
            constraint=models.UniqueConstraint(fields=('profile', 'version'), name='one_revision_of_each_version'),
        ),
    ]
