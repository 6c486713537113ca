"""Split texts into the tokens of the keyword index, and queries into the tokens to look up.

A prefix marks the kind of a token:

- word stems (`contract`), numbers (`1234.5`), file names, addresses and versions, whole and in parts;
- characters and pairs of characters of scripts without spaces (`付`, `付款`);
- dates (`d:2026-05-01`, `md:05-01`, `m:2026-05`, `mo:05`, `y:2026`) and the month of the message (`said-m:2026-05`,
  `said-mo:05`), for queries about a month;
- emoji and currency signs (`🎉`, `$`);
- stop words (`w:the`) and signs (`s:->`, `c:>`), looked up only by queries without other tokens.
"""

import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import date
from functools import cache, lru_cache, partial
from itertools import pairwise
from typing import Final, NamedTuple

from core.patterns import lazy_pattern
from store.text import dates, languages, stems
from store.text.normalize import FLAG_LETTERS, PICTURE, SKIN_TONES, UNSPACED, WORD, characters, fold

_STOP_WORDS = """a am an and are as at be been being but by can could did do does doing for from had has have having he
her hers herself him himself his how i if in into is it its itself me my myself not of on or our ours ourselves she
should so than that the their theirs them themselves then there these they this those to us was we were what when where
which who whom whose why will with would you your yours yourself yourselves"""
STOP_WORDS: Final = frozenset(_STOP_WORDS.split())

TOKENIZER_VERSION: Final = "7"
"""Increased with every change of the tokens: an index of another version must be rebuilt."""

MAX_TOKEN_CHARS: Final = 64
_MAX_SIGN_CHARS = 16
_LANGUAGE_CHARS = 400  # of a text, tell its language
_STOP_PREFIXES = ("w:", "s:", "c:")
_DAY_PREFIXES = ("d:", "md:")

_SCAN = lazy_pattern(
    rf"(?P<unspaced>[{UNSPACED}]+)"
    rf"|(?P<word>[{WORD}]+(?:(?:[._@'&-]|(?<=\d)[,:](?=\d))[{WORD}]+)*(?:\+\+|\#)?)"
    rf"|(?P<picture>[{FLAG_LETTERS}]{{2}}|[{PICTURE}][{SKIN_TONES}]?(?:\u200d[{PICTURE}][{SKIN_TONES}]?)*)"
    r"|(?P<signs>[^\w\s]|_)",
)
_SIGNS = lazy_pattern(rf"[^\s{WORD}{UNSPACED}{PICTURE}\u200d]+")
_SEPARATORS = lazy_pattern(r"[._@&:+#-]+")
_NUMBER = lazy_pattern(r"\d+(?:,\d{3})*(?:\.\d+)?")
_YEAR = lazy_pattern(r"(?:19|20)\d\d")
_ORDINAL = lazy_pattern(r"(\d+)(?:st|nd|rd|th)")
_VERSION = lazy_pattern(r"[a-z]{0,16}(\d{1,4}(?:\.\d{1,4}){1,2})")
_JOINABLE = lazy_pattern(
    r"(?=.{3,24}$)[a-z]+(?:[-_'][a-z0-9]+){1,2}|(?=.{3,24}$)[a-z0-9]+\.(?:js|ts|io|ai|net)|[a-z]{1,2}(?:\.[a-z]){1,4}"
)
_UNSPACED = lazy_pattern(f"[{UNSPACED}]")
_CAMEL = lazy_pattern(r"(?<![A-Za-z0-9_])[A-Za-z]+(?:[a-z0-9][A-Z]|[A-Z]{2}[a-z])[A-Za-z0-9]*")
_INNER_CAPITAL = lazy_pattern(r"[A-Z](?:(?<=[a-z0-9][A-Z])|(?<=[A-Z][A-Z])(?=[a-z]))")
_CAMEL_PARTS = lazy_pattern(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]{2,}")
_ACRONYM = lazy_pattern(r"\b(?:US|IT|WHO)(?:A\b|\b(?!['\u2019]))|\bU\.S\.(?:A\.)?")
_ACCENTED_WORD = lazy_pattern(
    "(?<![a-z\u00c0-\u024f\u1e00-\u1eff])"  # else each letter of a long word begins a search
    "[a-z\u00c0-\u024f\u1e00-\u1eff]*[\u00e0-\u024f\u1e00-\u1eff][a-z\u00c0-\u024f\u1e00-\u1eff]*"
)
_UMLAUTS = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue"})
_WRITTEN_ORDINALS = "first second third fourth fifth sixth seventh eighth ninth tenth"
_ORDINALS = {str(number): written for number, written in enumerate(_WRITTEN_ORDINALS.split(), start=1)}
_PIECES = lazy_pattern(r"\d+|\D+")
_CLITICS = frozenset({"s", "d", "m", "t", "ll", "re", "ve"})
# Stop words of Chinese queries: single characters and pairs.
_CHINESE_STOP_WORDS = (
    "的 了 是 在 我 你 您 他 她 它 们 和 与 吗 呢 吧 啊 哪 谁 么 "
    "什么 怎么 哪些 哪个 哪里 多少 几个 如何 为何 请问 是否 是谁"
)
_CHINESE_STOP = frozenset(_CHINESE_STOP_WORDS.split())


