"""Compare the wording of short texts: equal ones, questions, acknowledgments, and content words."""

import re
import unicodedata
from collections.abc import Set
from functools import cache, lru_cache
from typing import Final, NamedTuple

from core.patterns import lazy_pattern
from store.text import languages
from store.text.normalize import UNSPACED, WORD, fold
from store.text.stems import stems
from store.text.tokens import STOP_WORDS

_END_OF_SENTENCE: Final = " .!?。！？…"
_WORDS = lazy_pattern(f"(?P<unspaced>[{UNSPACED}])|(?P<word>[{WORD}]+(?:[.'-][{WORD}]+)*)")
_RAW_WORDS = lazy_pattern("[\u2e80-\uffff]|[^\\W\u2e80-\uffff]{2,}")
_NAME = lazy_pattern(r"(?<=[^\W_] )[A-ZÄÖÜ][\w'-]+|[A-Z]{2,}\w*")
_HAS_NUMBER = lazy_pattern(r"\d|[零一二三四五六七八九十百千万亿]")
_QUESTION_MARK = lazy_pattern(r"[?？]\s*[\"'”’」』)）]*\s*$")
_SENTENCE = lazy_pattern(r"[^.!?。！？;；\n]+(?:[.](?=\w)[^.!?。！？;；\n]+)*[.!?。！？;；\n]*")

