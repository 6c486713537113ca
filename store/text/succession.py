# ruff: noqa: E501 - patterns are read better whole
"""Tell whether one text follows on another as the answer to a question: whether what it says is newer.

`store.text.slots` compares statements that a pattern found. Here no pattern is needed: two texts answer the
same question about the same subject, and the later one says that something changed or is so now. A text that doubts,
plans, asks, quotes, denies, or speaks of another person follows on nothing.
"""

import math
import re
from collections.abc import Collection, Iterable
from functools import lru_cache
from itertools import chain
from typing import Final, NamedTuple

from core.patterns import lazy_pattern
from store.text import ended_values, statements_de, statements_en, statements_zh, succession_words
from store.text.languages import STOP_WORDS_OF, guess
from store.text.normalize import fold_in_place
from store.text.predicates import may_be_of_one_thing
from store.text.slot_words import ALSO_WORDS, MULTIPLE, RELATIONS, TOOLS
from store.text.slots import SPEAKER, WEEKDAY, Link, Slot, kinds_of
from store.text.statements import is_about_past
from store.text.wording import is_question, wording

MAX_CHARS: Final = 160
"""Longer texts say many things."""
MAX_HAN_CHARS: Final = 80
_HAN = lazy_pattern("[\u3400-\u9fff]")


_CHANGE, _NOW, _DOUBT, _END, _OTHER, _SELF = "+change", "+now", "+doubt", "+end", "+other", "+self"
_INSTANCE: Final = "~"
"""Begins the name of a table with names of things of a topic."""
_TOOL_TABLES: Final = {
    prefix + kind: " ".join(fold_in_place(one).replace(" ", "_") + "$" * one.isascii() for one in names)
    for kind in {*TOOLS.values()}
    for prefix, names in (
        (_INSTANCE, [name for name, one in TOOLS.items() if one == kind and name not in ALSO_WORDS]),
        ("", [noun for noun, relation in RELATIONS.items() if relation == kind]),
    )
}
"""The names of tools and the nouns for them, by kind."""
_TOPIC_TABLES: Final = (
    _TOOL_TABLES,
    succession_words.TOPICS,
    {_INSTANCE + name: words for name, words in succession_words.INSTANCES.items()},
)
_TABLES: Final = {
    **{name: " ".join(one.get(name, "") for one in _TOPIC_TABLES) for name in chain.from_iterable(_TOPIC_TABLES)},
    _CHANGE: succession_words.CHANGES,
    _NOW: succession_words.NOW,
    _DOUBT: succession_words.DOUBTS,
    _END: succession_words.ENDS,
    _OTHER: succession_words.OTHERS,
    _SELF: succession_words.SELF,
}
_WHOLE: Final[dict[str, set[str]]] = {}
_BEGINNING: Final[dict[str, set[str]]] = {}
_PHRASES: Final[dict[str, set[tuple[str, str]]]] = {}
_CHINESE: Final[dict[str, set[str]]] = {}
for _name, _listed in _TABLES.items():
    for _entry in _listed.split():
        if _HAN.match(_entry):
            _CHINESE.setdefault(_entry, set()).add(_name)
        elif "_" in _entry:
            _phrase = _entry.rstrip("$").replace("_", " ")
            _PHRASES.setdefault(_phrase.split()[0], set()).add((f" {_phrase} ", _name))
        else:
            (_WHOLE if _entry.endswith("$") else _BEGINNING).setdefault(_entry.rstrip("$"), set()).add(_name)


@lru_cache(maxsize=65_536)
def _marks_of_word(word: str) -> frozenset[str]:
    """Return the tables that hold a word or its beginning."""
    found = set(_WHOLE.get(word, ()))
    for length in range(2, len(word) + 1):
        found.update(_BEGINNING.get(word[:length], ()))
    return frozenset(found)


def _marks(folded: str) -> list[tuple[str, frozenset[str]]]:
    """Return the words and phrases of a folded text that are in a table, with the names of these."""
    words = _WORDS.findall(folded)
    words += [part for word in words if "'" in word or "-" in word for part in re.split("['-]", word) if part]
    found = [(word, marks) for word in words if (marks := _marks_of_word(word))]
    phrases = {one for word in words for one in _PHRASES.get(word, ())}
    if phrases:
        spaced = f" {' '.join(_WORD.findall(folded))} "
        found += [(phrase.strip(), frozenset([name])) for phrase, name in phrases if phrase in spaced]
    if _HAN.search(folded):
        found += [(word, frozenset(names)) for word, names in _CHINESE.items() if word in folded]
    return found


_WORDS = lazy_pattern(r"[^\W_]+(?:['-][^\W_]+)*")
_WORD = lazy_pattern(r"[^\W_]+")
_NEGATION = lazy_pattern(succession_words.NEGATIONS)
_TEMPORARY = lazy_pattern(succession_words.TEMPORARY)
_ENDED = lazy_pattern(succession_words.ENDED)
_ASKING: Final = frozenset(succession_words.ASKING.split())
_QUOTE = lazy_pattern('["\u201c\u201d\u201e\u300c\u300e\u00ab`>]')
_OWNER = lazy_pattern(r"\b(?!(?:It|That|This|What|There|Here|Who|Where|When|Let|He|She|The user|User)'s)([A-Z]\w+)'s\b")
_HE = lazy_pattern(
    r"\b(?:next do{2}r|he(?! \w+[aei]d[ao]\b)|she|his|they're|sie hat|sein(?:en|em|er)|elle|ele|ela)\b|(?:^|[.;,] )(?:her|their) \w"
)
_NUMBER_WORD = lazy_pattern(
    r"\b(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|\w+teen|(?:twen|thir|for|fif|six|seven|eigh|nine)ty"
    r"|hundred|thousand)\b|[一二两三四五六七八九十百千万]"
)
_NUMBER = lazy_pattern(r"\d+(?:[.,:]\d+)*|[零一二三四五六七八九十百千万两]+")
_NAME = lazy_pattern(r"(?<=[\w,;:.] )[A-Z\u00c0-\u00de][\w'-]+|^(?:Dr|Mr|Mrs|Ms|Prof)\b")
_CASED: Final = 4
"""Letters that two inflections of a word begin with alike."""


class Said(NamedTuple):
    """The topics of a text, its, content words without those of a change, kinds of values, and names.

    `signal`: 2 for a word of a change, 1 for "now". `ends`: it says that something ended. `others` are persons, `owned`
    the things that a text tells apart: "marketing budget". `is_plain`: it states something. `is_facet`: it states no
    separate value: "my boss is very busy now".
    """

    topics: frozenset[str]
    words: frozenset[str]
    all_words: frozenset[str]
    kinds: frozenset[str]
    names: frozenset[str]
    numbers: frozenset[str]
    others: frozenset[str]
    owned: frozenset[tuple[str, str]]
    signal: int
    ends: bool
    is_plain: bool
    is_of_speaker: bool
    is_facet: bool
    is_temporary: bool
    is_statement: bool
    beginnings: frozenset[str]


