"""Tell whether two short texts are wordings of one fact: "Our cat is called Miso", "Miso is the name of my cat".

Wordings share what answers the question and differ in more places than one. Texts that differ in one place alone are
two facts: "my red bike", "my blue bike". So are those that differ in a number, name, negation or owner.
"""

import re
from collections.abc import Iterator, Mapping, Set
from difflib import SequenceMatcher
from functools import cache, lru_cache
from itertools import pairwise
from typing import Final, NamedTuple

from core.patterns import lazy_pattern
from store.text import languages
from store.text.normalize import UNSPACED, WORD, fold
from store.text.stems import MAX_WORD_CHARS, stems
from store.text.wording import (
    CHINESE_FILLER,
    CONTRACTED_NOT,
    content_word,
    is_akin,
    is_yes_no_question,
    stems_of,
    written_names,
)

_TOKENS = lazy_pattern(
    f"(?P<unspaced>[{UNSPACED}])|(?P<word>[{WORD}]+(?:[.'][{WORD}]+)*)"
    "|(?P<clause>[,.;:!?，。；：！？、()（）–—=]|-(?= |-))"
)
_HAS_NUMBER = lazy_pattern(r"\d|[零一二三四五六七八九十百千万亿]")
_SPELLED_DIGITS = lazy_pattern(r"(?<![\w.,:-])\d(?:[ -]\d)+(?![\w.,:-])")
_NO_NUMBER = lazy_pattern("一(?=[下直般定起样些点共向切旦会边行带]|[^，。]{1,6}就)")
_REMINDER = lazy_pattern(
    r"\b(?:(?:do not|don't|dont|never|don't let me) forget|not to forget|n'oublie[zr]? pas|ne pas oublier"
    r"|no (?:te )?olvid\w+|nao (?:se |me )?esque\w+|vergiss nicht|nicht vergessen)\b|(?:别|不要|勿|莫)忘(?:记|了)?"
)
_SHORT_PREFIX = lazy_pattern(r"(?<![\w'-])([a-z]{1,2})-(?=[a-z]{2})")
_ADVERBS: Final = "mehr longer more any anymore yet even ever really plus mais mas gar so too very"
_AFTER_NEGATION: Final = frozenset(_ADVERBS.split())
_NEGATION = lazy_pattern(
    r"(?:not|no|never|none|neither|nor|without|cannot|unable|nicht|kein\w*|nie|niemals|ohne|pas|jamais|aucune?|sans|nao|"
    r"nunca|jamas|sin|sem|ningun\w*|nenhum\w*|[不没别未无非])"
)
_NEARLY = lazy_pattern(r"\b(?:nearly|almost|beinahe|fast|casi|presque|quase)\b|差点|几乎")
_OWNER_WORDS: Final = """
my mein meine meinem meinen meiner meines mi mis mon ma mes meu minha meus minhas 我
|your dein deine deinem deinen deiner tu tus ton ta tes teu tua 你
|his her their sein seine seinem seinen seiner ihr ihre ihrem ihren ihrer su sus son sa ses seu sua 他 她
"""
_OWNERS: Final = {word: number for number, words in enumerate(_OWNER_WORDS.split("|")) for word in words.split()}
_NEUTRAL_WORDS: Final = """
day time place thing way kind sort type name brand make number city town street country every each always usually
happen everything anything nothing all take go come get give have own keep make find hold use be one date hour code
only around about because mostly actually currently normally whole sure tag zeit art marke stadt strasse ort nummer
uhr jede jeder jeden jedes immer gibt geht steht liegt habe nur dia hora lugar nombre nome ciudad cidade calle rua
numero gegen wegen uber unter hinter neben fecha data cada siempre sempre llama chama
jour heure lieu nom ville rue numero date chaque toujours appelle repond
"""
_USER_WORDS: Final = "nutzer nutzers nutzerin benutzer benutzers benutzerin usuario usuaria utilisateur utilisatrice"
_RELATION_WORDS: Final = """
live lives living home house place reside apartment flat wohne wohnt wohnen wohnung lebt leben zuhause haus vive
vivo vivir casa mora moro domicilio habite habiter vit maison
|like love favorite favourite prefer enjoy best mogen mag liebling lieb lieber liebsten gefallt gusta gustan encanta
favorito favorita prefiero mejor gosto adoro prefere preferido melhor aime adore prefere prefere favori preferee
|call named name heisst heissen nennt namen llama llamo nombre chama nome appelle nom
|work job employ employed profession arbeitet arbeite beruf trabaja trabajo trabalha trabalho emprega travaille
metier emploi funcionaria
|start begin commence beginnt beginne startet anfangt fangt empieza comienza comeca debute
|allergy allergic allergisch allergie alergia alergico allergique alergica
"""
"""Words of one relation in six languages: those of two of these tell two facts."""
_TIME_WORDS: Final = """
monday tuesday wednesday thursday friday saturday sunday montag dienstag mittwoch donnerstag freitag samstag sonntag
lunes martes miercoles jueves viernes sabado domingo lundi mardi mercredi jeudi vendredi samedi dimanche segunda terca
quarta quinta sexta morning afternoon evening night yesterday today tomorrow gestern heute morgen weekend
"""
_MODIFIERS: Final = frozenset("大小前新旧老二三左右上下东西南北男女")
_CHINESE_NEUTRAL: Final = frozenset("住家喜欢爱最吃叫名字用买去到每天时候地方里上说要定交晚点位放呆待")
_RELATION_LETTERS: Final = 8
"""Letters that a compound shares with the word of a relation at least."""
_LEAST_PART: Final = 5
"""Letters of a word that may be a part of a compound."""
_LEAST_SHARED: Final = 2
"""Words, numbers and relations that wordings share at least."""
_MIN_ASKED: Final = 0.6
"""The share of the words of a question for yes or no that wordings share."""
_MAX_OPEN: Final = 3
"""A wording of the same fact may hold so many more content words."""