_WH: Final = (
    "what|when|where|who|whom|whose|which|why|how|wann|wo|woher|wohin|wer|wen|wem|wessen|was|wie|wieviel|warum|wieso|"
    "weshalb|welche[rsmn]?|cu[aá]l(?:es)?|qui[eé]n(?:es)?|d[oó]nde|cu[aá]nt[oa]s?|(?:dans |a |à |de |en )?quel(?:le)?s?"
    r"|combien|c'est (?:quoi|qui)|(?:em )?qual|quais|onde|(?:com |de )?quem|(?:em|de) que|cad[eê]"
)
_OPENING: Final = (
    r"(?:(?:hey|hi|hello|ok|okay|so|and|but|please|sorry|hallo|bitte|und|also|wei(?:ß|ss)t du(?: noch)?|sag mal|"
    r"remind me|"
    r"tell me|(?:do|can|could) you (?:know|remember|tell me|remind me)|i forgot|again)[\s,.:!]+){0,3}"
)
_WH_QUESTION = lazy_pattern(rf"{_OPENING}(?:{_WH})(?:'?s|'re)?\b", re.IGNORECASE)
_YES_NO_QUESTION = lazy_pattern(
    rf"{_OPENING}(?:is|are|was|were|am|do|does|did|have|has|had|can|could|will|would|should|shall|may|ist|sind|war|hat|"
    r"habe|haben|kann|kannst|wird|soll|gibt|hast|bist|bin)\s+(?:i|you|he|she|it|we|they|my|your|his|her|our|their|the|an?|"
    r"this|that|these|those|there|any|ich|du|er|sie|es|wir|mein\w*|dein\w*|unser\w*|der|die|das|ein\w*)\b",
    re.IGNORECASE,
)
_CHINESE_QUESTION = lazy_pattern(
    "什么|什麼|谁|誰|哪|几|幾|多少|多大|多久|多远|多高|多重|怎么|怎麼|怎样|为什么|為什麼|何时|如何|"
    "是不是|有没有|能不能|会不会|要不要|吗|嗎"
)
_ASKS_INSIDE = lazy_pattern(
    rf"\b(?:{_WH}|c[oó]mo|qu[eé]|que|cu[aá]ndo|quand|quando|o[uù]|comment|qui)\b|什么|什麼|谁|誰|哪|几|幾|多少|多大|多久|怎|为什么"
    "|何|啥|どこ|いつ|だれ|なに|いくら|どれ|どの|どう|なぜ",
    re.IGNORECASE,
)
_REQUEST = lazy_pattern(
    rf"{_OPENING}(?:(?:remind|tell|show) me (?:of|about|again|my|the|{_WH})|rec(?:u[eé]rd|ord)a(?:me|-me)|me lembra"
    r"|dime|diga-me|me diz|rappelle(?:-moi|z-moi| moi)|dis(?:-moi| moi)|sag mir|erinner[en]? mich an|告诉我"
    r"|提醒我.{0,6}(?:是|在|叫))"
    r"(?! (?:que|de|dass|comprar|llamar|ligar|acheter|appeler|zu)\b)",
    re.IGNORECASE,
)
_CHINESE_YES_NO = lazy_pattern("吗|嗎|是不是|有没有|能不能|会不会|要不要")
CHINESE_FILLER = frozenset(
    "的了是在对對我你您他她它们和与跟吗嗎呢吧啊呀嘛哦就也都很还這这那个個请問问告诉知道记得住一下叫做为有什么麼谁誰哪里几幾多少大"
    "久远高怎样何时如是否不能会要说再"
)
_FILLER_WORDS = """
remember note please pls plz stp svp pf again know tell call name named say said let recall remind forget forgot here
now just also really actually very still is user users fyi der die das den dem des ein eine einen einem einer ist sind
war waren hat haben habe hast bin bist ich du er sie es wir ihr mein meine meinen meinem meiner dein deine dir mir
unser unsere und oder zu zum zur im am in von vom mit für fur auf bei nach doch mal noch bitte merke merk dass heißt
heisst nochmal weißt weisst any anything anyone anybody something someone ever wann wo wer wen wem was wie warum welche
welcher welches
"""
CONTRACTED_NOT = lazy_pattern(r"\b\w+n't\b")
_NEGATION = lazy_pattern(
    r"\b(?:not|no|never|none|nothing|neither|nor|without|cannot|unable|nicht|nichts|kein\w*|nada|rien|nie|niemals|ohne|pas|"
    r"jamais|aucune?|sans|n[aã]o|nunca|jam[aá]s|sin|sem|ning[uú]n\w*|nenhum\w*)\b|n['’]t\b|[不没沒别別未无無非]|ません",
    re.IGNORECASE,
)
_ACKNOWLEDGMENT_WORDS = """
ok okay okey k kk thanks thank you thx ty cheers yes yeah yep yup no nope sure great cool nice good fine perfect
awesome alright right got it i see hi hello hey bye goodbye lol haha hmm hm mhm please welcome your you're so much
very sounds all done danke dank vielen schön ja nein gut super prima klar alles genau hallo tschüss bitte sehr merci
oui non gracias si sí vale hola ciao grazie
"""
_ACKNOWLEDGMENTS = frozenset(_ACKNOWLEDGMENT_WORDS.split())
_CHINESE_ACKNOWLEDGMENT = lazy_pattern(
    "(?:好的?|嗯+|哦+|噢|谢谢(?:你|您|啦|了)?|謝謝(?:你|您)?|多谢|感谢|收到|知道了?|了解|明白了?|是的?|对的?|行|可以|不客气|你好|"
    "您好|再见|拜拜|哈+|没事|没问题|没关系|はい|ありがとう(?:ございます)?|了|啦|啊|呀|吧|！|，|。|～|\\s)+"
)
_NO_ANSWER = lazy_pattern(
    r"\b(?:i(?:'m| am)? (?:not (?:sure|certain)|(?:do not|don't|dont) (?:know|remember|recall|have)|"
    r"have no (?:idea|record))|no idea|let me (?:look|check|see|think)|wei(?:ß|ss) ich nicht|ich wei(?:ß|ss)|"
    r"nicht sicher|keine ahnung|lass mich|ich schaue?)\b|"
    r"\b(?:no tengo|no (?:lo )?s[eé]|je n['’]ai (?:pas|aucun)|je ne (?:sais|trouve|vois)|n[aã]o tenho|n[aã]o sei|"
    r"habe (?:ich )?keine?|liegt mir nicht|liegen mir keine)\b|"
    "不确定|不知道|不清楚|不记得|没有(?:记录|相关)|让我(?:看看|查)|查一下|不確定|讓我|[わ分]かりません|知りません",
    re.IGNORECASE,
)
_MAX_NO_ANSWER: Final = 120
_MAX_ACKNOWLEDGMENT: Final = 40
_WHOLE_SHARE: Final = 0.5
_KNOWING_WORDS: Final = """
know known aware heard register decided record recorded note noted info information detail find found locate see
mention mentioned tell told say said remember recall sure certain idea clue answer access list listed save saved store
stored available share shared come speak talk discuss give weiss wissen weisst kenne kennen kennt bekannt angabe
angaben informationen notiert notiz gespeichert hinterlegt gefunden finden finde erwahnt gesagt erzahlt gesprochen
besprochen genannt verraten erinnern erinnere erinnerung ahnung vermerkt vor vorliegen eintrag eintrage sagen hinweis
saber se sabe conozco contado contaste dato datos informacion registro registrado encontrar encontrado encuentro
encontre anotado mencionado dicho dijiste hablado comentado recuerdo consta constancia aparece guardado sais savoir
connais precise precisee information informations renseignement trouve trouver note enregistre mentionne dit parle
souviens trace indique sei contou conheco informacao dado dados registrado encontrei anotado mencionou disse falou
lembro encontro salvo
"""
_ASKING_WORDS: Final = """
question ask asked wonder wondering curious sorry unfortunately apologize apologies afraid yet able memory memories
conversation chat history good great thanks thank let help somewhere anywhere exactly specific specifically maybe
perhaps probably nothing nichts nada rien should could might later check look provide give need want mean regarding
concerning moment time frage leider entschuldigung tut leid bisher dazu daruber genau moment nachsehen vielleicht
moglich konkret konkrete pregunta lamento siento disculpa perdon todavia aun sobre ahora lugar momento puedo podria
acuerdo desole desolee malheureusement pardon encore peux pourrais sujet moment rappelle pergunta desculpe infelizmente
ainda posso poderia lembrar acho momento
"""
_CHINESE_ASKING: Final = frozenset(
    "没有找到相关记录信息不知道清楚确定抱歉查询资料提过说记得题暂无目前法关于内容能帮您一下到任何还数据档案"
)
_GENERAL: Final = lazy_pattern(
    r"\b(?:usually|generally|typically|often|mostly|(?:most|many) \w+s\b|it depends|in general|oft|meistens?"
    r"|normalerweise|in der regel|viele \w+|normalmente|por lo general|generalmente|muchos|depende|souvent|en general"
    r"|generalement|habituellement|beaucoup de|geralmente|muitos)\b|通常|一般|常见|很多|往往|请咨询|取决于"
)
"""A reply that says what is usual does not say what is so with the person."""
_PARTICLE_WORDS = "on off up down in out no not never always yes"
_PARTICLES: Final = frozenset(_PARTICLE_WORDS.split())
_OFFER: Final = lazy_pattern(
    r"(?:let me|would you|do you (?:want|mean)|shall i|should i|(?:can|could) you|please|try|maybe|perhaps|"
    r"i(?:'ll| can| will)|if you|tell me|wenn du|sag|soll ich|vielleicht|bitte|si quieres|dime|quieres|si tu|dis-moi|"
    r"veux-tu|se quiser|quer que|me diga|fragen sie|wenden sie|consultez?|demandez|如果|请|你可以|您可以|要不要)\b",
    re.IGNORECASE,
)


