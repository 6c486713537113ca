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
_NEARLY = lazy_pattern(r"\b(?:nearly|almost|beinahe|fast|casi|presque|quase)\b|差点|几乎")
_OWNER_WORDS = """
my your his her their mein meine meinem meinen meiner dein deine sein seine ihr ihre mi mis tu tus su sus mon ma mes
ton ta tes meu minha meus minhas teu tua seu sua 我 你 他 她
"""
_OWNERS = frozenset(_OWNER_WORDS.split())
_NOT = lazy_pattern(r"\b\w+n't\b")
_NEGATION = lazy_pattern(
    r"\b(?:not|no|never|none|neither|nor|without|cannot|unable|nicht|kein\w*|nie|niemals|ohne|pas|jamais|aucune?|sans|n[aã]o|"
    r"nunca|jam[aá]s|sin|sem|ning[uú]n\w*|nenhum\w*)\b|n['’]t\b|[不没沒别別未无無非]",
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
    "不确定|不知道|不清楚|不记得|没有(?:记录|相关)|让我(?:看看|查)|查一下|不確定|讓我",
    re.IGNORECASE,
)
_MAX_NO_ANSWER: Final = 120
_MAX_ACKNOWLEDGMENT: Final = 40
_WHOLE_SHARE: Final = 0.5
_KNOWING_WORDS: Final = """
know known aware heard register decided record recorded note noted info information detail find found locate see
mention mentioned tell told say said remember recall sure certain idea clue answer access list listed save saved store
stored available share shared come weiss wissen weisst kenne kennen kennt bekannt angabe angaben informationen notiert
notiz gespeichert hinterlegt gefunden finden finde erwahnt gesagt erinnern erinnere erinnerung ahnung vermerkt vor
vorliegen eintrag eintrage sagen hinweis saber se sabe conozco contado contaste dato datos informacion registro
registrado encontrar encontrado encuentro encontre anotado mencionado dicho dijiste recuerdo consta constancia aparece
guardado sais savoir connais precise precisee information informations renseignement trouve trouver note enregistre
mentionne dit souviens trace indique sei contou conheco informacao dado dados registrado encontrei anotado mencionou
disse lembro encontro salvo
"""
_ASKING_WORDS: Final = """
question ask asked wonder wondering curious sorry unfortunately apologize apologies afraid yet able memory memories
conversation chat history good great thanks thank let help somewhere anywhere exactly specific specifically maybe
perhaps probably should could might later check look provide give need want mean regarding concerning moment time
frage leider entschuldigung tut leid bisher dazu daruber genau moment nachsehen vielleicht moglich konkret konkrete
pregunta lamento siento disculpa perdon todavia aun sobre ahora lugar momento puedo podria acuerdo desole desolee
malheureusement pardon encore peux pourrais sujet moment rappelle pergunta desculpe infelizmente ainda posso poderia
lembrar acho momento
"""
_CHINESE_ASKING: Final = frozenset(
    "没有找到相关记录信息不知道清楚确定抱歉查询资料提过说记得题暂无目前法关于内容能帮您一下到任何还"
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
_NEUTRAL_WORDS: Final = """
day time place thing way kind sort type name brand make number city town street country every each always usually
happen everything anything nothing all take go come get give have own keep make find hold use be one date hour code
only around about because mostly actually currently normally whole sure tag zeit art marke stadt strasse ort nummer
uhr jede jeder jeden jedes immer gibt geht steht liegt habe nur dia hora lugar nombre nome ciudad cidade calle rua
numero fecha data cada siempre sempre llama chama jour heure lieu nom ville rue numero date chaque toujours appelle
repond
"""
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
_MAX_OPEN: Final = 3
"""A wording of the same fact may hold so many more content words."""


class Wording(NamedTuple):
    """The parts of a text that tell facts apart. `words` are content words as stems, Chinese characters one by one.

    `names` are written with a capital letter inside a sentence; German ones, where all nouns are, are not known.
    `owners` are "my" and the like. `places` are the words with the marked words before and after them.
    """

    words: frozenset[str]
    numbers: frozenset[str]
    is_negated: bool
    names: frozenset[str] = frozenset()
    owners: frozenset[str] = frozenset()
    places: frozenset[tuple[str, str, str]] = frozenset()


def normalized(text: str) -> str:
    """Return the text with normalized character width, case, white space and final punctuation."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    return " ".join(folded.split()).rstrip(_END_OF_SENTENCE)


@lru_cache(maxsize=4096)
def wording(text: str) -> Wording:
    """Return the content words of a short text, its numbers, and whether it is negated."""
    words, numbers, folded = set[str](), set[str](), _NOT.sub(" ", fold(text))
    language = languages.guess(languages.first_words(folded))
    order: list[tuple[str, str]] = []
    for match in _WORDS.finditer(folded):
        found = match[0]
        if _HAS_NUMBER.search(found):
            numbers.add(found)
            order.append(("", found))
        elif match.lastgroup == "unspaced":
            order.append(("" if found in _CHINESE_FILLER else found, found))
        else:
            order += [(_content_word(part, language), part) for part in re.split(r"['-]", found)]
    words.update(word for word, _ in order if word)
    names = frozenset() if language == "german" else frozenset(names_in(text))
    before = ["", *(f"<{written}" for _, written in order)]
    after = [*(f">{written}" for _, written in order[1:]), ""]
    places = {(word, left, right) for (word, _), left, right in zip(order, before, after, strict=False) if word}
    owners = frozenset(found for found in re.findall(r"[a-z]+|[我你他她]", folded) if found in _OWNERS)
    is_negated = bool(_NEGATION.search(text) or _NEARLY.search(folded))
    return Wording(frozenset(words), frozenset(numbers), is_negated, names, owners, frozenset(places))


def raw_words(text: str) -> frozenset[str]:
    """Return the words of a text as they are written, and Chinese characters; cheaper than `wording`."""
    return frozenset(_RAW_WORDS.findall(text.lower()))


@lru_cache(maxsize=65_536)
def _content_word(word: str, language: str = languages.ENGLISH) -> str:
    if word in STOP_WORDS or len(word) < 2 or word in languages.STOP_WORDS_OF.get(language, ()):
        return ""
    base = stems(word)[0]
    return "" if base in _known().filler else base


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
        if word not in _known().meaningless and word not in _CHINESE_ASKING
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
    return not (wording(text).words | _characters(text)).isdisjoint(_known().knowing) or is_no_answer(text)


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


def _characters(text: str) -> set[str]:
    return {char for char in text if char >= "\u2e80"}


def _is_akin(one: str, other: str) -> bool:
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
        if word in others or (word[:_AKIN] in beginnings and any(_is_akin(word, one) for one in others))
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


def is_same_fact(one: Wording, other: Wording, query: Wording) -> bool:
    """Return True if two texts are wordings of one fact: neither number, name nor negation differs.

    They have the same words besides those that tell no fact ("day", "have") and those of one relation ("live", "home").
    If they share a word that the query lacks, which may answer it, each may have some words more, none in the place of
    another.
    """
    if one.is_negated != other.is_negated or one.numbers != other.numbers:
        return False
    alike = _shared(one.words, other.words)
    more, others = one.words - alike, other.words - _shared(other.words, one.words)
    if len(alike) + len(one.numbers) < 2 or _differs(one, other, more, others):
        return False
    added = [_telling(part, query) for part in (more, others)]
    if not any(added):
        return True
    if _is_replaced(added[0], added[1], one, other):
        return False
    shared = one.words & other.words
    is_answer = bool(shared - _shared(shared, query.words) or one.numbers - query.numbers)
    return is_answer and max(map(len, added)) <= min(_MAX_OPEN, len(alike) + len(one.numbers))


def _differs(one: Wording, other: Wording, more: Set[str], others: Set[str]) -> bool:
    """Return True if two texts differ in what makes two facts; `more` and `others` are the words of one of them."""
    neutral = _known().neutral
    if (one.words - other.words) & one.names - neutral or (other.words - one.words) & other.names - neutral:
        return True
    if not (one.owners <= other.owners or other.owners <= one.owners) and one.owners and other.owners:
        return True
    relation_of = _known().relations
    relations = [{relation_of[word] for word in part if word in relation_of} for part in (more, others)]
    if relations[0] and relations[1] and relations[0] != relations[1]:
        return True
    is_exact = any(
        word in _known().times or word in _MODIFIERS or any(map(str.isdigit, word)) for word in more | others
    )
    return is_exact or _has_other_name(one, other)


def _has_other_name(one: Wording, other: Wording) -> bool:
    """Return True if words that differ in a letter stand in the same place: "Paula's code", "Paulo's code"."""
    left, right = one.words - other.words, other.words - one.words
    pairs = {(a, b) for a in left for b in right if len(a) == len(b) and _is_akin(a, b)}
    return any(_is_replaced({a}, {b}, one, other) for a, b in pairs)


def _is_replaced(more: Set[str], others: Set[str], one: Wording, other: Wording) -> bool:
    """Return True if a word of one text stands where the other has another one: "my red bike", "my blue bike"."""
    places, other_places = ({pair for pair in said.places if pair[0] in words} for said, words in
                            ((one, more), (other, others)))  # fmt: skip
    return bool(
        {place for _, *place_of in places for place in place_of if place}
        & {place for _, *place_of in other_places for place in place_of if place}
    )


def _telling(words: frozenset[str], query: Wording) -> set[str]:
    """Return the words without those that tell no fact; characters of the query tell none either."""
    known = _known()
    return {
        word
        for word in words
        if word in _MODIFIERS
        or not (
            word in known.neutral
            or word in known.relations
            or word in _CHINESE_NEUTRAL
            or (word >= "\u2e80" and word in query.words)
        )
    }


class _Vocabulary(NamedTuple):
    """Word lists as stems. `relations` tells which of the words name the same kind of person."""

    filler: frozenset[str]
    knowing: frozenset[str]
    meaningless: frozenset[str]
    neutral: frozenset[str]
    times: frozenset[str]
    relations: dict[str, int]


@cache
def _known() -> _Vocabulary:
    return _Vocabulary(
        _stems_of(_FILLER_WORDS),
        _stems_of(_KNOWING_WORDS) | frozenset("知道记找清楚确定录信息查资料提"),
        _stems_of(_KNOWING_WORDS + _ASKING_WORDS),
        _stems_of(_NEUTRAL_WORDS),
        _stems_of(_TIME_WORDS),
        {stem: number for number, words in enumerate(_RELATION_WORDS.split("|")) for stem in _stems_of(words)},
    )


def _stems_of(words: str) -> frozenset[str]:
    return frozenset(stems(fold(word))[0] for word in words.split())