class Clause(NamedTuple):
    """A clause: its topics and words, the other persons in it, and the thing of the speaker that it begins with.

    `done_to` are the words after "my" and "the" inside it, of what was done to a thing: "my doctor raised my dose".
    """

    topics: frozenset[str]
    words: frozenset[str]
    others: frozenset[str]
    subject: str
    done_to: frozenset[str]


class Question(NamedTuple):
    """The topics that a question asks for, its content words that no topic stands for, other persons, and kinds of values."""

    topics: frozenset[str]
    groups: frozenset[frozenset[str]]
    words: frozenset[str]
    all_words: frozenset[str]
    others: frozenset[str]
    wants: frozenset[str]
    numbers: frozenset[str]
    text: str
    is_of_state: bool
    is_of_speaker: bool
    beginnings: frozenset[str]
    is_of_past: bool
    is_of_event: bool
    is_of_several_values: bool
    is_of_several_things: bool


@lru_cache(maxsize=16_384)
def said(text: str) -> Said | None:
    """Return what a short text says, None for a long one."""
    is_han = _HAN.search(text) is not None
    if len(text) > (MAX_HAN_CHARS if is_han else MAX_CHARS):
        return None
    text = _plain_part(_read(text))
    folded = fold_in_place(text)
    marks = _marks(folded)
    names = frozenset(chain.from_iterable(names for _word, names in marks))
    ends = _END in names
    of_change = _words(" ".join(word for word, marked in marks if marked & {_CHANGE, _END, _NOW}))
    return Said(
        _topics(folded, names),
        _words(folded) - of_change,
        frozenset(_WORD.findall(folded)),
        _kinds(text),
        _names(text, folded),
        frozenset(_NUMBER.findall(text)),
        _others(text, folded, marks),
        frozenset((match["what"], match["head"]) for pattern in _OWNED for match in pattern.finditer(folded)),
        2 if ends or _CHANGE in names else 1 if _NOW in names else 0,
        ends,
        _DOUBT not in names and _is_plain(text, folded, is_han=is_han),
        _is_of_speaker(folded, names),
        _FACET.search(folded) is not None,
        _TEMPORARY.search(folded) is not None,
        not (is_question(text) or _TO_YOU.search(folded)),
        _beginnings(_words(folded) - of_change),
    )


def _is_of_speaker(folded: str, names: Collection[str]) -> bool:
    """Return True if a text speaks of its speaker, in Romance languages by a verb alone: "Vivo en Murcia"."""
    if _SELF in names:
        return True
    verb = _FIRST_VERB.search(folded)
    return verb is not None and (guess(folded.split()) in _ROMANCE or not _TOPICS.isdisjoint(_marks_of_word(verb[1])))


_FIRST_VERB = lazy_pattern(
    r"(?:^|[.,;:!] )\W*(?:(?:ya|ahora|agora|adesso|ora) )?(?!(?:como|cuando|quando|luego|solo|todo)\b)([a-z]{2,}o|[a-z]{3,}(?:amos|emos|imos|iamo))\b"
)
_ROMANCE: Final = frozenset({"spanish", "portuguese", "italian"})


def _read(text: str) -> str:
    """Return a text without contractions, curly apostrophes, and the "still" of the German "only"."""
    return statements_en.expanded(text.replace("\u2019", "'").replace("nur noch", "nur"))


def _plain_part(text: str) -> str:
    """Return the sentences before the first that states nothing; the whole text if that is short and may deny them."""
    text = _PLEASE.sub("", text)
    ends = [match.end() for match in _SENTENCE_END.finditer(text)]
    if not ends:
        return text
    for start, end in zip([0, *ends], [*ends, len(text)], strict=True):
        part = text[start:end]
        if part.strip() and not _is_stated(part):
            return text[:start] if start and len(part.strip()) > _AFTERTHOUGHT else text
    return text


_PLEASE = lazy_pattern(
    r"(?<=\w{3}), (?:so )?(?:please|pls|plz|bitte|por favor|s'il (?:te|vous) pla[iî]t)\b.*$", re.IGNORECASE
)
"""A request that follows a statement: "…, please book a table"."""
_SENTENCE_END = lazy_pattern(r"(?<!Dr)(?<!Mr)(?<!Mrs)[.!;](?=\s)\W*|[。！；]+")
_AFTERTHOUGHT: Final = 30
"""Shorter sentences may take back the one before: "Just kidding", "Not really"."""


def _is_stated(text: str) -> bool:
    folded = fold_in_place(text)
    is_doubted = any(_DOUBT in names for _word, names in _marks(folded))
    return not is_doubted and _is_plain(text, folded, is_han=_HAN.search(text) is not None)


@lru_cache(maxsize=1024)
def question(text: str) -> Question:
    """Return what a question asks."""
    asked, text = text, _read(text)
    folded = fold_in_place(text)
    marks = _marks(folded)
    topics = _topics(folded, _TOPICS.intersection(chain.from_iterable(names for _word, names in marks)))
    rest, groups = f" {_BEFORE.sub(' ', folded)} ", set[frozenset[str]]()
    for word, names in marks:
        if (of_word := names & _TOPICS) and word in rest:
            groups.add(of_word)
            rest = re.sub(rf"(?<![^\W_]){re.escape(word)}(?![^\W_])" if word.isascii() else word, " " * len(word), rest)
    stop_words = STOP_WORDS_OF.get(guess(folded.split()), frozenset())
    rest = " ".join(
        word for word in _LAST_VERB.sub(_without_verb, rest).split() if word.strip("?¿!.,'") not in _ASKING | stop_words
    )
    return Question(
        topics,
        frozenset(group - _GENERIC for group in groups if group - _GENERIC),
        _words(_ASKED_HAN.sub(" ", rest)),
        _words(folded),
        _others(text, folded, marks),
        _wanted(folded),
        frozenset(_NUMBER.findall(text)),
        folded,
        not _OF_EVENT.search(folded) or is_about_past(text),
        any(_SELF in names for _word, names in marks) or _FIRST_PERSON.search(folded) is not None,
        _beginnings(_words(folded)),
        is_about_past(asked),
        _OF_EVENT.search(folded) is not None,
        _SEVERAL.search(folded) is not None,
        _SEVERAL_NOUN.search(_ONE_NOUN.sub(" ", asked)) is not None,
    )


def _without_verb(asked: re.Match[str]) -> str:
    """Return what a question says before its last word, and that word if it is no verb: "When do I play tennis?"."""
    is_thing = any(name.startswith(_INSTANCE) for name in _marks_of_word(asked["last"]))
    return asked[0] if is_thing else asked["who"]