class Word(NamedTuple):
    """The tokens of a word, those of them that are stop words or signs, and tokens of its other readings.

    `stands_for` are the tokens that the other readings stand for.
    """

    tokens: tuple[str, ...]
    stop_words: tuple[str, ...] = ()
    readings: tuple[str, ...] = ()
    stands_for: tuple[str, ...] = ()


class Tokens(NamedTuple):
    """The tokens of a text with repetitions, those of other readings of its words, and its stop words and signs once.

    Other readings are stems of other languages (`^katz`) and of other words with this form ("lives": `life`, `live`),
    spellings with accents, and words joined (`email`) or in parts (`camel`). They do not make a text longer.
    """

    words: list[str]
    readings: list[str]
    stop_words: list[str]
    language: str


def read(text: str, language: str | None = None) -> Tokens:
    """Return the tokens of a text, in its own language by default."""
    folded = fold(text)
    language = _language(folded) if language is None else language
    found, _ = dates.extract(folded)
    readings: list[str] = []
    stop_words: list[str] = []
    for tokens, stops, others, _ in _scan(folded, language):
        found += tokens
        stop_words += stops
        readings += others
    readings += _of_case(text)
    if not text.isascii():
        readings += [reading for reading, _ in _accented(text)]
    return Tokens(found, readings, list(dict.fromkeys(stop_words)), language)


def tokenize(text: str) -> list[str]:
    """Return all tokens of a text with repetitions; stop words and signs once, at the end."""
    found = read(text)
    return [*found.words, *found.readings, *found.stop_words]


def query_tokens(text: str) -> list[str]:
    """Return the distinct tokens to look up, in the order of the query; stop words only if there are no others."""
    folded = fold(text)
    found, rest = dates.extract(folded)
    if not any(token.startswith(_DAY_PREFIXES) for token in found):
        found += _message_month_tokens(found)
    language = _language(rest)
    stop_words = () if language in {languages.ENGLISH, languages.UNKNOWN} else languages.STOP_WORDS_OF[language]
    written = list(_scan(rest, language, pairs_only=True))
    found += [token for word in written for token in word.tokens]
    found += _of_case(text, is_query=True)
    words = [token for token in found if token not in _CHINESE_STOP and token not in stop_words]
    return list(dict.fromkeys(words or [*found, *(token for word in written for token in word.stop_words)]))


def query_readings(text: str) -> dict[str, str]:
    """Return the tokens of other readings of a query's words, each with the one of `query_tokens` that it stands for.

    A memory that has several readings of one word has that word, not several words.
    """
    folded = fold(text)
    _, rest = dates.extract(folded)
    words = _scan(rest, _language(rest), pairs_only=True)
    found = [pair for word in words for pair in zip(word.readings, word.stands_for, strict=True)]
    if not text.isascii():
        found += _accented(text)
    return dict(found)


def required_tokens(text: str) -> tuple[str, ...]:
    """Return the tokens that a memory must all hold to contain a text: those of its words, not of a message's time."""
    return tuple(token for token in query_tokens(text) if not token.startswith("said-"))


