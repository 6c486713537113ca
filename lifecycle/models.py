from __future__ import annotations

from django.db import models


class Lease(models.Model):
    """One holder at a time of a duty such as sweeping; it lapses when its holder stops renewing it."""

    name = models.CharField(primary_key=True, max_length=64)
    holder = models.CharField(max_length=128)
    expires_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.name}: {self.holder}"