_FIRST_PERSON = lazy_pattern(
    r"^\W*(?:a |de |en |em )?(?:donde|onde|que|cual|qual|cuanto|quanto|como)(?: \w+)? \w+(?:o|ia)\b"
)
"""Spanish and Portuguese questions whose verb alone says who asks: "¿dónde vivo?"."""
_OF_EVENT = lazy_pattern(
    r"\b(?:did|have i|have we|had|can|why|describe|think|feel)\b|\bfor (?:her|him|them)\b|为什么|觉得|什么时候.+了"
)
"""Questions for what happened, or for an opinion."""
_TOPICS: Final = frozenset(name for name in _TABLES if name[0] not in f"+{_INSTANCE}")
_GENERIC: Final = frozenset({"schedule", "tool", "status"})
"""Topics that tell no subject."""
_BEFORE = lazy_pattern(
    r"\b(?:(?:before|bevor|antes de(?: que)?|avant (?:de|que|d')|prima (?:di|che)) (?P<what>\S.*)"
    r"|(?:vor|antes del?|avant|voor) (?P<next>(?:(?:dem|der|den|herrn?|frau|la|el|las|los|le|les|o|a|de) )?[\w'-]{3,}))"
    r"|(?P<han>[\w\u4e00-\u9fff]{1,8}?)(?:之前|以前|前)"
)
"""Words for what came after that which a question asks for: "before Lyon", "vor Bremen", 来大连之前."""
_LAST_VERB = lazy_pattern(
    r"(?<=\b)(?:(?<=do)|(?<=does)|(?<=did))(?P<who> .*?)(?<! in)(?<! on)(?<! at)(?<! to)(?<! of)(?<! for)(?<! my)(?<! our)(?<! the)(?<! do)(?<! does)(?<! did) (?P<last>[a-z]+)(?: on| in| to| for| at| like)?(?: before| previously)?[\s?]*$"
)
_ASKED_HAN = lazy_pattern("以前|之前|原来|现在|目前|用户|我们|什么|时候|哪里|哪儿|哪个|多少|几点|是谁|怎么|状态")
_WANTED: Final = (
    (lazy_pattern(r"\b(?:when|what time|which day|wann|um wie viel|cuando|a que hora|quand|a quelle heure|quando|a que horas)\b"
                r"|什么时候|几点|周几|哪天|何时"), frozenset({"day", "clock", "number"})),
    (lazy_pattern(r"\b(?:how (?:much|many|old|long|tall|high)|wie (?:viel|hoch|alt|viele|lange)|cuant[oa]s?|combien|quant[oa]s?)\b"
                r"|多少|多大|几岁"), frozenset({"number", "clock", "day"})),
)  # fmt: skip
_OWNED: Final = (
    lazy_pattern(r"\b(?:the|my|our|der|die|das|mein\w*|unser\w*) (?P<what>[\w-]+) (?P<head>[\w-]+)"),
    lazy_pattern(
        r"\b(?P<head>[\w-]{3,}) (?:of|der|des|von|vom|del|de|du|da|do|dos|di) (?:the |my |our |la |el |las |los |le |l'|mi |mon )?"
        r"(?P<what>[\w-]+)"
    ),
    lazy_pattern(r"(?P<what>(?!用户|新)[^，。,我们]{2,6})的(?P<head>[\u4e00-\u9fff]{2})"),
)
"""Words that tell a thing apart from others of its kind: "the marketing budget", "the port of the database"."""
_CLAUSE = lazy_pattern(
    r"(?<!Dr)(?<!Mr)(?<!Mrs)[.;!:,\u2014\uff0c\u3002](?=\s|[\u4e00-\u9fff]|$)"
    r"|\b(?:so|because|(?:be)?cause|bc|but|and|since|after|while|with (?=\w+ (?:off|out|gone|away|leaving))|weil|nachdem|wahrend|denn|porque|parce que|pero|mais|mas|aber|und|du coup|asi que|entao|deshalb|also)\b"
)


@lru_cache(maxsize=4096)
def _clauses(text: str) -> tuple[Clause, ...]:
    """Return the clauses of a text. One without a subject is of the same persons as the clause before it."""
    text, found = _read(text), []
    others = frozenset[str]()
    for part in _CLAUSE.split(text):
        if part and (clause := part.strip()):
            folded = fold_in_place(clause)
            thing, marks = _THING.match(folded), _marks(folded)
            others = _others(clause, folded, marks) | (frozenset() if _HAS_SUBJECT.match(folded) else others)
            topics = _topics(folded, chain.from_iterable(names for _word, names in marks))
            done_to = frozenset(" ".join(_DONE_TO.findall(folded, thing.end() if thing else 1)).split())
            found.append(Clause(topics, _words(folded), others, thing[1] if thing else "", done_to))
    return tuple(found)


_HAS_SUBJECT = lazy_pattern(
    r"(?:(?:and|now|since then|jetzt|seitdem|ahora|maintenant|agora) |现在)?(?:i|we|my|our|the|it|they|there|ich|wir|es|mein\w*|unser\w*|der|die|das|yo|mi|el|la|los|las|je|j'|mon|ma|le|les|on|nous|eu|meu|minha"
    r"|o|a|as|os|new|from|as of)\b|(?:现在)?我"
)


_THING = lazy_pattern(
    r"(?:my|our|mein\w*|unser\w*|mi|mis|nuestr\w*|mon|ma|mes|notre|nos|(?:o |a )?(?:meu|minha|nosso|nossa))"
    r" (?!sono)(?:new |own |neue\w* |nuev\w+ |nouve\w+ |nov[oa] )?"
    r"([\w-]+)"
)
_DONE_TO = lazy_pattern(
    r"\b(?:me|us|my|our|the|mich|mir|uns|mein\w*|unser\w*|der|die|das|den|dem|mi|mis|nos|nuestr\w*|el|la|los|las|mon|ma|mes|notre|le|les"
    r"|meu|minha|nosso|nossa) ((?:[\w-]+ ){0,2}[\w-]+)"
)
_FACET = lazy_pattern(
    r"\b(?:is|are|am|ist|sind|bin|es|esta|est|e) (?:now |jetzt |ahora |maintenant |agora )?(?:very|so|really|too|much|a bit|quite|pretty"
    r"|on (?:holiday|vacation|leave)|at home|sick|ill|away|busy|happy|sad|broken|faster|better|worse|great|fine|sehr|so|viel|krank"
    r"|mude|im urlaub|muy|tres|muito)\b|现在(?:很|太|非常|真|在忙)|很|是个"
)


def _wanted(folded: str) -> frozenset[str]:
    return next((kinds for pattern, kinds in _WANTED if pattern.search(folded)), frozenset())


def _topics(folded: str, marks: Iterable[str]) -> frozenset[str]:
    topics = _TOPICS.intersection(mark.removeprefix(_INSTANCE) for mark in marks)
    return topics | {"job"} if _IS_SOMETHING.search(folded) else topics


_IS_SOMETHING = lazy_pattern(
    r"\bi (?:am|became|have become|am now|now work as) an? |\bich bin (?:jetzt |nun |von beruf )?[a-z]{5,}(?:[.,!]|$| an | bei | in )"
    r"|\b(?:soy|sou|je suis|sono) (?:una? |um |uma |un |une |devenue? )?[a-z]{5,}(?:[.,!]|$| en | chez | em | na | no | de )|我是[^的，。]{2,5}(?:[，。]|$)"
)
"""Users who say what they are mostly say a profession."""


def _words(text: str) -> frozenset[str]:
    found = wording(text)
    return found.words | found.numbers


def _beginnings(words: Iterable[str]) -> frozenset[str]:
    """Return the letters that inflections of words begin with."""
    return frozenset(word[:_CASED] for word in words)


def _kinds(text: str) -> frozenset[str]:
    kinds = kinds_of(text) - {"name", "word"}
    return kinds | {"number"} if _NUMBER_WORD.search(text.lower()) else kinds


