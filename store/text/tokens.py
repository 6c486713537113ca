"""Text to the tokens that the keyword index holds, and questions to the tokens that are looked up in it.

Kinds of token, told apart by a prefix that no word has:

- words as stems (`contract`), numbers (`1234.5`), names of files, addresses and versions in whole and in parts
  (`contract.pdf`, `contract`, `pdf`);
- characters and pairs of characters of scripts without spaces (`付`, `付款`);
- dates and years in typed forms (`d:2026-05-01`, `md:05-01`, `m:2026-05`, `mo:05`, `y:2026`), and the month in which
  something was said (`said-m:2026-05`, `said-mo:05`), which only a question for a month looks up;
- emoji and currency signs (`🎉`, `$`);
- what says little and is looked up only when a question holds nothing else: stop words (`w:the`) and signs, as they
  stand together (`s:->`) and each (`c:>`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date
from functools import lru_cache
from itertools import pairwise
from typing import Final

from store.text import dates
from store.text.normalize import FLAG_LETTERS, PICTURE, SKIN_TONES, UNSPACED, WORD, characters, fold
from store.text.stems import STOP_WORDS, stem

TOKENIZER_VERSION: Final = "2"
"""Changes with every change of the tokens: an index made by another version has to be rebuilt."""

MAX_TOKEN_CHARS: Final = 64
_MAX_SIGN_CHARS = 16
_LITTLE = ("w:", "s:", "c:")
_OF_A_DAY = ("d:", "md:")

_SCAN = re.compile(
    rf"(?P<unspaced>[{UNSPACED}]+)"
    rf"|(?P<word>[{WORD}]+(?:(?:[._@'&-]|(?<=\d)[,:](?=\d))[{WORD}]+)*(?:\+\+|\#)?)"
    rf"|(?P<picture>[{FLAG_LETTERS}]{{2}}|[{PICTURE}][{SKIN_TONES}]?(?:\u200d[{PICTURE}][{SKIN_TONES}]?)*)"
    r"|(?P<signs>[^\w\s]|_)",
)
_SIGNS = re.compile(rf"[^\s{WORD}{UNSPACED}{PICTURE}\u200d]+")
_JOINTS = re.compile(r"[._@&:+#-]+")
_NUMBER = re.compile(r"\d+(?:,\d{3})*(?:\.\d+)?")
_YEAR = re.compile(r"(?:19|20)\d\d")
_ORDINAL = re.compile(r"(\d+)(?:st|nd|rd|th)")
_PIECES = re.compile(r"\d+|\D+")
_CLITICS = frozenset({"s", "d", "m", "t", "ll", "re", "ve"})
# Characters and pairs that carry a Chinese question, not what it asks for.
_CHINESE_STOP_WORDS = (
    "的 了 是 在 我 你 您 他 她 它 们 和 与 吗 呢 吧 啊 哪 谁 么 "
    "什么 怎么 哪些 哪个 哪里 多少 几个 如何 为何 请问 是否 是谁"
)
_CHINESE_STOP = frozenset(_CHINESE_STOP_WORDS.split())


def tokenize(text: str) -> list[str]:
    """All tokens of a text, repeated as often as they stand in it; those that say little come once, at the end."""
    text = fold(text)
    found, _ = dates.extract(text)
    little: dict[str, None] = {}
    for token in _scan(text):
        if token.startswith(_LITTLE):
            little[token] = None
        else:
            found.append(token)
    return found + list(little)


def query_tokens(text: str) -> list[str]:
    """The distinct tokens to look up, in the question's order: those that say little only if there are no others."""
    text = fold(text)
    found, rest = dates.extract(text)
    found += _said_in(found)
    found += _scan(rest, pairs_only=True)
    telling = [token for token in found if not token.startswith(_LITTLE) and token not in _CHINESE_STOP]
    return list(dict.fromkeys(telling or found))


def day_tokens(day: date) -> list[str]:
    """What something is found by for having been said on a day: that day, and its month for who asks for a month."""
    typed = dates.tokens_of(day)
    return [token for token in typed if token.startswith(_OF_A_DAY)] + _months(typed)