class Wording(NamedTuple):
    """The content words of a text as stems, Chinese characters one by one, and its numbers.

    `names` are written with a capital letter inside a sentence; German ones, where all nouns are, are not known.
    """

    words: frozenset[str]
    numbers: frozenset[str]
    names: frozenset[str]


def normalized(text: str) -> str:
    """Return the text with normalized character width, case, white space and final punctuation."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    return " ".join(folded.split()).rstrip(_END_OF_SENTENCE)


@lru_cache(maxsize=4096)
def wording(text: str) -> Wording:
    """Return the content words of a short text and its numbers."""
    words, numbers, folded = set[str](), set[str](), CONTRACTED_NOT.sub(" ", fold(text))
    language = languages.guess(languages.first_words(folded))
    for match in _WORDS.finditer(folded):
        found = match[0]
        if _HAS_NUMBER.search(found):
            numbers.add(found)
        elif match.lastgroup == "unspaced":
            words.update({found} - CHINESE_FILLER)
        else:
            words.update(content_word(part, language) for part in re.split(r"['-]", found))
    names = frozenset() if language == "german" else frozenset(names_in(text))
    return Wording(frozenset(words - {""}), frozenset(numbers), names)


_BEGINNING: Final = 5
"""Letters that all forms of most words begin with."""


def raw_words(text: str) -> frozenset[str]:
    """Return what the words of a text begin with, and Chinese characters; cheaper than `wording`."""
    return frozenset(word[:_BEGINNING] for word in _RAW_WORDS.findall(text.lower()))


@lru_cache(maxsize=65_536)
def content_word(word: str, language: str = languages.ENGLISH) -> str:
    """Return the stem of a folded word; nothing for one that tells nothing, in English and another language."""
    if word in STOP_WORDS or len(word) < 2 or word in languages.STOP_WORDS_OF.get(language, ()):
        return ""
    base = stems(word)[0]
    return "" if base in _known().filler else base


def names_in(text: str) -> set[str]:
    """Return the stems of words that are written as names: with a capital inside a sentence, or as initials."""
    return {stems(name)[0] for name in written_names(text)}


def written_names(text: str) -> set[str]:
    """Return the folded words that are written as names."""
    return {fold(part) for found in _NAME.findall(text) for part in re.split(r"['-]", found)[:1] if part}


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

    One without a question word may have no name that the query lacks, because it may be the answer.
    """
    if not is_question(text):
        return False
    asked, wanted = wording(text), wording(query)
    if not asked.words or not asked.numbers <= wanted.numbers:
        return False
    shared, added = _shared(asked.words, wanted.words), _added(asked.words, wanted.words)
    if added & names_in(text) and not is_open_question(text):
        return False
    if added and len(shared) < 2:
        return False
    least = min(len(asked.words), len(wanted.words))
    return bool(shared) and len(shared) >= _WHOLE_SHARE * max(len(shared) + len(added), least)


