"""Compare the wording of short texts: equal ones, questions, acknowledgments, and content words."""

import re
import unicodedata
from functools import lru_cache
from typing import Final, NamedTuple

from store.text.normalize import UNSPACED, WORD, fold
from store.text.stems import stems
from store.text.tokens import STOP_WORDS

_END_OF_SENTENCE: Final = " .!?。！？…"
_WORDS = re.compile(f"(?P<unspaced>[{UNSPACED}])|(?P<word>[{WORD}]+(?:[.'-][{WORD}]+)*)")
_RAW_WORDS = re.compile("[\u2e80-\uffff]|[^\\W\u2e80-\uffff]{2,}")
_NAME = re.compile(r"(?<=[^\W_] )[A-ZÄÖÜ][\w'-]+|[A-Z]{2,}\w*")
_HAS_NUMBER = re.compile(r"\d|[零一二三四五六七八九十百千万亿]")
_QUESTION_MARK = re.compile(r"[?？]\s*[\"'”’」』)）]*\s*$")

_WH: Final = (
    "what|when|where|who|whom|whose|which|why|how|wann|wo|woher|wohin|wer|wen|wem|wessen|was|wie|wieviel|warum|wieso|"
    "weshalb|welche[rsmn]?"
)
_OPENING: Final = (
    r"(?:(?:hey|hi|hello|ok|okay|so|and|but|please|sorry|hallo|bitte|und|also|wei(?:ß|ss)t du(?: noch)?|sag mal|"
    r"remind me|"
    r"tell me|(?:do|can|could) you (?:know|remember|tell me|remind me)|i forgot|again)[\s,.:!]+){0,3}"
)
_WH_QUESTION = re.compile(rf"{_OPENING}(?:{_WH})(?:'?s|'re)?\b", re.IGNORECASE)
_YES_NO_QUESTION = re.compile(
    rf"{_OPENING}(?:is|are|was|were|am|do|does|did|have|has|had|can|could|will|would|should|shall|may|ist|sind|war|hat|"
    r"habe|haben|kann|kannst|wird|soll|gibt|hast|bist|bin)\s+(?:i|you|he|she|it|we|they|my|your|his|her|our|their|the|an?|"
    r"this|that|these|those|there|any|ich|du|er|sie|es|wir|mein\w*|dein\w*|unser\w*|der|die|das|ein\w*)\b",
    re.IGNORECASE,
)
_CHINESE_QUESTION = re.compile(
    "什么|什麼|谁|誰|哪|几|幾|多少|多大|多久|多远|多高|多重|怎么|怎麼|怎样|为什么|為什麼|何时|如何|"
    "是不是|有没有|能不能|会不会|要不要|吗|嗎"
)
_CHINESE_FILLER = frozenset(
    "的了是在对對我你您他她它们和与跟吗嗎呢吧啊呀嘛哦就也都很还這这那个個请問问告诉知道记得住一下叫做为有什么麼谁誰哪里几幾多少大"
    "久远高怎样何时如是否不能会要说再"
)
_FILLER_WORDS = """
remember note please again know tell call name named say said let recall remind forget forgot here now just also
really actually very still is user users fyi der die das den dem des ein eine einen einem einer ist sind war waren hat
haben habe hast bin bist ich du er sie es wir ihr mein meine meinen meinem meiner dein deine dir mir unser unsere und
oder zu zum zur im am in von vom mit für fur auf bei nach doch mal noch bitte merke merk dass heißt heisst nochmal
weißt weisst any anything anyone anybody something someone ever wann wo wer wen wem was wie warum welche welcher
welches
"""
_FILLER = frozenset(stems(fold(word))[0] for word in _FILLER_WORDS.split())
_NEGATION = re.compile(
    r"\b(?:not|no|never|none|neither|nor|without|cannot|nicht|kein\w*|nie|niemals|ohne)\b|n['’]t\b|[不没沒别別未无無非]",
    re.IGNORECASE,
)
_ACKNOWLEDGMENT_WORDS = """
ok okay okey k kk thanks thank you thx ty cheers yes yeah yep yup no nope sure great cool nice good fine perfect
awesome alright right got it i see hi hello hey bye goodbye lol haha hmm hm mhm please welcome your you're so much
very sounds all done danke dank vielen schön ja nein gut super prima klar alles genau hallo tschüss bitte sehr merci
oui non gracias si sí vale hola ciao grazie
"""
_ACKNOWLEDGMENTS = frozenset(_ACKNOWLEDGMENT_WORDS.split())
_CHINESE_ACKNOWLEDGMENT = re.compile(
    "(?:好的?|嗯+|哦+|噢|谢谢(?:你|您|啦|了)?|謝謝(?:你|您)?|多谢|感谢|收到|知道了?|了解|明白了?|是的?|对的?|行|可以|不客气|你好|"
    "您好|再见|拜拜|哈+|没事|没问题|没关系|はい|ありがとう(?:ございます)?|了|啦|啊|呀|吧|！|，|。|～|\\s)+"
)
_NO_ANSWER = re.compile(
    r"\b(?:i(?:'m| am)? (?:not (?:sure|certain)|(?:do not|don't|dont) (?:know|remember|recall|have)|"
    r"have no (?:idea|record))|no idea|let me (?:look|check|see|think)|wei(?:ß|ss) ich nicht|ich wei(?:ß|ss)|"
    r"nicht sicher|keine ahnung|lass mich|ich schaue?)\b|"
    "不确定|不知道|不清楚|不记得|没有(?:记录|相关)|让我(?:看看|查)|查一下|不確定|讓我",
    re.IGNORECASE,
)
_MAX_NO_ANSWER: Final = 120
_MAX_ACKNOWLEDGMENT: Final = 40
_WHOLE_SHARE: Final = 0.6
_MAX_MORE: Final = 3
"""A wording of the same fact may hold a third more content words."""


