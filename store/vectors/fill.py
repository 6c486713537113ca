"""Vectors for the memories that lack one: after a flush for its session at once, and in the background for the rest.

Nothing waits for the endpoint but this. A memory is owed its vector from the transaction that wrote it until the one
that writes the vector, so no failure loses any; what fails is tried again.
"""

from __future__ import annotations

import hashlib
import logging
import threading
import time
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import Final

import numpy as np
from django.db import transaction
from django.utils import timezone

from store.errors import database_errors
from store.models import Embedding, EmbeddingSpace, IndexStatistics, Memory, OwedEmbedding, owned_by
from store.types import Owner
from store.vectors import pages, scripts, spaces
from store.vectors.client import CALL_SECONDS, MAX_CHARS, EmbeddingClient, EndpointError, client, wanted_model

logger = logging.getLogger("memory_gateway.embeddings")

BATCH: Final = 40
_DIGEST_BYTES: Final = 16
_NO_VECTOR: Final = b""
_in_work: set[int] = set()
_lock = threading.Lock()


def fill(seconds: float, *, session: int | None = None) -> int:
    """Gives vectors to what is owed one, for so long at most; how many memories were done with.

    `session` (its row id) asks for that session's alone. An endpoint that fails ends it without an error: `/health`
    says so, and what is left stays owed.
    """
    wanted = wanted_model()
    if wanted is None:
        return 0
    until, done = time.monotonic() + seconds, 0
    space = spaces.begun(wanted)
    try:
        spaces.settle(space, client(), min(seconds, CALL_SECONDS))
        while (left := until - time.monotonic()) > 0:
            with _batch(session) as memories:
                if not memories:
                    break
                done += write(space, memories, client(), min(left, CALL_SECONDS))
    except EndpointError as error:
        spaces.note(space, error.detail, timezone.now())
    else:
        spaces.note(space, "", None)
    return done


def owe_what_is_lacking() -> None:
    """Notes every memory that has no vector and is not noted as owed one."""
    with database_errors():
        if spaces.is_anything_lacking():
            spaces.owe_all()


def write(space: EmbeddingSpace, memories: Sequence[Memory], source: EmbeddingClient, seconds: float) -> int:
    """Makes the vectors of memories, read with their users, and keeps them. Errors: `EndpointError`."""
    texts = {digest_of(memory.text): memory.text for memory in memories}
    found = _known(space, texts)
    found |= {digest: _NO_VECTOR for digest, text in texts.items() if not _can_be_told(space, text)}
    found |= _asked(space, {digest: text for digest, text in texts.items() if digest not in found}, source, seconds)
    by_owner: defaultdict[Owner, list[Memory]] = defaultdict(list)
    for memory in memories:
        by_owner[Owner(memory.user_id, memory.user.user_id, memory.app_id, memory.project_id)].append(memory)
    for owner, owned in by_owner.items():
        _keep(owner, space, [memory.pk for memory in owned], found)
    return len(memories)


def forget(owner: Owner, pks: Collection[int]) -> None:
    """Takes memories (by row id) out of everything here. Call inside the transaction that removes or changes them."""
    OwedEmbedding.objects.filter(pk__in=list(pks)).delete()
    if Embedding.objects.filter(memory__in=list(pks)).delete()[0]:
        pages.remove(owner, pks)


def digest_of(text: str) -> bytes:
    """Names a text as far as a model reads it."""
    return hashlib.blake2b(text[:MAX_CHARS].encode("utf-8", "replace"), digest_size=_DIGEST_BYTES).digest()


@contextmanager
def _batch(session: int | None) -> Iterator[list[Memory]]:
    """Memories that are owed a vector and that no other thread of this process is at."""
    owed = OwedEmbedding.objects.order_by("pk")
    if session is not None:
        owed = owed.filter(memory__session=session)
    with _lock:
        pks = list(owed.exclude(pk__in=_in_work).values_list("pk", flat=True)[:BATCH])
        _in_work.update(pks)
    try:
        yield list(Memory.objects.filter(pk__in=pks).select_related("user"))
    finally:
        with _lock:
            _in_work.difference_update(pks)


def _can_be_told(space: EmbeddingSpace, text: str) -> bool:
    return bool(text.strip()) and (bool(space.knows_other_scripts) or not scripts.is_foreign(text))


def _known(space: EmbeddingSpace, digests: Collection[bytes]) -> dict[bytes, bytes]:
    """What was made of the same texts before."""
    rows = Embedding.objects.filter(space=space, digest__in=list(digests)).values_list("digest", "vector")
    return {bytes(digest): bytes(vector) for digest, vector in rows}


def _asked(
    space: EmbeddingSpace, texts: dict[bytes, str], source: EmbeddingClient, seconds: float
) -> dict[bytes, bytes]:
    """What the model makes of texts: nothing of one that it will not take while it takes others."""
    if not texts:
        return {}
    model = spaces.model_of(space)
    try:
        made = source.embed(model, list(texts.values()), seconds)
    except EndpointError as error:
        if not error.is_refusal:
            raise
        if len(texts) > 1:
            found: dict[bytes, bytes] = {}
            for digest, text in texts.items():
                found |= _asked(space, {digest: text}, source, seconds)
            return found
        source.embed(model, scripts.TRIAL[:1], seconds)  # raises where it is the endpoint and not the text
        logger.warning("The embedding endpoint does not take a text; it stays to be found by keyword.")
        return dict.fromkeys(texts, _NO_VECTOR)
    return {digest: vector.astype(pages.HALF).tobytes() for digest, vector in zip(texts, made, strict=True)}


def _keep(owner: Owner, space: EmbeddingSpace, pks: Sequence[int], found: dict[bytes, bytes]) -> None:
    """Writes the vectors of an owner's memories that are still there, still say the same and have none yet."""
    with transaction.atomic():
        memories = Memory.objects.select_for_update().filter(owned_by(owner), pk__in=pks, is_indexed=True)
        rows = {memory.pk: digest_of(memory.text) for memory in memories.order_by("pk")}
        list(IndexStatistics.objects.select_for_update().filter(owned_by(owner)))
        held = set(Embedding.objects.filter(space=space, memory__in=rows).values_list("memory_id", flat=True))
        new = {pk: found[digest] for pk, digest in rows.items() if digest in found and pk not in held}
        Embedding.objects.bulk_create(
            Embedding(memory_id=pk, space=space, digest=rows[pk], vector=vector) for pk, vector in new.items()
        )
        told = {pk: np.frombuffer(vector, pages.HALF).astype(np.float32) for pk, vector in new.items() if vector}
        if told:
            pages.add(owner, space.pk, list(told), np.stack(list(told.values())))
        if space.is_active:
            # Gone, or out of the index for now: it is owed anew when it comes back.
            lost = set(pks).difference(rows)
            OwedEmbedding.objects.filter(pk__in=[*new, *held, *lost]).delete()