_ARTICLE_WORDS: Final = "a an the der die das den dem des ein eine el la los las un una le les l o os as um uma 的"
_ARTICLES: Final = frozenset(_ARTICLE_WORDS.split())


class Token(NamedTuple):
    """A word of a text: as it is written, and its stem; empty for words that tell nothing."""

    written: str
    stem: str


class Statement(NamedTuple):
    """The parts of a text that tell facts apart. `words` are content words as stems, Chinese characters one by one.

    `names` are written with a capital letter inside a sentence; German ones, where all nouns are, are not known.
    `negated` are the words that a negation stands before; an empty one if it ends a clause, "~" for "nearly". `owners`
    tell whose each thing is: 0 "my", 1 "your", 2 "his" or "her".
    """

    tokens: tuple[Token, ...]
    words: frozenset[str]
    numbers: frozenset[str]
    negated: frozenset[str]
    names: frozenset[str]
    owners: Mapping[str, int]


_Ordered = tuple[Statement, list[tuple[str, int]]]
"""A statement and the words of it that tell something, with their places."""


@lru_cache(maxsize=4096)
def statement(text: str, language: str) -> Statement:
    """Return the parts of a short text in a language."""
    folded = CONTRACTED_NOT.sub(" not", _REMINDER.sub(" ", fold(text)))
    folded = _SHORT_PREFIX.sub(r"\1", _NO_NUMBER.sub(" ", folded).replace("用户", " "))
    folded = _SPELLED_DIGITS.sub(lambda digits: re.sub(r"\D", "", digits[0]), folded)
    tokens: list[Token] = []
    numbers, negated = set[str](), set[str]()
    is_open = False
    for match in _TOKENS.finditer(folded):
        if match.lastgroup == "clause":
            if is_open:
                negated.add("")
            is_open = False
            tokens.append(Token(match[0], ""))
            continue
        for token in _tokens(match[0], language, is_unspaced=match.lastgroup == "unspaced"):
            if _NEGATION.fullmatch(token.written):
                is_open = True
                tokens.append(Token(token.written, ""))
                continue
            tokens.append(token)
            if _HAS_NUMBER.search(token.stem):
                numbers.add(token.stem)
            if token.stem and is_open and token.written not in _AFTER_NEGATION:
                negated.add(token.stem)
                is_open = False
    if is_open:
        negated.add("")
    if _NEARLY.search(folded):
        negated.add("~")
    return Statement(
        tuple(tokens),
        frozenset(token.stem for token in tokens if token.stem) - numbers,
        frozenset(numbers),
        frozenset(negated),
        frozenset() if language == "german" else frozenset(_stem(name, language) for name in written_names(text)),
        {
            thing.stem: _OWNERS[owner.written]
            for owner, thing in pairwise(token for token in tokens if token.stem or token.written in _OWNERS)
            if owner.written in _OWNERS
        },
    )


def _tokens(found: str, language: str, *, is_unspaced: bool) -> Iterator[Token]:
    if is_unspaced:
        yield Token(found, "" if found in CHINESE_FILLER else found)
        return
    if _HAS_NUMBER.search(found):
        yield Token(found, found)
        return
    first, *rest = found.split("'")
    for part in (first, *(part for part in rest if len(part) > 2)):
        is_empty = part in _user_words() or not content_word(part, language)
        yield Token(part, "" if is_empty else _stem(part, language))


