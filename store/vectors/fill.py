"""Compute missing vectors: after a flush for its session, and in the background for all other memories.

No other operation waits for the endpoint. A memory is marked as pending in the transaction that writes it, until its
vector is stored, so no failure loses a vector: failed calls are retried.
"""

import hashlib
import logging
import time
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Final, NamedTuple

import numpy as np
from django.db import transaction
from django.db.backends.utils import CursorWrapper
from django.db.models import Q, QuerySet
from django.utils import timezone

from accounts import expiry
from core.background.leases import claimed
from core.persistence.database_errors import database_errors
from store.admission import is_held_memory
from store.index.keyword import IndexEntry
from store.models import (
    Embedding,
    EmbeddingSpace,
    IndexStatistics,
    Memory,
    PendingEmbedding,
    State,
    TokenVectors,
    owned_by,
)
from store.types import Owner
from store.vectors import spaces, token_vectors, vector_pages
from store.vectors.client import CALL_SECONDS, MAX_CHARS, Embedder, EndpointError, LocalEmbedder, client, wanted_model
from store.vectors.layout import HALF, TOKEN_LAYOUT

logger = logging.getLogger("memory_gateway.embeddings")

BATCH: Final = 40
LEASE: Final = timedelta(seconds=30)
_DIGEST_BYTES: Final = 16
_NO_VECTOR: Final = b""


class _Computed(NamedTuple):
    """The vector of a text, and those of its tokens, as they are stored."""

    vector: bytes
    tokens: bytes = b""


_NOTHING: Final = _Computed(_NO_VECTOR)


def pending() -> QuerySet[PendingEmbedding]:
    """Return the memories whose text goes to the model: without those that have expired, until they are restored."""
    expired = Q(memory__state=State.EXPIRED) | Q(memory__session__state=State.EXPIRED, memory__session__isnull=False)
    return PendingEmbedding.objects.exclude(expired).exclude(is_held_memory("memory__"))


def fill(seconds: float, *, session: int | None = None) -> int:
    """Compute pending vectors for a limited time; return the number of finished memories.

    `session` (its row id) restricts it to that session. A failing endpoint ends it without an error: `/health` reports
    it, and the rest stays pending.
    """
    wanted = wanted_model()
    if wanted is None:
        return 0
    of_session = Q() if session is None else Q(memory__session=session)
    found = pending().filter(of_session).order_by("pk")
    deadline, done = time.monotonic() + seconds, 0
    space = spaces.get_or_create(wanted)
    try:
        spaces.probe(space, client(), min(seconds, CALL_SECONDS))
        while (remaining := deadline - time.monotonic()) > 0:
            expiry.end_all_due()
            with claimed(found, BATCH, LEASE) as batch:
                if not batch:
                    break
                memories = Memory.objects.filter(pk__in=[row.pk for row in batch]).select_related("user")
                done += write(space, list(memories), client(), min(remaining, CALL_SECONDS))
    except EndpointError as error:
        if error.is_refusal:  # refused even with the test sentences: the endpoint's fault, not a text's
            client().pause.begin(error)
        spaces.note(space, error.detail, timezone.now())
    else:
        spaces.note(space, "", None)
    return done


def mark_missing_pending() -> None:
    """Mark every memory without a vector as pending, if any is not marked yet; write outdated pages again."""
    with database_errors():
        vector_pages.update()
        if spaces.has_unmarked():
            spaces.mark_all_pending()


def write(space: EmbeddingSpace, memories: Sequence[Memory], source: Embedder, seconds: float) -> int:
    """Compute and store the vectors of memories that were selected with their users; return their number.

    Raises: `EndpointError`.
    """
    texts = {digest_of(memory.text): memory.text for memory in memories}
    found = _known(space, texts)
    for digest, text in texts.items():
        if not text.strip() or (spaces.is_foreign(text) and not space.knows_other_scripts):
            found[digest] = _NOTHING
    found |= _compute(space, {digest: text for digest, text in texts.items() if digest not in found}, source, seconds)
    by_owner: defaultdict[Owner, list[Memory]] = defaultdict(list)
    for memory in memories:
        by_owner[Owner(memory.user_id, memory.user.user_id, memory.app_id, memory.project_id)].append(memory)
    for owner, owned in by_owner.items():
        _store(owner, space, [memory.pk for memory in owned], found)
    return len(memories)


def add(cursor: CursorWrapper, _owner: Owner, entries: Mapping[Memory, IndexEntry]) -> None:
    """Mark saved memories as pending, if a model is configured; otherwise `mark_missing_pending` does later."""
    if wanted_model() is not None:
        spaces.mark_pending(cursor, [memory.pk for memory in entries])


def remove(_cursor: CursorWrapper, owner: Owner, entries: Mapping[int, IndexEntry]) -> None:
    """Remove memories (by row id) from all vectors."""
    PendingEmbedding.objects.filter(pk__in=list(entries)).delete()
    if Embedding.objects.filter(memory__in=list(entries)).delete()[0]:
        vector_pages.remove(owner, entries)
        TokenVectors.objects.filter(memory__in=list(entries)).delete()