_GERMAN = lazy_pattern(r"\b(?:ich|wir|mein\w*|unser\w*|der|die|das|ist|nutzer\w*)\b")
_COMMON_NOUN = lazy_pattern(
    r"\b(?:der|die|das|den|dem|des|ein\w*|mein\w*|unser\w*|kein\w*|im|am|zum|zur|vom|beim|ins|zu|nach(?= Hause))"
    r" (?:[a-zäöüß]+ )?[A-ZÄÖÜ][\w-]+",
    re.IGNORECASE,
)


def _names(text: str, folded: str) -> frozenset[str]:
    if _GERMAN.search(folded):
        text = _COMMON_NOUN.sub(" ", text)
    return frozenset(match[0].lower() for match in _NAME.finditer(text))


_SPANISH_NO = lazy_pattern(r"\bno\b")
_MORE_DOUBT = lazy_pattern(
    r"^\W*(?:si|se) |\b(?:yours?|you(?! can\b)|hey|thanks|wow|congrats)\b|\b(?:too|as well)(?=[.!,;]|$)|(?<!, )\balso\b|\bmay (?!\d)|\b(?:for|in) (?:this|the|our|a|my) (?:story|book|film|movie|game|form)"
    r"|\b\w*(?:spiel|roman) |\bas me:|\bleft (?:\w+ ){1,2}(?:early|late|at (?:about |around )?(?:\d|one|two|three|four|five|six|seven|eight|nine|ten|noon))\b",
    re.IGNORECASE,
)
_BESIDE = lazy_pattern(
    r"\b(?:(?:with|con|mit|avec|com|like|for|to|fur|para|pour|chez|bei)"
    r"|(?:is|ist|es|est) (?:(?:now|jetzt|ahora|maintenant) )?(?:my|our|their|his|her|(?:the )?user's|mein\w*|unser\w*|mi|mon|ma)) (?:\w+ )?\w+|是[^，。的]{1,4}|[到在][^，。的]{1,5}家"
)
"""Persons beside the subject, or the value: "is my cousin"."""
_FIRST_NAME = lazy_pattern(
    r"([A-Z][a-z]+)(?: (?:from|at|in|of|next|aus|von|vom|bei|de|del|da|do|du|des) [^,.;]{2,40}?)? (?:has|is|was|got|just|now|lives|works|goes|moved|started|quit|left|switched|bought|sold|changed|joined|turned|drives"
    r"|ist|hat|wohnt|arbeitet|f\u00e4hrt|se|ha|vive|trabaja|est|a|habite|travaille|mora|trabalha|foi|agora)\b"
)
_NAMED_OTHER = lazy_pattern(
    r"\b(?:sister|brother|son|daughter|friend|colleague|cousin|uncle|aunt|dog|cat|Schwester|Bruder|Sohn|Tochter|hija|hijo|hermano"
    r"|hermana|filho|filha|irm\u00e3o?|s\u0153ur|fr\u00e8re|fils|fille) (?P<name>[A-Z]\w+)"
)
_GERMAN_OWNER = lazy_pattern(r"\b(?!Was|Das|Ans|Als|Alles)[A-Z][a-z\u00e4\u00f6\u00fc]{2,}s (?=[A-Z])")
_NO_NAMES: Final = frozenset(
    [
        "It",
        "This",
        "That",
        "We",
        "They",
        "There",
        "Everything",
        "Es",
        "Das",
        "Die",
        "Der",
        "Wir",
        "La",
        "El",
        "On",
        "O",
        "A",
    ]
)
_HAN_NAME = lazy_pattern("[小老阿][\u4e00-\u9fff]{1,2}?(?=的|换|搬|说|现|在|家|去|跳|当|辞)")


def _others(text: str, folded: str, marks: Iterable[tuple[str, frozenset[str]]]) -> frozenset[str]:
    found = {word for word, names in marks if _OTHER in names}
    if found and (beside := " ".join(match[0] for match in _BESIDE.finditer(folded))):
        found = {word for word in found if word not in beside}
    found |= {match["name"].lower() for match in _NAMED_OTHER.finditer(text)}
    if _GERMAN.search(folded):
        found |= {match[0].lower() for match in _GERMAN_OWNER.finditer(text)}
    found |= {match[1].lower() for match in _OWNER.finditer(text)}
    if (first := _FIRST_NAME.match(text)) and first[1] not in _NO_NAMES and not _is_known(first[1].lower()):
        found.add(first[1].lower())
    found |= {match[0] for match in _HAN_NAME.finditer(text)}
    if _HE.search(folded) and (found or "the user" not in folded):  # else it is the user
        found.add("he")
    return frozenset(found)


@lru_cache(maxsize=4096)
def _is_known(word: str) -> bool:
    """Return True for a word of the tables, which is no name."""
    return bool(_marks_of_word(word)) or word in _ASKING


def _is_plain(text: str, folded: str, *, is_han: bool) -> bool:
    if is_question(text) or _QUOTE.search(text):
        return False
    language = guess(folded.split())
    denies = _NEGATION.search(folded) or (_SPANISH_NO.search(folded) if language == "spanish" else None)
    if denies and not _ENDED.search(folded) and not _is_aside(folded[: denies.start()]):
        return False
    rules = statements_zh if is_han else statements_de if language == "german" else statements_en
    return not (_MORE_DOUBT.search(text) or rules.is_doubtful(text) or rules.is_fiction(text))


def _is_aside(before: str) -> bool:
    """Return True if a denial follows a clause that says that something changed: "…, it wasn't worth it"."""
    told = before[: max(map(before.rfind, ",;，；"), default=-1) + 1]
    return any(names & {_CHANGE, _END} for _word, names in _marks(told))


_NOT_SEARCHED: Final = frozenset({"schedule", "tool", "status", "name", "team", "hair", "color", "pet"})
"""Topics whose words are in too many texts to find one by them."""


def topics_of(text: str) -> list[Slot]:
    """Return the slots of the speaker, or of the persons it names, that a short text says something about."""
    is_han = _HAN.search(text) is not None
    if len(text) > (MAX_HAN_CHARS if is_han else MAX_CHARS):
        return []
    text = _read(text)
    folded = fold_in_place(text)
    marks = _marks(folded)
    names = frozenset(chain.from_iterable(names for _word, names in marks))
    topics = _topics(folded, names) - _NOT_SEARCHED
    if not topics or _DOUBT in names or not _is_plain(text, folded, is_han=is_han):
        return []
    others = _others(text, folded, marks) - {"he"}
    if not (others or names & {_CHANGE, _NOW, _END} or _is_of_speaker(folded, names) or _begins_with_topic(folded)):
        return []
    return [Slot(topic, one) for topic in sorted(topics) for one in sorted(others)[:_MAX_OTHERS] or [SPEAKER]]


def asked_topics(text: str) -> list[Slot]:
    """Return the slots of the speaker, or of the persons it names, that a question asks for; none for bare words."""
    wanted = question(text)
    others = sorted(wanted.others - {"partner", "he"})
    if not (others or wanted.is_of_speaker or _asks(text)):
        return []
    if not others and not wanted.is_of_speaker and (wanted.others or _NAME_INSIDE.search(text)):
        return []
    return [Slot(topic, one) for topic in sorted(wanted.topics - _NOT_SEARCHED) for one in others or [SPEAKER]]