@lru_cache(maxsize=65_536)
def _stem(word: str, language: str) -> str:
    """Return the stem of a word in a language; that of `_known` for those words."""
    base = stems(word)[0]
    if language in (languages.ENGLISH, languages.UNKNOWN) or base in _known().all or len(word) > MAX_WORD_CHARS:
        return base
    found = languages.foreign_stems(word, language)[0].removeprefix(languages.FOREIGN)
    return word if found in _known().all else found


def is_same_fact(text: str, other_text: str, query: str) -> bool:
    """Return True if two texts are wordings of one fact: neither number, name nor negation differs.

    They share a word or number that the query lacks, which may answer it, or much of a question for yes or no. Each may
    have some words more, but they differ in more than one place, or in words that tell no fact.
    """
    language = _language(f"{query} {text} {other_text}")
    one, other, asked = (statement(part, language) for part in (text, other_text, query))
    if one.numbers != other.numbers:
        return False
    alike = _shared(one, other)
    if len(_content(alike)) + len(_shared_relations(one, other, asked)) + len(one.numbers) < _LEAST_SHARED:
        return False
    more, others = one.words - alike, other.words - _shared(other, one)
    if (
        _differs_in_negation(one, other, more, others)
        or _differs(one, other, more, others)
        or _differs_in_one_place(one, other)
    ):
        return False
    added, other_added = _telling(more) - asked.words, _telling(others) - asked.words
    if not added and not other_added:
        return True
    times = _known().times
    return (
        not _is_replaced(added | more & times, other_added | others & times, one, other)
        and max(len(added), len(other_added)) <= _MAX_OPEN
        and _is_answered(one, alike, asked, query)
    )


def _content(words: Set[str]) -> Set[str]:
    return words - _known().neutral - _known().relations.keys()


def _shared_relations(one: Statement, other: Statement, asked: Statement) -> set[int]:
    """Return the relations that both texts name, and the query if there is one."""
    shared = _relations(one.words) & _relations(other.words)
    return shared & _relations(asked.words) if asked.words else shared


@lru_cache(maxsize=1024)
def _language(text: str) -> str:
    return languages.guess(languages.first_words(fold(text)))


def _is_answered(one: Statement, alike: Set[str], asked: Statement, query: str) -> bool:
    """Return True if the shared words and numbers may answer the query."""
    if one.numbers - asked.numbers or any(not _is_in(word, asked.words) for word in _content(alike)):
        return True
    return is_yes_no_question(query) and len(alike) >= _MIN_ASKED * len(asked.words)


def _differs_in_negation(one: Statement, other: Statement, more: Set[str], others: Set[str]) -> bool:
    """Return True if one text negates what the other says.

    It does not if it says all of the other, and negates something else: "I can't take penicillin, I'm allergic".
    """
    if bool(one.negated) == bool(other.negated):
        return ("~" in one.negated) != ("~" in other.negated)
    negated, affirmed, rest = (one, other, others) if one.negated else (other, one, more)
    return (
        not negated.negated.isdisjoint({"", "~"})
        or any(_is_in(word, affirmed.words | affirmed.numbers) for word in negated.negated)
        or bool(_telling(rest))
    )


def _differs(one: Statement, other: Statement, more: Set[str], others: Set[str]) -> bool:
    """Return True if two texts differ in what makes two facts; `more` and `others` are the words of one of them."""
    if one.names & more - _known().neutral and other.names & others - _known().neutral:
        return True
    if any(other.owners.get(word, owner) != owner for word, owner in one.owners.items()):
        return True
    relations, other_relations = _relations(more), _relations(others)
    if relations and other_relations and relations != other_relations:
        return True
    return bool(more & _known().times and others & _known().times) or _has_other_name(one, other)


def _relations(words: Set[str]) -> set[int]:
    """Return the relations that words name; "lieblingsgetrank" that of "liebling"."""
    known = _known()
    found = (known.relations.get(word, known.beginnings.get(word[:_RELATION_LETTERS])) for word in words)
    return {relation for relation in found if relation is not None}


def _differs_in_one_place(one: Statement, other: Statement) -> bool:
    """Return True if the texts are the same but for one place, where a word that tells something stands in one.

    More words at the end are details: "in Hull". So are those beside other words in that place: "has", "keeps".
    """
    left, right = _sequence(one), _sequence(other)
    words, other_words = [word for word, _ in left], [word for word, _ in right]
    if _split(words, one.numbers) != _split(other_words, other.numbers) and (
        _split(words, one.numbers)[0] == _split(other_words, other.numbers)[0]
    ):
        return True  # numbers in another order
    matcher = SequenceMatcher(None, words, other_words, autojunk=False)
    steps = [step for step in matcher.get_opcodes() if step[0] != "equal"]
    if len(steps) != 1:
        return False
    kind, begin, end, start, stop = steps[0]
    if kind == "replace":
        return True
    if kind == "delete":
        return _is_inserted(begin, end, start, (one, left), (other, right))
    return _is_inserted(start, stop, begin, (other, right), (one, left))


