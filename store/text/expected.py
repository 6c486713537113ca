"""Words that an answer to a question is likely to have: an answer to "When did …?" names a time.

`store.search.ranking` gives them a fraction of the weight of the question's own words.
"""

import re
from functools import cache
from typing import Final

from core.patterns import lazy_pattern
from store.text.tokens import query_tokens

_WHEN: Final = (
    (
        lazy_pattern(r"\s*(?:when|since when|how long|(?:what|which) (?:day|date|month|year|time))\b", re.IGNORECASE),
        """yesterday today tonight tomorrow week weekend month year ago last next recently summer
        monday tuesday wednesday thursday friday saturday sunday""",
    ),
    (
        lazy_pattern(r"\s*(?:wann|seit wann|wie lange)\b", re.IGNORECASE),
        """gestern heute morgen woche wochenende monat jahr letzte nächste
        montag dienstag mittwoch donnerstag freitag samstag sonntag""",
    ),
    (
        lazy_pattern("[\u3400-\u9fff]*?(?:什么时候|何时|几[号点月]|哪[天年]|多久)"),
        "昨天 今天 明天 上周 下周 本周 周末 上月 下月 去年 今年 明年 星期",
    ),
)
"""Questions for a time, and the words of their answers, by language."""


def expected_tokens(query: str) -> tuple[str, ...]:
    """Return the tokens of words that an answer to a question is likely to have; most questions have none."""
    return next((_tokens_of(words) for question, words in _WHEN if question.match(query)), ())


@cache
def _tokens_of(words: str) -> tuple[str, ...]:
    return tuple(query_tokens(words))