def day_tokens(day: date) -> list[str]:
    """Return the tokens for a message of that day: the day, and its month for queries about a month."""
    date_tokens = dates.tokens_of(day.year, day.month, day.day)
    return [token for token in date_tokens if token.startswith(_DAY_PREFIXES)] + _message_month_tokens(date_tokens)


def without_stop_words(tokens: Iterable[str]) -> list[str]:
    """Return the tokens without stop words and signs."""
    return [token for token in tokens if not token.startswith(_STOP_PREFIXES)]


def _message_month_tokens(date_tokens: list[str]) -> list[str]:
    return [f"said-{token}" for token in date_tokens if token.startswith(("m:", "mo:"))]


def _language(folded: str) -> str:
    """Return the language of a folded text. Long texts without stop words are lists, code or other scripts."""
    if not folded.isascii() and _UNSPACED.search(folded):
        return languages.ENGLISH
    words = languages.first_words(folded[:_LANGUAGE_CHARS])
    found = languages.guess(words)
    return found if found or len(words) <= languages.MAX_UNKNOWN_WORDS else languages.ENGLISH


def _scan(text: str, language: str, *, pairs_only: bool = False) -> list[Word]:
    cached = _cached_words(language)
    found: list[Word] = []
    for match in _SCAN.finditer(text):
        kind, run = match.lastgroup, match[0]
        if kind == "word":
            found.append(cached(run) if len(run) <= MAX_TOKEN_CHARS else _word_of(run, language))
        elif kind == "unspaced":
            found.append(Word(tuple(_unspaced(run, pairs_only=pairs_only))))
        elif kind == "picture":
            found.append(Word(tuple(_picture(run))))
    found += [_signs(match[0]) for match in _SIGNS.finditer(text)]
    return found