_MAX_OTHERS: Final = 2


def _asks(text: str) -> bool:
    folded = fold_in_place(text)
    return "?" in folded or "？" in folded or not _ASKING.isdisjoint(folded.split()) or bool(_ASKED_HAN.search(folded))


def asks_more_than_topics(text: str) -> bool:
    """Return True for a question with words beside its topics: "Which toothpaste did the dentist recommend?"."""
    return bool(question(text).words)


def _begins_with_topic(folded: str) -> bool:
    """Return True for a text about a thing without an owner: "Team size is four", 宽带是电信的."""
    return any(not _TOPICS.isdisjoint(names) for _word, names in _marks(folded[:_BEGINNING_CHARS]))


_BEGINNING_CHARS: Final = 20


def is_label(text: str) -> bool:
    """Return True if words before a colon name a thing, and not a speaker: "Running shoes", "Miete"."""
    words = text.split()
    is_name = all(word[:1].isupper() or not word[:1].islower() or word in _PARTICLES for word in words[1:])
    return not is_name or any(not _TOPICS.isdisjoint(marks) for _word, marks in _marks(fold_in_place(text)))


_PARTICLES: Final = frozenset(["de", "da", "di", "del", "van", "von", "der", "bin", "al", "la", "of", "the"])


EVIDENCE: Final = {
    "change": 2.8,
    "same sentence of an agent": 2.4,
    "shared words": 2.2,
    "names the older one": 1.6,
    "both answer": 1.1,
    "several clauses": 1.0,
    "begins with the older one": 0.9,
    "another number": 0.9,
    "now, answers": 0.9,
    "same topic": 0.7,
    "another value": 0.6,
    "shared compounds": 0.6,
    "another person": 0.5,
    "no person": 0.5,
    "ends the older one": 0.4,
    "no answer before": 0.4,
    "named apart, another number": -0.3,
    "named apart, no word of a change": -0.4,
    "neither topic nor change": -0.6,
    "same sentence": -0.7,
    "named apart": -1.0,
    "lacks a name": -1.1,
    "lacks a word": -1.1,
    "several things": -1.2,
    "no wanted kind": -1.2,
    "several values": -1.9,
    "no separate value": -1.9,
    "long before": -2.8,
}
"""The weights of signs that a newer text replaces an older one.

A logistic regression on the cases of the benchmark that were read, and on pairs of messages of real conversations.
"""
_BIAS: Final = -2.4
_LIKELY: Final = 0.0
_SURE: Final = 1.0
"""The least evidence for a link, and for one that may leave the older text out."""
_CERTAIN: Final = 2.4
"""Evidence that a newer text with a word of the older value needs, if it lacks a word of the question, or the kind."""
_NAMED: Final = 0.25
"""The share of the words of the older value that makes a text name it."""
_PRESUMED: Final = 1.5
"""Evidence that a question for what was before gives: that something changed."""
_OF_CHANGE: Final = 2
"""The signal of a text that says that something changed."""
_SHORT: Final = 40
"""Bytes from which on an older text counts as long."""


def may_be_replaced(asked: str, older: str) -> bool:
    """Return False if no newer text follows on one as the answer to a question."""
    return question(asked).is_of_state and (old := said(older)) is not None and old.is_statement


def may_replace(asked: str, newer: str) -> bool:
    """Return False if a text follows on no other as the answer to a question."""
    return question(asked).is_of_state and (new := said(newer)) is not None and new.is_plain and not new.is_temporary


def follows(asked: str, older: str, newer: str) -> Link | None:
    """Return the link by which a newer text replaces an older one as the answer to a question, None for none.

    Signs for it and against it are weighed. One of low confidence only says which is to be read first.
    """
    if not may_be_replaced(asked, older) or (_HAN.search(older) is None) != (_HAN.search(newer) is None):
        return None
    if _came_after(asked, older, newer) and _answers_enough(asked, older, newer):
        return Link("value", "same words", "low")
    if not may_replace(asked, newer) or _came_after(asked, newer, older):
        return None
    if _ends_value(asked, older, newer):
        relation = next(iter(sorted(question(asked).topics)), "value")
        is_whole = not ended_values.has_several_values(older)
        return Link(relation, "named value" if is_whole else "same words", "high" if is_whole else "low")
    return _weighed(asked, older, newer)


def _came_after(asked: str, older: str, newer: str) -> bool:
    """Return True if a question names what came after its answer, and only the newer text has that: "before Lyon"."""
    wanted = question(asked)
    if not wanted.is_of_past or (match := _BEFORE.search(wanted.text)) is None or not may_be_replaced(asked, newer):
        return False
    run = match["han"]
    named = _words(match["what"] or match["next"]) if run is None else {run[n : n + 2] for n in range(len(run) - 1)}
    before, after = fold_in_place(older).casefold(), fold_in_place(newer).casefold()
    return any(word in after and word not in before for word in named)


def _answers_enough(asked: str, older: str, newer: str) -> bool:
    """Return True if the older text has half of what is asked, or if nothing is named, something of the newer one."""
    wanted, old, new = question(asked), said(older), said(newer)
    if wanted.groups or wanted.words:
        return _coverage(asked, older) >= _LEAST_COVERAGE
    return (
        old is not None
        and new is not None
        and not (old.topics.isdisjoint(new.topics) and old.beginnings.isdisjoint(new.beginnings))
    )


def _weighed(asked: str, older: str, newer: str) -> Link | None:
    """Return the link that the signs for it and against it give."""
    wanted, old, new = question(asked), said(older), said(newer)
    if old is None or new is None:
        return None
    if not _may_follow(wanted, old, new) or _is_of_another(wanted, old, new, older, newer):
        return None
    frame = _frame(older, newer)
    signs = _signs(wanted, old, new, _Pair(asked, older, newer, frame))
    evidence = _BIAS + sum(EVIDENCE[sign] * present for sign, present in signs.items())
    is_single = _is_one_thing(old, frame) and not _lacking(wanted, old, new)
    is_likely = is_single or evidence + _PRESUMED * wanted.is_of_past >= _LIKELY
    if not is_likely or not _is_of_one_subject(wanted, old, new, older, newer):
        return None
    relation = next(iter(sorted(wanted.topics & new.topics)), " ".join(sorted(wanted.words & new.words)) or "value")
    others = old.others - {"he"} if _THING.match(fold_in_place(older)) else old.others
    is_of_speaker = not others or bool(old.others & (new.others | wanted.others | wanted.all_words | new.all_words))
    is_of_kind = bool(new.signal or _are_of_one_kind(old, new))
    is_sure = (
        evidence >= _SURE
        and not (signs["lacks a name"] or wanted.is_of_event or signs["no wanted kind"])
        and (
            (evidence >= _CERTAIN and signs["names the older one"] > _NAMED)
            or (
                _says_as_much(wanted, asked, older, newer, signs)
                and is_of_kind
                and (evidence >= _CERTAIN or not signs["lacks a word"])
            )
        )
        and not ended_values.is_in_compound(asked, older, newer)
    )
    if is_of_speaker and not signs["named apart"] and (is_sure or (is_single and _are_of_one_kind(old, new))):
        return Link(relation, "change" if new.signal else "single value", "high")
    if _coverage(asked, newer) < _coverage(asked, older) / 2 and not (
        new.topics & old.topics or signs["names the older one"]
    ):
        return None
    return Link(relation, "same words", "low")


