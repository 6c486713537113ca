import django.db.models.manager
import django.utils.timezone
from django.db import migrations, models

from core.persistence.migration_operations import AddColumn, AddIndexOnline


class Migration(migrations.Migration):
    atomic = False

    dependencies = [
        ('accounts', '0010_authority'),
        ('memories', '0004_reasons_and_ends_of_decisions'),
        ('store', '0011_state'),
    ]

    operations = [
        migrations.AlterModelManagers(
            name='tombstone',
            managers=[
                ('ledger', django.db.models.manager.Manager()),
            ],
        ),
        migrations.RemoveConstraint(
            model_name='tombstone',
            name='one_tombstone_per_memory',
        ),
        migrations.RemoveConstraint(
            model_name='tombstone',
            name='one_tombstone_per_session',
        ),
        AddColumn(
            model_name='tombstone',
            name='cause',
            field=models.CharField(blank=True, db_default='', default='', help_text='ID of the tombstone or override that this one follows from.', max_length=40, verbose_name='cause'),
        ),
        AddColumn(
            model_name='tombstone',
            name='kind',
            field=models.CharField(choices=[('deleted', 'Deleted'), ('resource_deleted', 'Resource deleted'), ('source_deleted', 'Source deleted'), ('source_corrected', 'Source edited'), ('superseded', 'Superseded')], db_default='deleted', default='deleted', max_length=16, verbose_name='kind'),
        ),
        AddColumn(
            model_name='tombstone',
            name='other_digest',
            field=models.CharField(blank=True, db_default='', default='', max_length=32, verbose_name='digest of the source'),
        ),
        AddColumn(
            model_name='tombstone',
            name='other_id',
            field=models.CharField(blank=True, db_default='', default='', max_length=256, verbose_name='other memory'),
        ),
        AddColumn(
            model_name='tombstone',
            name='resource_id',
            field=models.CharField(blank=True, db_default='', default='', max_length=40, verbose_name='resource ID'),
        ),
        # Only Python fills the two columns.
        migrations.SeparateDatabaseAndState(state_operations=[
            migrations.AlterField(
                model_name='override',
                name='created_at',
                field=models.DateTimeField(default=django.utils.timezone.now, editable=False, verbose_name='created at'),
            ),
            migrations.AlterField(
                model_name='tombstone',
                name='created_at',
                field=models.DateTimeField(default=django.utils.timezone.now, editable=False, verbose_name='created at'),
            ),
        ]),
        AddIndexOnline(
            model_name='tombstone',
            index=models.Index(condition=models.Q(('undone_at__isnull', True), models.Q(('cause', ''), _negated=True)), fields=['cause'], name='tombstone_by_cause'),
        ),
        migrations.AddConstraint(
            model_name='tombstone',
            constraint=models.UniqueConstraint(condition=models.Q(('kind', 'deleted'), ('undone_at__isnull', True), models.Q(('memory_id', ''), _negated=True)), fields=('user', 'app_id', 'project_id', 'memory_id'), name='one_deletion_per_memory'),
        ),
        migrations.AddConstraint(
            model_name='tombstone',
            constraint=models.UniqueConstraint(condition=models.Q(('kind', 'deleted'), ('memory_id', ''), ('resource_id', ''), ('undone_at__isnull', True)), fields=('user', 'app_id', 'project_id', 'session_id'), name='one_deletion_per_session'),
        ),
        migrations.AddConstraint(
            model_name='tombstone',
            constraint=models.UniqueConstraint(condition=models.Q(('undone_at__isnull', True), models.Q(('resource_id', ''), _negated=True)), fields=('resource_id',), name='one_deletion_per_resource'),
        ),
        migrations.AddConstraint(
            model_name='tombstone',
            constraint=models.UniqueConstraint(condition=models.Q(('undone_at__isnull', True), models.Q(('kind', 'deleted'), _negated=True)), fields=('user', 'app_id', 'project_id', 'memory_id', 'session_id', 'kind', 'cause', 'other_id'), name='one_tombstone_per_cause'),
        ),
    ]