def tells_nothing(text: str, query: str, *, is_reply: bool) -> bool:
    """Return True for a short text that cannot answer a query: it asks, or has no word that the query lacks.

    `is_reply`: the assistant said it. Its questions, offers and sentences that it does not know are no answers either.
    Words for knowing, asking and telling count as no words.
    """
    sentences = [one.strip() for one in _SENTENCE.findall(text) if _RAW_WORDS.search(one)]
    return bool(sentences) and all(_is_empty_sentence(one, query, is_reply=is_reply) for one in sentences)


def _is_empty_sentence(text: str, query: str, *, is_reply: bool) -> bool:
    if is_reply and _GENERAL.search(fold(text)):
        return True
    said, wanted = wording(text), wording(query)
    if not said.numbers <= wanted.numbers:
        return False
    new = {
        word
        for word in _added(said.words, wanted.words)
        if word not in _known().meaningless
        and word not in _CHINESE_ASKING
        and not (is_reply and _NEGATION.fullmatch(word))
    }
    if not new:
        is_asking = not said.words.isdisjoint(_known().meaningless) or is_question(text)
        is_answer = not is_open_question(query) or bool(_short_words(text) - _short_words(query))
        return is_reply or is_asking or not is_answer
    return repeats_question(text, query) or (is_reply and _knows_nothing(text, new))


def _knows_nothing(text: str, new: Set[str]) -> bool:
    """Return True for a sentence that asks, offers or denies to know, and names nobody. `new` are words to judge."""
    if _QUESTION_MARK.search(text) or _OFFER.match(text):
        return True
    negation = _NEGATION.search(text)
    if negation is None or not wording(text[negation.end() :]).names.isdisjoint(new):
        return False
    said = {stems(word)[0] for word in _RAW_WORDS.findall(fold(text))}
    return not said.isdisjoint(_known().knowing) or is_no_answer(text)