def _says_as_much(wanted: Question, asked: str, older: str, newer: str, signs: dict[str, float]) -> bool:
    """Return True if the newer text has something of what is asked, or as much as the older one and its words."""
    return _answers(wanted, asked, newer) or (signs["shared words"] > 1 / 2 and not _coverage(asked, older))


def ends_value(asked: str, older: str, newer: str) -> bool:
    """Return True if a newer text ends the value of an older one, whatever words it shares with the question."""
    return may_be_replaced(asked, older) and may_replace(asked, newer) and _ends_value(asked, older, newer)


def _ends_value(asked: str, older: str, newer: str) -> bool:
    if not ended_values.ends_value(asked, older, newer):
        return False
    old, new = said(older), said(newer)
    return old is not None and new is not None and new.others <= old.others | question(asked).others


def _may_follow(wanted: Question, old: Said, new: Said) -> bool:
    """Return True if a newer text states something about the same that the older one does not say."""
    if not new.all_words - old.all_words - wanted.all_words or (not new.signal and old.all_words <= new.all_words):
        return False
    is_state = "status" in new.topics or bool(new.numbers - old.numbers)
    if not new.ends and new.words <= old.words and not is_state:  # it says the same value again
        return False
    has_common = not (old.beginnings.isdisjoint(new.beginnings) and old.topics.isdisjoint(new.topics))
    return has_common or _shared_compounds(old.words, new.words) > 0


def _is_of_another(wanted: Question, old: Said, new: Said, older: str, newer: str) -> bool:
    """Return True if a newer text is about another thing, topic or relation, or tells its number in other units."""
    named = {one for one in wanted.numbers & old.numbers if len(one) > 1}  # task 72, task 73
    is_of_other_number = bool(named and new.numbers - old.numbers) and named.isdisjoint(new.numbers)
    if (
        is_of_other_number
        or _is_of_other_day(wanted.text, older, newer)
        or _is_done_by_another(wanted, older, newer)
        or _names_older_thing(wanted, older, newer)
        or _differ_in_units(older, newer)
    ):
        return True
    if (other := _HAN_OBJECT.search(newer)) and set(other[1]).isdisjoint(wanted.text + older):
        return True
    is_change = new.signal == _OF_CHANGE
    return not is_change and (_is_of_other_topic(wanted, old, new) or not may_be_of_one_thing(older, newer))


def _is_of_other_day(asked: str, older: str, newer: str) -> bool:
    """Return True if a question and the older text name a weekday, and the newer one has only another one."""
    day, old, new = ({match[0] for match in _WEEKDAY.finditer(text.lower())} for text in (asked, older, newer))
    return bool(day & old and new) and day.isdisjoint(new)


_WEEKDAY = lazy_pattern(WEEKDAY)


def _is_done_by_another(wanted: Question, older: str, newer: str) -> bool:
    """Return True if a person or thing of the speaker does what the speaker did: "I report to", "my intern reports to"."""
    done = {match[1][:4] for match in _DOES.finditer(fold_in_place(_read(older)))}
    return any(
        match["does"][:4] in done and match["who"] not in older.casefold() and not _has(wanted.all_words, match["who"])
        for match in _OF_SPEAKER_DOES.finditer(fold_in_place(_read(newer)))
    )


_DOES = lazy_pattern(r"\b(?:i|we|user) (?:(?:now|still|also|currently) )?(\w{4,})")
_OF_SPEAKER_DOES = lazy_pattern(
    r"\b(?:my|our|user's) (?P<who>\w{3,}) (?:(?:now|still|also|just|currently) )?(?P<does>\w{4,})"
)
_HAN_OBJECT = lazy_pattern("把([^，。把]{1,5}?)[卖换改染刷漆搬调移送]")
"""The thing that a Chinese text says to have changed."""
_UNITS: Final = (
    lazy_pattern(r"[$\u20ac\u00a3\u00a5] ?\d|\d ?(?:k )?(?:euros?|eur|dollars?|usd|bucks|pounds a|quid|gbp|cents?|francs?|reais|pesos|[$\u20ac\u00a3]|\u5143|\u5757\u94b1?|\u4e07\u5143)(?![a-z])"),
    lazy_pattern(r"\d ?(?:mg|milligrams?|g|grams?|kg|kilos?|kilograms?|lbs?|stone|gramm|gramos?|grammes?|\u6beb\u514b|\u514b|\u516c\u65a4|\u65a4)(?![a-z])"),
    lazy_pattern(r"\d ?(?:mm|cm|m|km|met(?:er|re)s?|miles?|feet|inch(?:es)?|\u5398\u7c73|\u7c73|\u516c\u91cc)(?![a-z])"),
    lazy_pattern(r"\d ?(?:%|percent|prozent|por ciento|pour cent|por cento)"),
)  # fmt: skip
"""Numbers of money, weights, lengths and shares."""


def _differ_in_units(older: str, newer: str) -> bool:
    """Return True if both texts tell a number in known units, and none of one kind."""
    before, after = (
        {kind for kind, pattern in enumerate(_UNITS) if pattern.search(text.lower())} for text in (older, newer)
    )
    return bool(before and after) and before.isdisjoint(after)


class _Pair(NamedTuple):
    asked: str
    older: str
    newer: str
    frame: str


def _signs(wanted: Question, old: Said, new: Said, pair: _Pair) -> dict[str, float]:
    """Return the signs that a newer text replaces an older one, each from 0 to 1; that of its length may be more."""
    before, after = _coverage(pair.asked, pair.older), _coverage(pair.asked, pair.newer)
    both = min(before, after)
    is_change, is_now = new.signal == _OF_CHANGE, new.signal == 1
    shared = old.beginnings & new.beginnings
    is_other_number = bool(old.numbers - new.numbers - wanted.numbers and new.numbers - old.numbers - wanted.numbers)
    is_other_name = bool(old.names - new.names - wanted.all_words and new.names - old.names)
    is_topic = bool(old.topics & new.topics)
    asked = len(wanted.groups) + len(wanted.words)
    lacking = len(_lacking(wanted, old, new))
    values = frozenset(word for word in old.words - _HAN_UNITS if not _has(wanted.all_words, word))
    named = sum(_has(new.words, word) for word in values)
    is_apart = _are_named_apart(pair.older, pair.newer, has_signal=bool(new.signal))
    is_of_person, is_person = _WHO.search(wanted.text) is not None, bool(new.names - old.names - wanted.all_words)
    return {
        "change": is_change,
        "now, answers": is_now * after,
        "ends the older one": new.ends and named > 0,
        "names the older one": named / len(values) if values else 0,
        "begins with the older one": _begins_with(pair.newer, values),
        "shared words": min(len(shared), 3) / 3,
        "same topic": is_topic,
        "same sentence": bool(pair.frame),
        "same sentence of an agent": bool(pair.frame) and _OF_AGENT.match(fold_in_place(pair.older)) is not None,
        "several clauses": len(_clauses(pair.newer)) > 1,
        "shared compounds": min(_shared_compounds(old.words, new.words), 2) / 2,
        "no answer before": not before,
        "both answer": both,
        "another number": is_other_number,
        "another value": (is_other_number or is_other_name) * both,
        "another person": is_of_person and is_person,
        "no person": is_of_person and not is_person and not _HAN.search(pair.newer),
        "no wanted kind": bool(wanted.wants) and not wanted.wants & new.kinds,
        "neither topic nor change": not new.signal and not is_topic,
        "lacks a word": bool(0 < lacking < asked and after),
        "lacks a name": (
            is_now and not is_other_number and bool(old.names - wanted.all_words) and not new.names - old.names
        ),
        "no separate value": new.is_facet,
        "several values": wanted.is_of_several_values and not new.ends,
        "several things": wanted.is_of_several_things and "number" not in wanted.wants,
        "long before": math.log(max(len(pair.older.encode()) / _SHORT, 1)),
        "named apart": is_apart,
        "named apart, no word of a change": is_apart and not new.signal,
        "named apart, another number": is_apart and is_other_number,
    }


