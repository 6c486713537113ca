"""Embedding spaces: the active one, its test, and the memories without a vector in it.

The test detects models that do not support other scripts: an English one returns meaningless vectors for Chinese text.
"""

import re
from collections.abc import Collection
from datetime import datetime
from typing import Final, NamedTuple

import numpy as np
from django.db import connection, transaction
from django.db.backends.utils import CursorWrapper

from core.persistence.sql import rows, slots
from store.models import EmbeddingSpace
from store.text.normalize import UNSPACED
from store.vectors import token_vectors
from store.vectors.client import Embedder, LocalEmbedder, Model, Vectors
from store.vectors.layout import TOKEN_LAYOUT

_FOREIGN_SHARE: Final = 0.3
_UNSPACED: Final = re.compile(f"[{UNSPACED}]")
_LAST_LATIN: Final = "\u024f"
_PARAPHRASE_PAIRS: Final = (
    ("孩子发烧了", "小宝宝体温很高"),
    ("他没钱付房租", "口袋空空，交不起住处的费用"),
    ("天气很冷", "外面气温极低"),
    ("我喜欢喝咖啡", "拿铁是最爱的饮料"),
    ("妈妈在厨房做饭", "母亲正准备晚餐"),
    ("公司裁员了", "企业解雇许多职工"),
    ("电脑坏了", "计算机出故障"),
    ("考试没及格", "测验分数太低"),
    ("我们赢了比赛", "球队获得胜利"),
    ("明天坐飞机去北京", "航班次日抵达首都"),
)
_MIN_MATCHES: Final = 8
TEST_SENTENCES: Final = [text for pair in _PARAPHRASE_PAIRS for text in pair]
"""The sentences of the test."""


def is_foreign(text: str) -> bool:
    """Return True if over 30 % of the letters are not Latin; one of an unspaced script counts twice."""
    if text.isascii():
        return False
    letters = [char for char in text if char.isalpha()]
    others = [char for char in letters if char > _LAST_LATIN]
    weight = len(others) + sum(map(len, _UNSPACED.findall("".join(others))))
    return weight > _FOREIGN_SHARE * (len(letters) - len(others) + weight)


def _passes(vectors: Vectors) -> bool:
    """Return True if these vectors of `TEST_SENTENCES` match enough Chinese sentences to their paraphrases."""
    matches = np.argmax(vectors[0::2] @ vectors[1::2].T, axis=1)
    return int((matches == np.arange(len(_PARAPHRASE_PAIRS))).sum()) >= _MIN_MATCHES


_BATCH_ROWS: Final = 500
_SERVING: Final = """
    SELECT id, model, dimensions, sends_dimensions, COALESCE(knows_other_scripts, FALSE)
    FROM store_embeddingspace WHERE is_active
"""
IS_SERVING: Final = """
    is_active AND id = %s AND model = %s AND dimensions = %s AND sends_dimensions = %s
    AND COALESCE(knows_other_scripts, FALSE) = %s
"""
"""SQL with the values of a `Serving`: the condition that it is still the active row of `store_embeddingspace`."""
_MISSING: Final = f"""
    SELECT m.id FROM store_memory m CROSS JOIN store_embeddingspace s
    WHERE s.is_active AND {{which}} AND (
        NOT EXISTS (SELECT 1 FROM store_embedding e WHERE e.memory_id = m.id AND e.space_id = s.id)
        OR s.reduction IS NOT NULL AND NOT EXISTS (
            SELECT 1 FROM store_tokenvectors t
            WHERE t.memory_id = m.id AND t.space_id = s.id AND t.layout = {TOKEN_LAYOUT}
        )
    )
"""
_MARK_PENDING: Final = f"INSERT INTO store_pendingembedding (memory_id) {_MISSING} ON CONFLICT DO NOTHING"
_NOT_PENDING: Final = "NOT EXISTS (SELECT 1 FROM store_pendingembedding o WHERE o.memory_id = m.id)"