def only_asks(text: str, query: str) -> bool:
    """Return True for a text of open questions and requests alone, which names nothing that the query does not."""
    sentences = [one.strip() for one in _SENTENCE.findall(text) if _RAW_WORDS.search(one)]
    if not sentences or not all(map(_asks_openly, sentences)):
        return False
    said, wanted = wording(_WHICH_ONE.sub(r"\1", text)), wording(query)
    return said.numbers <= wanted.numbers and not _added(said.names, wanted.words)


def _asks_openly(sentence: str) -> bool:
    if _WH_QUESTION.match(sentence) or _REQUEST.match(sentence):
        return True
    return bool(_ASKS_INSIDE.search(sentence) and (_QUESTION_MARK.search(sentence) or sentence >= "\u2e80"))


_WHICH_ONE = lazy_pattern("([哪这那每])一")


def is_yes_no_question(text: str) -> bool:
    """Return True for a question that "yes" answers."""
    return bool(_YES_NO_QUESTION.match(text.strip())) or bool(_CHINESE_YES_NO.search(text))


def is_open_question(text: str) -> bool:
    """Return True for a question that "yes" does not answer."""
    return is_question(text) and not _YES_NO_QUESTION.match(text.strip())


def _short_words(text: str) -> set[str]:
    """Return particles and single capital letters, which may be an answer: "The heating is off.", "type A"."""
    words = re.findall(r"[^\W\d_]+", text)
    return {word for word in words if word.casefold() in _PARTICLES} | {
        word for word in words[1:] if len(word) == 1 and word.isupper() and word.isascii() and word != "I"
    }


def is_no_answer(text: str) -> bool:
    """Return True for a short reply that says that its speaker does not know, and tells no number."""
    text = text.replace("’", "'")
    return len(text) <= _MAX_NO_ANSWER and not _HAS_NUMBER.search(text) and bool(_NO_ANSWER.search(text))


def is_akin(one: str, other: str) -> bool:
    """Return True for stems of two forms of a word: "allerg" and "allergi", "trabalha" and "trabalho"."""
    if one == other:
        return True
    least = min(len(one), len(other))
    if least < _AKIN or abs(len(one) - len(other)) > 3:
        return False
    return one[: max(_AKIN, least - 1)] == other[: max(_AKIN, least - 1)]


_AKIN: Final = 4
"""Letters that stems of two forms of a word begin with alike at least."""


def _shared(words: frozenset[str], others: frozenset[str]) -> frozenset[str]:
    beginnings = {one[:_AKIN] for one in others}
    return frozenset(
        word
        for word in words
        if word in others or (word[:_AKIN] in beginnings and any(is_akin(word, one) for one in others))
    )


def _added(words: frozenset[str], others: frozenset[str]) -> frozenset[str]:
    return words - _shared(words, others)


def is_acknowledgment(text: str) -> bool:
    """Return True for a text that says no more than "ok", "thanks" or the like."""
    if len(text) > _MAX_ACKNOWLEDGMENT:
        return False
    words = re.findall(r"\w+(?:['’]\w+)?", text.casefold())
    if not words:
        return bool(text.strip()) and not any(char.isalnum() for char in text)
    return all(word in _ACKNOWLEDGMENTS for word in words) or bool(_CHINESE_ACKNOWLEDGMENT.fullmatch(text.strip()))


class _Vocabulary(NamedTuple):
    """Word lists as stems."""

    filler: frozenset[str]
    knowing: frozenset[str]
    meaningless: frozenset[str]


@cache
def _known() -> _Vocabulary:
    return _Vocabulary(
        stems_of(_FILLER_WORDS),
        stems_of(_KNOWING_WORDS) | frozenset("知道记找清楚确定录信息查资料提"),
        stems_of(_KNOWING_WORDS + _ASKING_WORDS),
    )


def stems_of(words: str) -> frozenset[str]:
    return frozenset(stems(fold(word))[0] for word in words.split())
