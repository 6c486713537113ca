"""The list of tables with data of users is complete."""

from __future__ import annotations

from django.apps import apps
from django.db.models import Model

from operations.tables import ALL

OUR_APPS = (
    "accounts", "store", "remote", "resources", "memories", "profiles", "operations", "agents", "console", "webhooks",
)  # fmt: skip
OTHER_TABLES: dict[str, str] = {
    "accounts.AuditBatch": "digests over digests",
    "accounts.AuditDigest": "salted digests; an erasure removes the salts",
    "accounts.QueueLevel": "levels of queues of all users together",
    "accounts.AuditSubject": "made and removed with the audit trail",
    "accounts.OAuthClient": "applications; `operations.erase` removes those that no other user has connected",
    "accounts.OperatorIdentity": "operators",
    "accounts.OperatorTenant": "operators",
    "accounts.SecondFactor": "operators",
    "accounts.SignInThrottle": "addresses, and digests of operators' names",
    "store.EmbeddingSpace": "one row for each model",
    "store.DayCount": "counts that database triggers update when rows are removed",
    "store.Residue": "digests of user ids, which keep new users from the data that an upstream has of erased ones",
    "store.PendingDeletion": "ids that EverOS has to delete, needed after the user's rows are gone",
    "store.SessionCount": "as DayCount",
    "memories.SearchCount": "counts of all users together, by hour and duration",
    "operations.Job": "names users in its parameters; `operations.erased_jobs` takes them out",
    "operations.JobStep": "as Job",
    "operations.Lease": "processes",
    "resources.StorageIdentity": "one row for all",
}
"""Tables outside the list, and why they keep no data of an erased user."""


def our_models() -> set[type[Model]]:
    return {model for app in OUR_APPS for model in apps.get_app_config(app).get_models()}


def test_every_model_is_in_the_list_or_excluded_with_a_reason() -> None:
    """A new table declares what happens to its rows in exports and erasures."""
    listed = {table.model for table in ALL} | {apps.get_model(label) for label in OTHER_TABLES}
    assert {model._meta.label for model in our_models() ^ listed} == set()


def test_no_table_is_listed_twice() -> None:
    assert not {table.model._meta.label for table in ALL} & set(OTHER_TABLES)
    assert len({table.model for table in ALL}) == len({table.name for table in ALL}) == len(ALL)