def _unspaced(run: str, *, pairs_only: bool) -> Iterator[str]:
    chars = [char[: MAX_TOKEN_CHARS // 2] for char in characters(run)]
    if len(chars) == 1 or not pairs_only:
        yield from chars
    for first, second in pairwise(chars):
        yield first + second


@cache
def _cached_words(language: str) -> Callable[[str], Word]:
    """Return `_word_of` of a language, cached because stemming is the slowest step."""
    return lru_cache(maxsize=65_536)(partial(_word_of, language=language))


def _word_of(run: str, language: str) -> Word:
    """Return the tokens of `contract.pdf`, `o'brien`, `c++`, `10:30` or `1,234.50`: the whole, and its parts."""
    readings: dict[str, str] = {}
    found = tuple(_compound(run, language, readings))
    tokens = tuple(token for token in found if not token.startswith(_STOP_PREFIXES))
    others = {reading: token for reading, token in readings.items() if reading not in tokens}
    return Word(tokens, tuple(token for token in found if token not in tokens), tuple(others), tuple(others.values()))


def _compound(run: str, language: str, readings: dict[str, str]) -> Iterator[str]:
    if _NUMBER.fullmatch(run):
        number = _number(run)
        yield number
        if "." in run and "," not in run and number != run:
            readings[run] = number  # 2.10 may be a version
        elif _YEAR.fullmatch(number):
            readings[f"y:{number}"] = number  # 2,000 is no year, but 2000 may be this number
        return
    parts = [part for part in _SEPARATORS.split(run) if part]
    whole = run[:MAX_TOKEN_CHARS]
    if len(parts) > 1 or parts[0] != run:
        yield whole
        readings |= dict.fromkeys(_joined(run, parts), whole)
    if run.endswith(("+", "#")):
        return
    for part in parts:
        yield from _contraction(part, language, readings)


def _joined(run: str, parts: Sequence[str]) -> Iterator[str]:
    """Yield `email` for `e-mail`, `nodejs` for `node.js`, `2.10` and `2.10.3` for `v2.10.3`, `21` for `twenty-one`."""
    if version := _VERSION.fullmatch(run):
        numbers = version[1].split(".")
        yield from (".".join(numbers[:count]) for count in range(2, len(numbers) + 1))
    elif all(part in stems.NUMBERS or part == "one" for part in parts):
        if len(parts) == 2 and 0 < (ones := int(stems.NUMBERS.get(parts[1], "1"))) < 10:
            yield str(int(stems.NUMBERS.get(parts[0], "0")) + ones)
    elif _JOINABLE.fullmatch(run):
        yield from stems.stems("".join(parts))


def _contraction(part: str, language: str, readings: dict[str, str]) -> Iterator[str]:
    """Yield the tokens around apostrophes: `caroline's` is caroline, `don't` a stop word, `o'brien` o and brien."""
    head, *tails = part.split("'")
    if tails == ["t"] and head.endswith("n"):
        yield f"w:{part}"
        return
    yield from _word(head, language, readings)
    for tail in tails:
        if tail not in _CLITICS:
            yield from _word(tail, language, readings)
            if tail.isalpha():
                readings[stems.stems(f"{head}{tail}")[0]] = stems.stems(tail)[0]


def _word(word: str, language: str, readings: dict[str, str]) -> Iterator[str]:
    if word in STOP_WORDS:
        yield f"w:{word}"
    elif word.isdecimal():
        yield _number(word)
    elif ordinal := _ORDINAL.fullmatch(word):
        number = _number(ordinal[1])
        yield number
        if written := _ORDINALS.get(number):
            readings[written] = number
    elif word.isalpha():
        yield from _stems(word, language, readings)
    else:
        yield word[:MAX_TOKEN_CHARS]
        pieces = _PIECES.findall(word)
        if len(pieces) > 1:
            for piece in pieces:
                yield _number(piece) if piece.isdecimal() else stems.stems(piece)[0][:MAX_TOKEN_CHARS]


def _stems(word: str, language: str, readings: dict[str, str]) -> Iterator[str]:
    """Yield the stem of a word; other readings of the word are added to `readings`."""
    stem, *others = (one[:MAX_TOKEN_CHARS] for one in stems.stems(word))
    yield stem
    if stem in STOP_WORDS:
        yield f"w:{stem}"  # "cans", "wills"
    if word.isascii() and language != languages.ENGLISH and word not in languages.STOP_WORDS_OF.get(language, ()):
        others += [one[:MAX_TOKEN_CHARS] for one in languages.foreign_stems(word, language)]
    for other in others:
        readings.setdefault(other, stem)


def _of_case(text: str, *, is_query: bool = False) -> list[str]:
    """Return what only capital letters tell: the parts of `camelCaseName` and `HTTPServerError`, and US, IT and WHO.

    Of a query only the parts of `getName`, `HTTPServer` and names with three or more: "PayPal" does not ask for "pay".
    """
    found = []
    for match in _CAMEL.finditer(text) if _INNER_CAPITAL.search(text) else ():
        parts = _CAMEL_PARTS.findall(match[0])
        is_name = match[0][0].isupper() and match[0][1].islower()
        if len(parts) > (2 if is_query and is_name else 1):
            found += [stem for part in parts if (stem := stems.stems(part.lower())[0]) not in STOP_WORDS]
    if ("US" in text or "IT" in text or "WHO" in text or "U.S" in text) and (
        not text.isupper() or len(text.split()) == 1
    ):
        found += [match[0].replace(".", "").lower()[:2] for match in _ACRONYM.finditer(text)]
    return found


def _accented(text: str) -> list[tuple[str, str]]:
    """Return the spelling with accents of each word that has some, with the stem of the folded word: `cà`, `ca`.

    Words with umlauts are spelled with "e": "München" is also `muenchen`.
    """
    found = []
    for word in _ACCENTED_WORD.findall(unicodedata.normalize("NFC", text).casefold()):
        folded = fold(word)
        if folded != word and folded.isalpha() and folded not in STOP_WORDS:
            other = word.translate(_UMLAUTS)
            found.append(
                ((stems.stems(other)[0] if other.isascii() else other)[:MAX_TOKEN_CHARS], stems.stems(folded)[0])
            )
    return [(other, stem) for other, stem in found if other != stem]


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


@lru_cache(maxsize=4096)
def _signs(run: str) -> Word:
    return Word((), (f"s:{run[:_MAX_SIGN_CHARS]}", *(f"c:{char}" for char in dict.fromkeys(run))))
