"""Split texts into the tokens of the keyword index, and queries into the tokens to look up.

A prefix marks the kind of a token:

- word stems (`contract`), numbers (`1234.5`), file names, addresses and versions, whole and in parts;
- characters and pairs of characters of scripts without spaces (`付`, `付款`);
- dates (`d:2026-05-01`, `md:05-01`, `m:2026-05`, `mo:05`, `y:2026`) and the month of the message (`said-m:2026-05`,
  `said-mo:05`), for queries about a month;
- emoji and currency signs (`🎉`, `$`);
- stop words (`w:the`) and signs (`s:->`, `c:>`), looked up only by queries without other tokens.
"""

import re
import threading
from collections.abc import Iterator
from datetime import date
from functools import lru_cache
from itertools import pairwise
from typing import Final

import snowballstemmer

from store.text import dates
from store.text.normalize import FLAG_LETTERS, PICTURE, SKIN_TONES, UNSPACED, WORD, characters, fold

_STOP_WORDS = """a am an and are as at be been being but by can could did do does doing for from had has have having he
her hers herself him himself his how i if in into is it its itself me my myself not of on or our ours ourselves she
should so than that the their theirs them themselves then there these they this those to us was we were what when where
which who whom whose why will with would you your yours yourself yourselves"""
STOP_WORDS: Final = frozenset(_STOP_WORDS.split())

_IRREGULAR: Final = {
    form: base
    for line in """arise arose arisen|awake awoke awoken|bear bore borne|beat beaten|become became|begin began begun|
    bend bent|bind bound|bite bit bitten|bleed bled|blow blew blown|break broke broken|breed bred|bring brought|
    build built|burn burnt|buy bought|catch caught|choose chose chosen|come came|creep crept|deal dealt|dig dug|
    draw drew drawn|dream dreamt|drink drank drunk|drive drove driven|eat ate eaten|fall fell fallen|feed fed|
    feel felt|fight fought|find found|fly flew flown|forbid forbade forbidden|forget forgot forgotten|
    forgive forgave forgiven|freeze froze frozen|get got gotten|give gave given|go went gone|grow grew grown|
    hang hung|hear heard|hide hid hidden|hold held|keep kept|kneel knelt|know knew known|lay laid|lead led|
    lean leant|learn learnt|leave left|lend lent|light lit|lose lost|make made|mean meant|meet met|pay paid|
    prove proven|ride rode ridden|ring rang rung|rise rose risen|run ran|say said|see saw seen|seek sought|sell sold|
    send sent|sew sewn|shake shook shaken|shine shone|shoot shot|show shown|shrink shrank shrunk|sing sang sung|
    sink sank sunk|sit sat|sleep slept|slide slid|speak spoke spoken|spend spent|spin spun|spring sprang sprung|
    stand stood|steal stole stolen|stick stuck|sting stung|strike struck|swear swore sworn|sweep swept|
    swim swam swum|swing swung|take took taken|teach taught|tear tore torn|tell told|think thought|
    throw threw thrown|understand understood|wake woke woken|wear wore worn|weave wove woven|weep wept|win won|
    withdraw withdrew withdrawn|write wrote written|child children|person people|man men|woman women|foot feet|
    tooth teeth|mouse mice|goose geese|wife wives|knife knives|life lives|leaf leaves|half halves|shelf shelves|
    wolf wolves|good better best|bad worse worst|analysis analyses|crisis crises|thesis theses|index indices|
    criterion criteria|phenomenon phenomena|2 two|3 three|4 four|5 five|6 six|7 seven|8 eight|9 nine|10 ten|
    11 eleven|12 twelve|1st first|2nd second|3rd third""".replace("\n", "").split("|")
    for base, *forms in [line.split()]
    for form in forms
}


def stem(word: str) -> str:
    """Return the stem of a folded word: irregular forms by table, then Snowball by its script."""
    word = _IRREGULAR.get(word, word)
    name = _stemmer_of(word[0])
    if name is None:
        return word
    with _lock:  # the stemmers are not thread-safe
        return str(_stemmers[name].stemWord(word))


def _stemmer_of(char: str) -> str | None:
    if char <= "z":
        return "english"
    if "\u0370" <= char <= "\u03ff":
        return "greek"
    if "\u0400" <= char <= "\u04ff":
        return "russian"
    if "\u0600" <= char <= "\u06ff":
        return "arabic"
    return "hindi" if "\u0900" <= char <= "\u097f" else None


_lock = threading.Lock()
_stemmers = {name: snowballstemmer.stemmer(name) for name in ("english", "greek", "russian", "arabic", "hindi")}


TOKENIZER_VERSION: Final = "4"
"""Increased with every change of the tokens: an index of another version must be rebuilt."""

MAX_TOKEN_CHARS: Final = 64
_MAX_SIGN_CHARS = 16
_STOP_PREFIXES = ("w:", "s:", "c:")
_DAY_PREFIXES = ("d:", "md:")