def _is_inserted(begin: int, end: int, at: int, longer: _Ordered, shorter: _Ordered) -> bool:
    """Return True if words before the last word of a text are all that the other one lacks."""
    (said, order), (other, other_order) = longer, shorter
    if end == len(order):
        return False
    gap = _between(said, order, begin - 1, end)
    other_gap = _between(other, other_order, at - 1, at)
    if any(_is_sign(word) for word in gap):
        return False
    return set(other_gap) - set(gap) <= _OWNERS.keys() | _ARTICLES


def _between(said: Statement, order: list[tuple[str, int]], before: int, after: int) -> list[str]:
    first = order[before][1] + 1 if before >= 0 else 0
    last = order[after][1] if after < len(order) else len(said.tokens)
    return [token.written for token in said.tokens[first:last]]


def _is_sign(written: str) -> bool:
    return not written[0].isalnum()


def _split(words: list[str], numbers: Set[str]) -> tuple[list[str], list[str]]:
    return [word for word in words if word not in numbers], [word for word in words if word in numbers]


def _sequence(said: Statement) -> list[tuple[str, int]]:
    """Return the words that tell something in order, and their places among the tokens."""
    return [
        (token.stem, place)
        for place, token in enumerate(said.tokens)
        if token.stem and (token.stem in _known().times or _telling({token.stem}) or token.stem in said.numbers)
    ]


def _is_in(word: str, others: Set[str]) -> bool:
    return word in others or any(_is_form(word, one) for one in others)


def _shared(one: Statement, other: Statement) -> frozenset[str]:
    """Return the words of one text that the other has in any form, or as a part."""
    return frozenset(word for word in one.words if _is_in(word, other.words))


def _is_form(one: str, other: str) -> bool:
    """Return True for stems of two forms of a word, and for a part of a compound: "zeil" of "zeilenlang"."""
    if is_akin(one, other):
        return True
    short, long = sorted((one, other), key=len)
    return len(short) >= _LEAST_PART and long.startswith(short)


def _has_other_name(one: Statement, other: Statement) -> bool:
    """Return True if words that differ in a letter stand in the same place: "Paula's code", "Paulo's code"."""
    left, right = one.words - other.words, other.words - one.words
    pairs = {(a, b) for a in left for b in right if len(a) == len(b) and is_akin(a, b)}
    return any(_is_replaced({a}, {b}, one, other) for a, b in pairs)


def _is_replaced(more: Set[str], others: Set[str], one: Statement, other: Statement) -> bool:
    """Return True if a word of one text stands where the other has another one: "my red bike", "my blue bike"."""
    return bool(_places(more, one) & _places(others, other))


def _places(words: Set[str], said: Statement) -> set[str]:
    """Return the words before and after some words, as they are written."""
    written = ["", *(token.written for token in said.tokens), ""]
    found = set[str]()
    for place, token in enumerate(said.tokens, 1):
        if token.stem in words:
            found |= {f"<{written[place - 1]}", f"{written[place + 1]}>"}
    return found - {"<", ">"}


def _telling(words: Set[str]) -> set[str]:
    """Return the words without those that tell no fact."""
    return {
        word
        for word in words
        if word in _MODIFIERS
        or not (word in _known().neutral or _relations({word}) or word in _CHINESE_NEUTRAL or word in _known().times)
    }


class _Vocabulary(NamedTuple):
    """Word lists as stems. `relations` tells which of the words are of the same relation."""

    neutral: frozenset[str]
    times: frozenset[str]
    relations: dict[str, int]
    beginnings: dict[str, int]
    all: frozenset[str]


@cache
def _known() -> _Vocabulary:
    neutral, times = stems_of(_NEUTRAL_WORDS), stems_of(_TIME_WORDS)
    relations = {stem: number for number, words in enumerate(_RELATION_WORDS.split("|")) for stem in stems_of(words)}
    beginnings = {
        word[:_RELATION_LETTERS]: number
        for number, words in enumerate(_RELATION_WORDS.split("|"))
        for word in words.split()
        if len(word) >= _RELATION_LETTERS
    }
    return _Vocabulary(neutral, times, relations, beginnings, neutral | times | relations.keys())


@cache
def _user_words() -> frozenset[str]:
    return frozenset(_USER_WORDS.split())