class Serving(NamedTuple):
    """The fields of the active space that a search depends on, read by plain SQL because searches wait for them."""

    pk: int
    model: str
    dimensions: int
    sends_dimensions: bool
    knows_other_scripts: bool


_last_serving: Serving | None = None


def serving() -> Serving | None:
    """Return the space that searches use. One SQL statement."""
    global _last_serving  # noqa: PLW0603
    _last_serving = next((Serving(*row) for row in rows(_SERVING, ())), None)
    return _last_serving


def last_serving() -> Serving | None:
    """Return the space that this process read last; another process may have changed it since."""
    return _last_serving


def active() -> EmbeddingSpace | None:
    """Return the active space's row."""
    return EmbeddingSpace.objects.filter(is_active=True).first()


def model_of(space: EmbeddingSpace | Serving) -> Model:
    return Model(space.model, space.dimensions, bool(space.sends_dimensions))


def is_for(space: EmbeddingSpace, wanted: Model) -> bool:
    """Return True if a space is one of the configured model and dimensions."""
    return space.model == wanted.name and wanted.dimensions in {0, space.dimensions}


def get_or_create(wanted: Model) -> EmbeddingSpace:
    """Return the active space. If there is none, create it and mark every memory as pending."""
    space = active()
    if space is not None:
        return space
    with transaction.atomic():
        space, _ = EmbeddingSpace.objects.get_or_create(is_active=True, defaults=fields_of(wanted))
        mark_all_pending()
    return space


def fields_of(wanted: Model) -> dict[str, object]:
    return {
        "model": wanted.name,
        "dimensions": wanted.dimensions,
        "sends_dimensions": wanted.sends_dimensions,
    }


def probe(space: EmbeddingSpace, client: Embedder, seconds: float) -> None:
    """Test the model once: store its number of dimensions and if it supports other scripts. Raises: `EndpointError`.

    If hybrid searches compare tokens, the reduction of their vectors is stored too. If several processes test it at
    once, the first result counts.
    """
    if space.reduction is None and isinstance(client, LocalEmbedder) and client.model.settings.token_vectors:
        reduction = token_vectors.fit(client.encode(model_of(space), token_vectors.samples()))
        EmbeddingSpace.objects.filter(pk=space.pk, reduction=None).update(reduction=reduction)
        space.refresh_from_db()
    if space.knows_other_scripts is not None:
        return
    vectors = client.embed(model_of(space), TEST_SENTENCES, seconds)
    untested = EmbeddingSpace.objects.filter(pk=space.pk, knows_other_scripts=None)
    untested.update(dimensions=vectors.shape[1], knows_other_scripts=_passes(vectors))
    space.refresh_from_db()


def note(space: EmbeddingSpace, error: str, now: datetime | None) -> None:
    """Store an error for `/health`, or an empty one when the endpoint works again."""
    if space.last_error != error:
        space.last_error, space.failed_at = error, now
        space.save(update_fields=["last_error", "failed_at"])


def mark_pending(cursor: CursorWrapper, pks: Collection[int]) -> None:
    """Mark memories (by row id) as pending in the active space, if there is one."""
    wanted = list(pks)
    for start in range(0, len(wanted), _BATCH_ROWS):
        batch = wanted[start : start + _BATCH_ROWS]
        cursor.execute(_MARK_PENDING.format(which=f"m.id IN ({slots(batch)})"), batch)


def mark_all_pending() -> None:
    """Mark all memories without a vector as pending."""
    with connection.cursor() as cursor:
        cursor.execute(_MARK_PENDING.format(which="m.is_indexed"))


def has_unmarked() -> bool:
    """Return True if a memory without a vector in the active space is not marked as pending."""
    with connection.cursor() as cursor:
        cursor.execute(_MISSING.format(which=f"m.is_indexed AND {_NOT_PENDING}") + " LIMIT 1")
        return cursor.fetchone() is not None