def differences(owners: Sequence[Owner]) -> Iterator[str]:
    """Compare the vectors of some owners with their texts and pages, and the totals of all; yield the differences."""
    if wanted_model() is not None and spaces.has_unmarked():
        yield "memories without a vector are not marked as pending"
    unindexed = Embedding.objects.filter(memory__is_indexed=False, memory__origin=Memory.Origin.REMOTE)
    if orphaned := unindexed.exclude(memory__memory_type=Memory.Type.EPISODE).count():  # others wait for the index
        yield f"{orphaned:,} vectors are of memories that no index holds"
    usable = Embedding.objects.exclude(vector=_NO_VECTOR).count()
    if (held := vector_pages.count()) not in {None, usable}:
        yield f"the pages hold {held:,} vectors instead of {usable:,}"
    for owner in owners:
        of_owner = Embedding.objects.filter(
            memory__user=owner.user_pk, memory__app_id=owner.app_id, memory__project_id=owner.project_id
        )
        texts = of_owner.values_list("digest", "memory__text").iterator()
        if wrong := sum(bytes(digest) != digest_of(text) for digest, text in texts):
            yield f"{wrong:,} vectors of {owner.user_id} are of other texts"
        if wrong := vector_pages.differing(owner):
            yield f"{wrong:,} vectors of {owner.user_id} are not in the pages as they are stored"


def digest_of(text: str) -> bytes:
    """Return the digest of the part of a text that is sent to a model."""
    return hashlib.blake2b(text[:MAX_CHARS].encode("utf-8", "replace"), digest_size=_DIGEST_BYTES).digest()


def _known(space: EmbeddingSpace, texts: Collection[bytes]) -> dict[bytes, _Computed]:
    """Return what is stored of texts, by digest."""
    stored = Embedding.objects.filter(space=space, digest__in=list(texts)).values_list("digest", "vector", "memory")
    known = {bytes(digest): (bytes(vector), memory) for digest, vector, memory in stored}
    if space.reduction is None:
        return {digest: _Computed(vector) for digest, (vector, _memory) in known.items()}
    of_tokens = TokenVectors.objects.filter(
        space=space, layout=TOKEN_LAYOUT, memory__in=[memory for _vector, memory in known.values()]
    )
    tokens = {memory: bytes(data) for memory, data in of_tokens.values_list("memory", "vectors")}
    return {digest: _Computed(vector, tokens[memory]) for digest, (vector, memory) in known.items() if memory in tokens}


def _compute(
    space: EmbeddingSpace, texts: dict[bytes, str], source: Embedder, seconds: float
) -> dict[bytes, _Computed]:
    """Return the model's vectors of texts, empty for a text that it refuses while it accepts others."""
    if not texts:
        return {}
    model, reduction = spaces.model_of(space), token_vectors.reduction_of(space)
    if reduction is not None and isinstance(source, LocalEmbedder):
        encoded = source.encode(model, list(texts.values()))
        knows_all = bool(space.knows_other_scripts)
        return {
            digest: _Computed(
                one.pooled.astype(HALF).tobytes(), token_vectors.codes(text, one, reduction, knows_all=knows_all)
            )
            for (digest, text), one in zip(texts.items(), encoded, strict=True)
        }
    try:
        vectors = source.embed(model, list(texts.values()), seconds)
    except EndpointError as error:
        if not error.is_refusal:
            raise
        if len(texts) > 1:
            found: dict[bytes, _Computed] = {}
            for digest, text in texts.items():
                found |= _compute(space, {digest: text}, source, seconds)
            return found
        source.embed(model, spaces.TEST_SENTENCES[:1], seconds)  # raises if the endpoint refuses any text
        logger.warning("The embedding endpoint refused a text. Searches find it by keyword only.")
        return dict.fromkeys(texts, _NOTHING)
    return {digest: _Computed(vector.astype(HALF).tobytes()) for digest, vector in zip(texts, vectors, strict=True)}


def _store(owner: Owner, space: EmbeddingSpace, pks: Sequence[int], found: dict[bytes, _Computed]) -> None:
    """Store the vectors of an owner's memories that still exist, have the same text and lack a vector."""
    with transaction.atomic():
        memories = Memory.objects.select_for_update().filter(owned_by(owner), pk__in=pks, is_indexed=True)
        rows = {memory.pk: digest_of(memory.text) for memory in memories.order_by("pk")}
        list(IndexStatistics.objects.select_for_update().filter(owned_by(owner)))
        present = set(Embedding.objects.filter(space=space, memory__in=rows).values_list("memory_id", flat=True))
        new = {pk: found[digest] for pk, digest in rows.items() if digest in found and pk not in present}
        Embedding.objects.bulk_create(
            Embedding(memory_id=pk, space=space, digest=rows[pk], vector=one.vector) for pk, one in new.items()
        )
        if space.reduction is not None:
            _store_tokens(space, {pk: found[digest].tokens for pk, digest in rows.items() if digest in found})
        usable = {pk: np.frombuffer(one.vector, HALF).astype(np.float32) for pk, one in new.items() if one.vector}
        if usable:
            vector_pages.add(owner, space.pk, list(usable), np.stack(list(usable.values())))
        if space.is_active:
            # Deleted, or not in the index now: indexing marks a memory as pending again.
            unindexed = set(pks).difference(rows)
            PendingEmbedding.objects.filter(pk__in=[*new, *present, *unindexed]).delete()


def _store_tokens(space: EmbeddingSpace, found: Mapping[int, bytes]) -> None:
    TokenVectors.objects.bulk_create(
        [TokenVectors(memory_id=pk, space=space, layout=TOKEN_LAYOUT, vectors=data) for pk, data in found.items()],
        update_conflicts=True,
        unique_fields=["memory", "space"],
        update_fields=["layout", "vectors"],
    )