_HAN_UNITS: Final = frozenset("周月日号点岁元块个")
_OF_AGENT = lazy_pattern(
    r"(?:the users?\b|(?:der|die) (?:be)?nutzer|(?:el|la) usuari|l'utilisat|[oa] usuari|l'utente|de gebruik|用户)",
    re.IGNORECASE,
)


def _shared_compounds(before: frozenset[str], after: frozenset[str]) -> int:
    """Return how many words of a text are a part of one of the other: "Schlüssel" and "Gartenschlüssel"."""
    return sum(
        one[:_CASED] != other[:_CASED] and (one in other or other in one)
        for one in before
        if len(one) > _CASED and one.isascii()
        for other in after
        if len(other) > _CASED
    )


_WHO = lazy_pattern(r"\b(?:who|whom|whose|wer|wen|wem|wie|quien|qui|quem|chi)\b|\u8c01")


def _begins_with(newer: str, values: frozenset[str]) -> bool:
    """Return True if the first of several clauses is about the older value: "Crypt flooded. We sing at …"."""
    clauses = _clauses(newer)
    return len(clauses) > 1 and any(_has(clauses[0].words, word) for word in values)


def _lacking(wanted: Question, old: Said, new: Said) -> list[str]:
    """Return what the question asks for, the older text has, and the newer one lacks."""
    groups = [next(iter(one)) for one in wanted.groups if one & old.topics and not one & new.topics]
    return groups + [one for one in wanted.words if _has(old.words, one) and not _has(new.words, one)]


def _is_of_other_topic(wanted: Question, old: Said, new: Said) -> bool:
    """Return True if a newer text has another topic in the place of one that the question asks for."""
    others = new.topics - old.topics - wanted.topics - _GENERIC
    return bool(others) and any(one & old.topics and not one & new.topics for one in wanted.groups)


_BREAK = lazy_pattern("[,;，；。]\\W*\\w")


def _names_older_thing(wanted: Question, older: str, newer: str) -> bool:
    """Return True if a question names the subject of the older text, and the newer one has another: plan A, plan B."""
    (old, says_old), (new, says_new) = _subject(older), _subject(newer)
    if not (says_old and says_new and old and new) or _BREAK.search(newer):
        return False
    if old[-1] != new[-1] if _HAN.search(older) else says_old != says_new:
        return False
    before, after = _things(old), _things(new)
    asked = {token.casefold() for token in _tokens(wanted.text)}
    said_again = _beginnings(token.casefold() for token in _tokens(newer))
    named = {one for one in before & asked if one[:_CASED] not in said_again}
    return bool(named and after - before) and not (after - before) & asked


def _things(subject: list[str]) -> set[str]:
    """Return the words of a subject without articles and pronouns. "A" is one only as the first."""
    return {
        token.casefold()
        for place, token in enumerate(subject)
        if (token if place else token.casefold()) not in _ARTICLES
    }


def _is_one_thing(old: Said, frame: str) -> bool:
    """Return True for one sentence about a thing of the speaker: "My rent is …"."""
    return not old.others and bool(_IS_ONE.match(fold_in_place(frame))) and not _SEVERAL_NOUN.search(frame)


def _are_of_one_kind(old: Said, new: Said) -> bool:
    is_name = bool(old.names and new.names - old.names) and not (new.kinds - old.kinds) & {"day", "clock"}
    return bool(old.kinds & new.kinds) or is_name


@lru_cache(maxsize=16_384)
def _coverage(asked: str, text: str) -> float:
    """Return the share of the topics and words of a question that a short text has."""
    wanted, told = question(asked), said(text)
    if told is None:
        return 0.0
    return _share(wanted, told.topics, told.words)


@lru_cache(maxsize=16_384)
def _coverage_of_clause(asked: str, text: str) -> float:
    """Return the most that one clause of a text has of the topics and words of a question."""
    wanted = question(asked)
    return max((_share(wanted, one.topics, one.words) for one in _clauses(text)), default=0.0)


def _answers(wanted: Question, asked: str, text: str) -> bool:
    """Return True if a text has something of what a question asks for, or the question names nothing."""
    return not (wanted.groups or wanted.words) or _coverage(asked, text) > 0


def _share(wanted: Question, topics: frozenset[str], words: frozenset[str]) -> float:
    found = [*(bool(group & topics) for group in wanted.groups), *(_has(words, one) for one in wanted.words)]
    return sum(found) / len(found) if found else 0.0


def gives_way(asked: str, first: str, other: str, *, is_weaker: bool = False) -> bool:
    """Return True if another text states the answer, and the first one does not: it doubts, or is of other persons.

    `is_weaker`: the first one has a weaker source.
    """
    wanted, told, stated = question(asked), said(first), said(other)
    if not wanted.is_of_state or stated is None or not stated.is_statement:
        return False
    is_of_others = told is not None and bool(told.others - wanted.others) and stated.others <= wanted.others
    if told is not None and is_of_others and told.signal and not _is_owned(first, told.others - wanted.others):
        is_of_others = False  # another person may have changed what is of the speaker
    is_doubt = told is not None and stated.is_plain and (not told.is_plain or told.is_temporary)
    if is_weaker and not wanted.is_of_speaker and (wanted.others - stated.others or _is_of_named(asked, other)):
        return False
    is_weaker = is_weaker and stated.is_plain and (wanted.is_of_speaker or stated.is_of_speaker)
    if not (is_weaker or is_doubt or is_of_others):
        return False
    if told is not None and not (wanted.groups or wanted.words):
        return not told.beginnings.isdisjoint(stated.beginnings)
    of_first = _coverage(asked, first)
    return (of_first > 0 or is_weaker) and _coverage(asked, other) >= max(of_first, _LEAST_COVERAGE)


def _is_of_named(asked: str, other: str) -> bool:
    """Return True if a question names someone whom another text does not: "What does Carol say?"."""
    return any(match[0] not in other for match in _NAME_INSIDE.finditer(asked))