def telling(tokens: list[str]) -> list[str]:
    """Without those that say little."""
    return [token for token in tokens if not token.startswith(_LITTLE)]


def weight(tokens: list[str]) -> int:
    """How long a text is for ranking: the number of tokens that tell something."""
    return len(telling(tokens))


def _said_in(typed: list[str]) -> list[str]:
    return [] if any(token.startswith(_OF_A_DAY) for token in typed) else _months(typed)


def _months(typed: list[str]) -> list[str]:
    return [f"said-{token}" for token in typed if token.startswith(("m:", "mo:"))]


def _scan(text: str, *, pairs_only: bool = False) -> list[str]:
    found: list[str] = []
    for match in _SCAN.finditer(text):
        kind, run = match.lastgroup, match[0]
        if kind == "word":
            found += _remembered(run) if len(run) <= MAX_TOKEN_CHARS else _compound(run)
        elif kind == "unspaced":
            found += _unspaced(run, pairs_only=pairs_only)
        elif kind == "picture":
            found += _picture(run)
    for match in _SIGNS.finditer(text):
        found += _signs(match[0])
    return found


def _unspaced(run: str, *, pairs_only: bool) -> Iterator[str]:
    chars = [char[: MAX_TOKEN_CHARS // 2] for char in characters(run)]
    if len(chars) == 1 or not pairs_only:
        yield from chars
    for first, second in pairwise(chars):
        yield first + second


@lru_cache(maxsize=65_536)
def _remembered(run: str) -> tuple[str, ...]:
    """`_compound` of a run that may well come again: stemming takes longest of all."""
    return tuple(_compound(run))


def _compound(run: str) -> Iterator[str]:
    """`contract.pdf`, `o'brien`, `c++`, `10:30`, `1,234.50`: the whole where it means something, and its parts."""
    if _NUMBER.fullmatch(run):
        yield _number(run)
        return
    parts = [part for part in _JOINTS.split(run) if part]
    if len(parts) > 1 or parts[0] != run:
        yield run[:MAX_TOKEN_CHARS]
    if run.endswith(("+", "#")):
        return
    for part in parts:
        yield from _contraction(part)


def _contraction(part: str) -> Iterator[str]:
    """`caroline's` is caroline, `don't` says little, `o'brien` is o and brien."""
    head, *tails = part.split("'")
    if tails == ["t"] and head.endswith("n"):
        yield f"w:{part}"
        return
    yield from _word(head)
    for tail in tails:
        if tail not in _CLITICS:
            yield from _word(tail)


def _word(word: str) -> Iterator[str]:
    if word in STOP_WORDS:
        yield f"w:{word}"
    elif word.isdecimal():
        yield _number(word)
    elif ordinal := _ORDINAL.fullmatch(word):
        yield _number(ordinal[1])
    elif word.isalpha():
        yield stem(word)[:MAX_TOKEN_CHARS]
    else:
        yield word[:MAX_TOKEN_CHARS]
        pieces = _PIECES.findall(word)
        if len(pieces) > 1:
            for piece in pieces:
                yield _number(piece) if piece.isdecimal() else stem(piece)[:MAX_TOKEN_CHARS]


def _number(written: str) -> str:
    if _YEAR.fullmatch(written):
        return f"y:{written}"
    written = written.replace(",", "")
    if "." in written:
        written = written.rstrip("0").rstrip(".")
    return written[:MAX_TOKEN_CHARS]


def _picture(cluster: str) -> Iterator[str]:
    yield cluster[:MAX_TOKEN_CHARS]
    if len(cluster) > 1:
        for char in cluster:
            if char != "\u200d" and not "\U0001f3fb" <= char <= "\U0001f3ff":
                yield char


def _signs(run: str) -> Iterator[str]:
    yield f"s:{run[:_MAX_SIGN_CHARS]}"
    for char in dict.fromkeys(run):
        yield f"c:{char}"