_SCAN = re.compile(
    rf"(?P<unspaced>[{UNSPACED}]+)"
    rf"|(?P<word>[{WORD}]+(?:(?:[._@'&-]|(?<=\d)[,:](?=\d))[{WORD}]+)*(?:\+\+|\#)?)"
    rf"|(?P<picture>[{FLAG_LETTERS}]{{2}}|[{PICTURE}][{SKIN_TONES}]?(?:\u200d[{PICTURE}][{SKIN_TONES}]?)*)"
    r"|(?P<signs>[^\w\s]|_)",
)
_SIGNS = re.compile(rf"[^\s{WORD}{UNSPACED}{PICTURE}\u200d]+")
_SEPARATORS = re.compile(r"[._@&:+#-]+")
_NUMBER = re.compile(r"\d+(?:,\d{3})*(?:\.\d+)?")
_YEAR = re.compile(r"(?:19|20)\d\d")
_ORDINAL = re.compile(r"(\d+)(?:st|nd|rd|th)")
_PIECES = re.compile(r"\d+|\D+")
_CLITICS = frozenset({"s", "d", "m", "t", "ll", "re", "ve"})
# Stop words of Chinese queries: single characters and pairs.
_CHINESE_STOP_WORDS = (
    "的 了 是 在 我 你 您 他 她 它 们 和 与 吗 呢 吧 啊 哪 谁 么 "
    "什么 怎么 哪些 哪个 哪里 多少 几个 如何 为何 请问 是否 是谁"
)
_CHINESE_STOP = frozenset(_CHINESE_STOP_WORDS.split())


def tokenize(text: str) -> list[str]:
    """Return all tokens of a text with repetitions; stop words and signs once, at the end."""
    text = fold(text)
    found, _ = dates.extract(text)
    stop_tokens: dict[str, None] = {}
    for token in _scan(text):
        if token.startswith(_STOP_PREFIXES):
            stop_tokens[token] = None
        else:
            found.append(token)
    return found + list(stop_tokens)


def query_tokens(text: str) -> list[str]:
    """Return the distinct tokens to look up, in the order of the query; stop words only if there are no others."""
    text = fold(text)
    found, rest = dates.extract(text)
    if not any(token.startswith(_DAY_PREFIXES) for token in found):
        found += _message_month_tokens(found)
    found += _scan(rest, pairs_only=True)
    words = [token for token in found if not token.startswith(_STOP_PREFIXES) and token not in _CHINESE_STOP]
    return list(dict.fromkeys(words or found))


def required_tokens(text: str) -> tuple[str, ...]:
    """Return the tokens that a memory must all hold to contain a text: those of its words, not of a message's time."""
    return tuple(token for token in query_tokens(text) if not token.startswith("said-"))


def day_tokens(day: date) -> list[str]:
    """Return the tokens for a message of that day: the day, and its month for queries about a month."""
    date_tokens = dates.tokens_of(day.year, day.month, day.day)
    return [token for token in date_tokens if token.startswith(_DAY_PREFIXES)] + _message_month_tokens(date_tokens)


def without_stop_words(tokens: list[str]) -> list[str]:
    """Return the tokens without stop words and signs."""
    return [token for token in tokens if not token.startswith(_STOP_PREFIXES)]


def weight(tokens: list[str]) -> int:
    """Return the length of a text for ranking: the number of its tokens without stop words."""
    return len(without_stop_words(tokens))


def _message_month_tokens(date_tokens: list[str]) -> list[str]:
    return [f"said-{token}" for token in date_tokens if token.startswith(("m:", "mo:"))]


def _scan(text: str, *, pairs_only: bool = False) -> list[str]:
    found: list[str] = []
    for match in _SCAN.finditer(text):
        kind, run = match.lastgroup, match[0]
        if kind == "word":
            found += _cached_compound(run) if len(run) <= MAX_TOKEN_CHARS else _compound(run)
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
def _cached_compound(run: str) -> tuple[str, ...]:
    """Return `_compound(run)`, cached because stemming is the slowest step."""
    return tuple(_compound(run))


def _compound(run: str) -> Iterator[str]:
    """Yield the tokens of `contract.pdf`, `o'brien`, `c++`, `10:30` or `1,234.50`: the whole, and its parts."""
    if _NUMBER.fullmatch(run):
        yield _number(run)
        return
    parts = [part for part in _SEPARATORS.split(run) if part]
    if len(parts) > 1 or parts[0] != run:
        yield run[:MAX_TOKEN_CHARS]
    if run.endswith(("+", "#")):
        return
    for part in parts:
        yield from _contraction(part)


def _contraction(part: str) -> Iterator[str]:
    """Yield the tokens around apostrophes: `caroline's` is caroline, `don't` a stop word, `o'brien` o and brien."""
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
