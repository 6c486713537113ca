from typing import Any

from django.apps import AppConfig
from django.db.models.signals import post_migrate
from django.utils.translation import gettext_lazy as _


class StoreConfig(AppConfig):
    name = "store"
    verbose_name = _("Store")

    def ready(self) -> None:
        post_migrate.connect(_clear_index_after_flush, sender=self)


def _clear_index_after_flush(**options: Any) -> None:
    """Empty the keyword index after Django's `flush`, which knows no table without a model.

    Unlike `migrate`, `flush` sends no `plan`.
    """
    if "plan" not in options:
        from store.index import keyword  # noqa: PLC0415  models are loaded by now

        keyword.clear()
