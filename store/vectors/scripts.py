"""Which texts a model may be asked about: one that learned English alone gives noise for Chinese, which must not rank.

Whether a model knows more than the Latin script is tried once: of Chinese sentences it has to find those that say the
same in other characters. Who only compares characters cannot.
"""

from __future__ import annotations

import re
from typing import Final

import numpy as np

from store.text.normalize import UNSPACED
from store.vectors.client import Vectors

_FOREIGN_SHARE: Final = 0.3
_UNSPACED: Final = re.compile(f"[{UNSPACED}]")
_LAST_LATIN: Final = "\u024f"
_SAYING_THE_SAME: Final = (
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
_FOUND_AT_LEAST: Final = 8
TRIAL: Final = [text for pair in _SAYING_THE_SAME for text in pair]
"""The texts whose vectors `passes` judges."""


def is_foreign(text: str) -> bool:
    """Whether a good part of a text is not in the Latin script; a character that is a word of its own counts twice."""
    if text.isascii():
        return False
    letters = [char for char in text if char.isalpha()]
    others = [char for char in letters if char > _LAST_LATIN]
    weight = len(others) + sum(map(len, _UNSPACED.findall("".join(others))))
    return weight > _FOREIGN_SHARE * (len(letters) - len(others) + weight)


def passes(vectors: Vectors) -> bool:
    """Whether the model whose vectors of `TRIAL` these are knows what Chinese sentences say."""
    found = np.argmax(vectors[0::2] @ vectors[1::2].T, axis=1)
    return int((found == np.arange(len(_SAYING_THE_SAME))).sum()) >= _FOUND_AT_LEAST
