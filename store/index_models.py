"""What search reads in whole pages instead of rows: 256 memories of one user and scope at a time."""

from __future__ import annotations

from django.db import models

from accounts.models import MemoryUser


class FactPage(models.Model):
    """What ranking has to know of up to 256 indexed memories beside their tokens; written by `store.index.pages`.

    `facts` is an array of records, `names` the JSON list of speakers, senders and agents that they point into.
    """

    user = models.ForeignKey(MemoryUser, models.CASCADE, related_name="+")
    app_id = models.CharField(max_length=64)
    project_id = models.CharField(max_length=64)
    number = models.IntegerField()
    facts = models.BinaryField()
    names = models.TextField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["user", "app_id", "project_id", "number"], name="fact_page_of_one_user")
        ]

    def __str__(self) -> str:
        return f"{self.user_id} {self.app_id}/{self.project_id} {self.number}"


class EmbeddingSpace(models.Model):
    """The vectors of one model with one number of dimensions. Searches use the active one alone.

    `knows_other_scripts` is what a trial found: whether the model tells Chinese sentences apart (None: not tried yet).
    """

    model = models.CharField(max_length=200)
    dimensions = models.IntegerField(help_text="0 until the first vector came, where the settings name no number.")
    sends_dimensions = models.BooleanField(default=False, help_text="Whether the model is asked for that number.")
    is_active = models.BooleanField(default=False)
    knows_other_scripts = models.BooleanField(null=True)
    last_error = models.CharField(max_length=300, blank=True)
    failed_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
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

    memory = models.ForeignKey("store.Memory", models.CASCADE, related_name="+")
    space = models.ForeignKey(EmbeddingSpace, models.CASCADE, related_name="+")
    digest = models.BinaryField(max_length=16)
    vector = models.BinaryField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["memory", "space"], name="embedding_of_one_memory")]
        indexes = [models.Index(fields=["space", "digest"], name="embedding_by_text")]

    def __str__(self) -> str:
        return f"{self.memory_id} in {self.space_id}"


class VectorPage(models.Model):
    """Up to 256 vectors of one user and scope, a byte per dimension; written by `store.vectors.pages`."""

    user = models.ForeignKey(MemoryUser, models.CASCADE, related_name="+")
    app_id = models.CharField(max_length=64)
    project_id = models.CharField(max_length=64)
    space = models.ForeignKey(EmbeddingSpace, models.CASCADE, related_name="+")
    number = models.IntegerField()
    rows = models.BinaryField()
    codes = models.BinaryField()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["user", "app_id", "project_id", "space", "number"], name="vector_page_of_one_user"
            )
        ]

    def __str__(self) -> str:
        return f"{self.user_id} {self.app_id}/{self.project_id} {self.space_id}/{self.number}"


class OwedEmbedding(models.Model):
    """A memory that waits for its vector: written with the memory, taken away with the vector."""

    memory = models.OneToOneField("store.Memory", models.CASCADE, primary_key=True, related_name="+")

    def __str__(self) -> str:
        return str(self.memory_id)