class Wording(NamedTuple):
    """The parts of a text that tell facts apart. `words` are content words as stems, Chinese characters one by one."""

    words: frozenset[str]
    numbers: frozenset[str]
    is_negated: bool


def normalized(text: str) -> str:
    """Return the text with normalized character width, case, white space and final punctuation."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    return " ".join(folded.split()).rstrip(_END_OF_SENTENCE)


@lru_cache(maxsize=4096)
def wording(text: str) -> Wording:
    """Return the content words of a short text, its numbers, and whether it is negated."""
    words, numbers = set[str](), set[str]()
    for match in _WORDS.finditer(fold(text)):
        found = match[0]
        if _HAS_NUMBER.search(found):
            numbers.add(found)
        elif match.lastgroup == "unspaced":
            if found not in _CHINESE_FILLER:
                words.add(found)
        else:
            words |= {one for part in re.split(r"['-]", found) if (one := _content_word(part))}
    return Wording(frozenset(words), frozenset(numbers), bool(_NEGATION.search(text)))


def raw_words(text: str) -> frozenset[str]:
    """Return the words of a text as they are written, and Chinese characters; cheaper than `wording`."""
    return frozenset(_RAW_WORDS.findall(text.lower()))


@lru_cache(maxsize=65_536)
def _content_word(word: str) -> str:
    if word in STOP_WORDS or len(word) < 2:
        return ""
    base = stems(word)[0]
    return "" if base in _FILLER else base


def names_in(text: str) -> set[str]:
    """Return the stems of words that are written as names: with a capital inside a sentence, or as initials."""
    return {stems(fold(part))[0] for found in _NAME.findall(text) for part in re.split(r"['-]", found)[:1] if part}


def is_question(text: str) -> bool:
    """Return True for a text that asks, with or without a question mark, in English, German or Chinese."""
    text = text.strip()
    return bool(
        _QUESTION_MARK.search(text)
        or _WH_QUESTION.match(text)
        or _YES_NO_QUESTION.match(text)
        or _CHINESE_QUESTION.search(text)
    )


def repeats_question(text: str, query: str) -> bool:
    """Return True for a question that asks what the query asks, and tells nothing more.

    One without a question word may have no content word that the query lacks, because such a word may be the answer.
    """
    if not is_question(text):
        return False
    asked, wanted = wording(text), wording(query)
    if not asked.words or not asked.numbers <= wanted.numbers:
        return False
    is_open = bool(_WH_QUESTION.match(text.strip()) or _CHINESE_QUESTION.search(text))
    if not (is_open or asked.words <= wanted.words):
        return False
    return len(asked.words & wanted.words) >= _WHOLE_SHARE * len(asked.words | wanted.words)


def is_no_answer(text: str) -> bool:
    """Return True for a short reply that says that its speaker does not know, and tells no number."""
    text = text.replace("’", "'")
    return len(text) <= _MAX_NO_ANSWER and not _HAS_NUMBER.search(text) and bool(_NO_ANSWER.search(text))


def is_acknowledgment(text: str) -> bool:
    """Return True for a text that says no more than "ok", "thanks" or the like."""
    if len(text) > _MAX_ACKNOWLEDGMENT:
        return False
    words = re.findall(r"\w+(?:['’]\w+)?", text.casefold())
    if not words:
        return bool(text.strip()) and not any(char.isalnum() for char in text)
    return all(word in _ACKNOWLEDGMENTS for word in words) or bool(_CHINESE_ACKNOWLEDGMENT.fullmatch(text.strip()))


def is_same_fact(one: Wording, other: Wording, names: frozenset[str]) -> bool:
    """Return True if two texts are wordings of one fact: neither number, name nor negation differs.

    `names` are the names in all texts that are compared. All content words of one are in the other, which has few more.
    """
    if one.is_negated != other.is_negated or one.numbers != other.numbers:
        return False
    more = one.words ^ other.words
    if more & names or not (one.words <= other.words or other.words <= one.words):
        return False
    if any(word >= "\u2e80" for word in more):  # a character more may be another word
        return False
    shared = len(one.words & other.words) + len(one.numbers)
    return shared > 1 and len(more) * _MAX_MORE <= shared
