"""What search reads in whole pages instead of rows: 256 memories of one user and scope at a time."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _

from accounts.models import MemoryUser


class FactPage(models.Model):
    """What ranking has to know of up to 256 indexed memories beside their tokens; written by `store.index.pages`.

    `facts` is an array of records, `names` the JSON list of speakers, senders and agents that they point into.
    """

    user = models.ForeignKey(MemoryUser, models.CASCADE, verbose_name=_("user"), related_name="+")
    app_id = models.CharField(_("app id"), max_length=64)
    project_id = models.CharField(_("project id"), max_length=64)
    number = models.IntegerField(_("number"))
    facts = models.BinaryField(_("facts"))
    names = models.TextField(_("names"))

    class Meta:
        verbose_name = _("fact page")
        verbose_name_plural = _("fact pages")
        constraints = [
            models.UniqueConstraint(fields=["user", "app_id", "project_id", "number"], name="fact_page_of_one_user")
        ]

    def __str__(self) -> str:
        return f"{self.user_id} {self.app_id}/{self.project_id} {self.number}"


class EmbeddingSpace(models.Model):
    """The vectors of one model with one number of dimensions. Searches use the active one alone.

    `knows_other_scripts` is what a trial found: whether the model tells Chinese sentences apart (None: not tried yet).
    """

    model = models.CharField(_("model"), max_length=200)
    dimensions = models.IntegerField(
        _("dimensions"), help_text=_("0 until the first vector came, where the settings name no number.")
    )
    sends_dimensions = models.BooleanField(
        _("sends dimensions"), default=False, help_text=_("Whether the model is asked for that number.")
    )
    is_active = models.BooleanField(_("is active"), default=False)
    knows_other_scripts = models.BooleanField(_("knows other scripts"), null=True)
    last_error = models.CharField(_("last error"), max_length=300, blank=True)
    failed_at = models.DateTimeField(_("failed at"), null=True, blank=True)
    created_at = models.DateTimeField(_("created at"), auto_now_add=True)

    class Meta:
        verbose_name = _("embedding space")
        verbose_name_plural = _("embedding spaces")
        constraints = [
            models.UniqueConstraint(
                fields=["is_active"], condition=models.Q(is_active=True), name="one_active_embedding_space"
            )
        ]

    def __str__(self) -> str:
        return f"{self.model} ({self.dimensions})"


class Embedding(models.Model):
    """A memory's vector as half-precision floats of length 1, and the digest of the text that it was made of.

    An empty `vector`: the text is of a script that the model does not know.
    """

    memory = models.ForeignKey("store.Memory", models.CASCADE, verbose_name=_("memory"), related_name="+")
    space = models.ForeignKey(EmbeddingSpace, models.CASCADE, verbose_name=_("space"), related_name="+")
    digest = models.BinaryField(_("digest"), max_length=16)
    vector = models.BinaryField(_("vector"))

    class Meta:
        verbose_name = _("embedding")
        verbose_name_plural = _("embeddings")
        constraints = [models.UniqueConstraint(fields=["memory", "space"], name="embedding_of_one_memory")]
        indexes = [models.Index(fields=["space", "digest"], name="embedding_by_text")]

    def __str__(self) -> str:
        return f"{self.memory_id} in {self.space_id}"


class VectorPage(models.Model):
    """Up to 256 vectors of one user and scope, a byte per dimension; written by `store.vectors.pages`."""

    user = models.ForeignKey(MemoryUser, models.CASCADE, verbose_name=_("user"), related_name="+")
    app_id = models.CharField(_("app id"), max_length=64)
    project_id = models.CharField(_("project id"), max_length=64)
    space = models.ForeignKey(EmbeddingSpace, models.CASCADE, verbose_name=_("space"), related_name="+")
    number = models.IntegerField(_("number"))
    rows = models.BinaryField(_("rows"))
    codes = models.BinaryField(_("codes"))

    class Meta:
        verbose_name = _("vector page")
        verbose_name_plural = _("vector pages")
        constraints = [
            models.UniqueConstraint(
                fields=["user", "app_id", "project_id", "space", "number"], name="vector_page_of_one_user"
            )
        ]

    def __str__(self) -> str:
        return f"{self.user_id} {self.app_id}/{self.project_id} {self.space_id}/{self.number}"


class OwedEmbedding(models.Model):
    """A memory that waits for its vector: written with the memory, taken away with the vector."""

    memory = models.OneToOneField(
        "store.Memory", models.CASCADE, verbose_name=_("memory"), primary_key=True, related_name="+"
    )

    class Meta:
        verbose_name = _("owed embedding")
        verbose_name_plural = _("owed embeddings")

    def __str__(self) -> str:
        return str(self.memory_id)