_NAME_INSIDE = lazy_pattern(r"(?<=[a-z] )[A-Z]\w+")


def _is_owned(text: str, others: Iterable[str]) -> bool:
    """Return True if a text is about a thing of another person: "my cousin's driving test"."""
    folded = fold_in_place(_read(text))
    return any(one.removesuffix("'s") + "'s" in folded for one in others)


_LEAST_COVERAGE: Final = 0.5


@lru_cache(maxsize=4096)
def _tokens(text: str) -> list[str]:
    return _TOKEN.findall(text)


def _subject(text: str) -> tuple[list[str], str]:
    """Return the words of a text before what says something of them, and that word, empty if there is none."""
    tokens = _tokens(text)
    place = next((at for at, token in enumerate(tokens) if token.casefold() in _PREDICATES), None)
    return tokens[:place], "" if place is None else tokens[place].casefold()


def _are_named_apart(older: str, newer: str, *, has_signal: bool) -> bool:
    """Return True for texts about things that a number or name tells apart: "Order 12 is …", "Note 12".

    Without a word of a change, the first difference must be in what is said, not in what it is said of.
    """
    (old, says_old), (new, says_new) = _subject(older), _subject(newer)
    says = bool(says_old and says_new)
    numbers = [{token for token in subject if any(map(str.isdigit, token))} for subject in (old, new)]
    if says and all(numbers) and numbers[0] != numbers[1]:
        return True
    before, rest = _in_common(older, newer)
    is_alike = rest * 2 >= max(len(_tokens(older)), len(_tokens(newer)))
    if (
        is_alike
        and before < len(old) + (not has_signal)
        and (says or not has_signal or _differ_in_numbers(older, newer))
    ):
        return True
    if has_signal:
        return False
    names = [_things(subject) for subject in (old, new)]
    return not says or bool(names[0] & names[1] and names[0] - names[1] and names[1] - names[0])


def _differ_in_numbers(older: str, newer: str) -> bool:
    return all(any(map(str.isdigit, token)) for token in set(_tokens(older)) ^ set(_tokens(newer)))


_ARTICLES: Final = frozenset(succession_words.ARTICLES.split())
_PREDICATES: Final = frozenset(succession_words.PREDICATES.split())


def _in_common(older: str, newer: str) -> tuple[int, int]:
    """Return how many first words two texts share, and how many first and last ones."""
    old, new = _tokens(older), _tokens(newer)
    before = after = 0
    while before < min(len(old), len(new)) and old[before] == new[before]:
        before += 1
    while after < min(len(old), len(new)) - before and old[-1 - after] == new[-1 - after]:
        after += 1
    return before, before + after


def _frame(older: str, newer: str) -> str:
    """Return the words before the one span in which two texts differ; empty if they have less than half in common."""
    before, rest = _in_common(older, newer)
    if before < 2 or rest * 2 < max(len(_tokens(older)), len(_tokens(newer))):
        return ""
    return " ".join(_tokens(newer)[:before])


_SEVERAL_NOUN = lazy_pattern(
    "|".join(rf"\b{word}\b" if word.isascii() else word for word in sorted(MULTIPLE)), re.IGNORECASE
)
_ONE_NOUN = lazy_pattern(
    r"\b(?:what|which) (?:\w+ )?(?:day|week|weekend|morning|plan|team)\b|\b(?i:team|daughter|son|dog|cat|sister|brother) (?=[A-Z][a-z])"
)
"""Nouns of several things that a question asks one of: "which day", "my dog Rufus"."""
_TOKEN = lazy_pattern(r"[^\W\u4e00-\u9fff]+(?:'\w+)?|[\u4e00-\u9fff=]|:(?!\d)")
_IS_ONE = lazy_pattern(
    r"(?:my|our|the|(?:the )?user's|mein\w*|unser\w*|der|die|das|el|la|mi|le|mon|ma|o|a|meu|minha) (?:[\w-]+ ){1,5}(?:is|ist|es|est|e|:)\b"
    r"|用 户 的 .*是|我 的 .*是"
)


def _is_of_one_subject(wanted: Question, old: Said, new: Said, older: str, newer: str) -> bool:
    """Return True if both texts speak of whom or what the question asks for."""
    asked = _topics_of(wanted)
    told = older.casefold()
    named = {one for one in new.others if one in (told.split() if one == "he" else told)}
    known = old.others | wanted.others | old.all_words | named | ({"he"} - new.others)
    clauses = [
        one for one in _clauses(newer) if one.topics & asked or any(_has(one.words, word) for word in wanted.words)
    ]
    if not any(
        (
            one.others <= known
            and (
                not one.subject
                or one.subject in old.all_words
                or _has(wanted.all_words, one.subject)
                or bool(_marks_of_word(one.subject) & asked)
            )
        )
        or (new.signal == _OF_CHANGE and _is_done_to_it(wanted, old, one))
        for one in clauses or _clauses(newer)
    ):
        return False
    heads = {head: what for what, head in old.owned}
    for what, head in new.owned:
        if _HAN.match(what):
            if head in wanted.text and what not in wanted.text and what not in older:
                return False
            continue
        is_known = (
            _NUMBER_WORD.search(what)
            or what in old.all_words
            or _has(wanted.all_words, what)
            or what in _ASKING
            or _NEW.match(what)
        )
        is_value = head in heads and not _has(wanted.all_words, heads[head])
        if not (is_known or is_value or not _has(wanted.all_words, head)):
            return False
    return True


def _is_done_to_it(wanted: Question, old: Said, clause: Clause) -> bool:
    """Return True if a clause says that another did something to what is asked for, and the older text speaks of it."""
    asked = _topics_of(wanted)
    return any(
        (_has(wanted.all_words, word) or not asked.isdisjoint(_marks_of_word(word))) and _has(old.all_words, word)
        for word in clause.done_to
        if word not in _ASKING
    )


def _topics_of(wanted: Question) -> frozenset[str]:
    return frozenset(chain.from_iterable(wanted.groups))


_NEW = lazy_pattern(r"(?:new|other|old|current|neue|nuev|nouve|nov|latest|whole|entire|own)")


_TO_YOU = lazy_pattern(r"\b(?:yours?|you(?! can\b)|hey|thanks|wow)\b", re.IGNORECASE)
_SEVERAL = lazy_pattern(
    r"\b(?:speak|play(?!ing)|like|love|know|buy|see|meet|visit|(?:pet|haustier|tiere|anima(?:l|ux|is)|friend|freund|colleague|hobb|instrument|skill|all?erg|sprech|habl|parl|fal[ao]"
    r"|collect)\w*)\b|会说|会什么|见|买|过敏|爱好|朋友|同事"
)
"""Questions with several answers at a time."""


@lru_cache(maxsize=16_384)
def _has(words: frozenset[str], word: str) -> bool:
    """Return True if words hold one, or another inflection or a compound of it."""
    if word in words:
        return True
    if len(word) < _CASED or not word.isascii():
        return False
    return any(one[:_CASED] == word[:_CASED] or word in one or (len(one) >= _CASED and one in word) for one in words)
