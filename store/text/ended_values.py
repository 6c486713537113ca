# ruff: noqa: E501 - patterns are read better whole
"""Tell whether a text says that the value of an older one ended, and names another: "Sold the Golf, got a Kia".

Such a text need not share a word with the question ("What car do I drive?"): it names the older value instead. In
English the verb is next to the value; in other languages both are in one clause. A value counts only as a whole:
"Sold my golf clubs" ends no Golf.
"""

import re
from functools import lru_cache
from itertools import chain
from typing import Final

from core.patterns import lazy_pattern
from store.text.languages import ENGLISH, STOP_WORDS_OF, guess
from store.text.normalize import fold_in_place
from store.text.stems import is_irregular_form

_ENDS_BEFORE = lazy_pattern(
    r"\b(?:(?P<weak>left|finished(?: (?:with|reading|watching|learning|playing))?|closed)|sold|ditched|dropped|scrapped|abandoned|retired"
    r"|cancell?ed|quit|resigned from|gave (?:up|away)|given (?:up|away)|(?:got|gotten|getting) rid of|(?:went|gone|came|come) off"
    r"|(?:be |am |'m |are |'re )?(?:done|through) with|stopped(?: (?:taking|using|drinking|reading|watching|going to|learning|playing|eating))?"
    r"|closed (?:everything|my accounts?|the account|it all|all of it) (?:at|with)|traded(?: in)?|swapped|replaced|switched (?:away )?from"
    r"|moved (?:away |on |out )?(?:from|of)|broke up with|split (?:up )?(?:with|from)|said goodbye to|phased out|unsubscribed from"
    r"|(?:my )?notice at|(?:moved|migrated|converted|taken|took (?:me|us)|put me) off|instead of|rather than"
    r"|no longer (?:at|with|in|on|use|using|take|taking|drive|driving|read|reading|have)|not (?:at|with|in|on) (?=.* any ?more))"
    r"(?: (?:the|my|our|that|this|old|an?|all|those))*[ '\"]*$"
)
"""Words before an ended value. After a `weak` one, a place or time says that a speaker went somewhere."""
_ENDS_AFTER = lazy_pattern(
    r"['\"]*(?: one)?(?: (?:is|was|has|have|had|got|just|finally|been|are|were)|'s)* (?:sold|gone|history|dead|over|retire[sd]|died|broke(?:n)?"
    r"|closed down|shut down|cancell?ed|stolen|expired|discontinued|finished|no more|done|out of (?:business|order)|passed away)\b"
)
"""Words after an ended value at the beginning of a clause."""
_WENT = lazy_pattern(r"\W*(?:at|behind|home|open|there|with|outside|early|late|on the|in (?:the|my|our|a)|to|for)\b")
_AT_TIME = lazy_pattern(
    r" (?:early|late|at (?:\w+ )?(?:\d|one|two|three|four|five|six|seven|eight|nine|ten|noon|midnight)\b)"
)
_ARTICLE = lazy_pattern(r"\W*(?:(?:the|my|our|old|dr|mr|mrs|ms)\b\.?\W*)*")
_COMPOUND = lazy_pattern(r" (?P<next>[a-z][\w-]+)")
_AFTER_VALUE_TEXT = """
    one and or but so in on at for last this since because yesterday today now to from with after before two three is
    was has had got finally by as then already when while which who account job these
"""
_AFTER_VALUE: Final = frozenset(_AFTER_VALUE_TEXT.split())
"""Words after a value that make no compound of it: the Golf *and*, not the golf *clubs*."""
_NEW = lazy_pattern(
    r"\b(?:now|these days|nowadays|since|instead|signed up|joined|settled|started|switch(?:ed|ing)|moved|bought|got (?:an?|me|myself|my|the)|picked"
    r"|opened an?|took|taken|i'm|we're|it's|it'll|i am|we are|it is|there's|there is|i'll be|on to|onto|put on|chose|went with|hired|living"
    r"|using|driving|reading|back to|over to|instead of|rather than|everything (?:is|runs)|replaced|in favou?r of|with an?)\b"
)
_FOR_NAME = lazy_pattern(r"\W* for (?:an? |the |my )?(?:new )?[A-Z]")

_ENDED = lazy_pattern(
    r"\b(?:verkauf(?:t|te)|(?:ge)?kundigte?|gekundigt|verlassen|verliess|aufgegeben|abgeschafft|abgegeben|abgemeldet|beendet|abgesetzt|kaputt"
    r"|gestorben|(?:in|im) (?:rente|ruhestand)|geschichte|vorbei|ausgelesen|durch|ersetzt|aufgehort|den rucken|nicht mehr|kein\w* mehr"
    r"|gestohlen|geklaut|aufgelost|statt|anstatt|geschmissen|abgebrochen|abgelost|weggegeben|ausgezogen|weg"
    r"|quitt(?:e|ee|er)|vendue?|arrete|abandonnee?|fermee?|termine|fini|resilie|remplacee?|annule|au lieu d|plutot qu|rompu|laisse tomber"
    r"|retraite|casse|n'\w+ plus|ne \w+ plus"
    r"|vend(?:i|io|imos)|dej(?:e|o|amos)|termin(?:e|o|ei|ou)|cerr(?:e|o|amos)|cancel(?:e|o|amos|ei|ou)|en vez de|en lugar de|ya no|jubilo"
    r"|rompi|murio|me fui de|acab(?:e|o) (?:con|de leer)|reemplaz\w+"
    r"|vendeu|sai|saiu|saimos|deix(?:ei|ou|amos)|larg(?:uei|ou)|fech(?:ei|ou)|par(?:ei|ou)|em vez de|aposentou|troc(?:uei|ou|amos)|acabei"
    r"|venduta?|lasciato|finito|chiuso|smesso|invece di|verkocht|opgezegd|gestopt|verlaten|in plaats van)\b"
)
"""Words that end a value in their clause, in German, French, Spanish, Portuguese, Italian and Dutch."""
_NOW = lazy_pattern(
    r"\b(?:jetzt|nun|seit|ab|inzwischen|mittlerweile|statt\w*|neu\w*|gekauft|geholt|gewechselt|gegangen|ubernommen|angefangen|begonnen|bin|sind"
    r"|zu|dran|maintenant|desormais|depuis|suis|achete|pris|passee?|au lieu d|plutot qu|commence|chez"
    r"|ahora|desde|compr\w+|estoy|empec\w+|pas[ei]\w*|en vez de|en lugar de|agora|comecei|comprei|comprou|estou|fui para|pel[oa]|por"
    r"|adesso|ora|preso|passat\w|nu|sinds|gekocht|overgestapt)\b"
)
_HAN_ENDED = lazy_pattern(
    "卖|不[再学用喝吃做干去住看读]|停|注销|退[租了掉订]|退休|坏|丢|[看读追听学]完|离职|辞|调走|离开|戒|取消|放弃|毕业|分手|休产假|没了|淘汰|搬[离出]|告别|过期"
    "|关门|倒闭|弃|换成|改成|而是|被"
)
_HAN_NOW = lazy_pattern(
    "现在|如今|换|改|买|提了|入职|开始|[由转]|去了|在[^，。]+(?:租|住|上班|工作)|开了|新|办了|加入|是"
)

_HAN = lazy_pattern("[\u3400-\u9fff]")
_HAN_RUN = lazy_pattern("[\u3400-\u9fff]{2,}")
_HAN_FILLING = lazy_pattern("[我们的是在了用户着过吗]")
_LATIN = lazy_pattern(r"[a-z0-9][a-z0-9.+#-]+")
_WORD = lazy_pattern(r"[^\W_]+(?:[-'][^\W_]+)*")
_CLAUSE = lazy_pattern(r"[.,;:!\u2014\uff0c\u3002\uff1b\uff01](?=\s|[\u3400-\u9fff]|$)")
_SEVERAL = lazy_pattern(r"\b(?:and|und|y|et|e|en|plus|or|oder)\b|[&+/、和与]|, ")
_STOP_WORDS: Final = frozenset(chain.from_iterable(STOP_WORDS_OF.values()))
_MIN_CHARS: Final = 3
_SAME: Final = 4


def ends_value(asked: str, older: str, newer: str) -> bool:
    """Return True if a newer text says that the value that an older one answers a question with ended."""
    asked, old, new = fold_in_place(asked), fold_in_place(older), fold_in_place(newer.replace("\u2019", "'"))
    if _HAN.search(old) and _HAN.search(new):
        return _ends_in_chinese(asked, old, new)
    values = _values(asked, old)
    return any(_ends_at(match, values, new, newer) for match in _WORD.finditer(new) if match[0] in values)


def is_whole(value: str, ended: str) -> bool:
    """Return True if what ended is a value as a whole: no "golf clubs" for "Golf", no "Leeds at six" for "Leeds"."""
    words = set(_WORD.findall(fold_in_place(value)))
    places = [match.end() for match in _WORD.finditer(fold_in_place(ended)) if match[0] in words]
    if not places or _HAN.search(ended):
        return True
    rest = ended[places[-1] :]
    return not (_is_compound(rest) or _AT_TIME.match(rest))


def is_in_compound(asked: str, older: str, newer: str) -> bool:
    """Return True if an English text names a value of an older one only as a part of another thing: "golf clubs"."""
    new, known = fold_in_place(newer), set(values(asked, older))
    if guess(new.split()) != ENGLISH:
        return False
    rests = [newer[match.end() :] for match in _WORD.finditer(new) if match[0] in known]
    return bool(rests) and all(_is_before_noun(rest, fold_in_place(older)) for rest in rests)


def _is_before_noun(rest: str, old: str) -> bool:
    if not _is_compound(rest) or (following := _COMPOUND.match(rest)) is None:
        return False
    word = following["next"]
    is_verb = is_irregular_form(word) or word.endswith(("ed", "ly", "ing"))
    return not (is_verb or word in old or word in STOP_WORDS_OF[ENGLISH])


def has_several_values(older: str) -> bool:
    """Return True if a text may tell several values. One of them may have ended."""
    return _SEVERAL.search(fold_in_place(older)) is not None


def values(asked: str, older: str) -> list[str]:
    """Return the words of a text that may be its answer to a question, by which a newer text may name it."""
    asked, old = fold_in_place(asked), fold_in_place(older)
    if _HAN.search(old):
        named = _named(asked, old)
        return [one for one in sorted(named, key=old.rfind, reverse=True) if not _HAN_FILLING.search(one)]
    known = _values(asked, old)
    return [word for word in dict.fromkeys(_WORD.findall(old)) if word.removesuffix("'s") in known]


@lru_cache(maxsize=4096)
def _values(asked: str, old: str) -> frozenset[str]:
    """Return the words of a text that a question lacks, in any inflection."""
    known = {word[:_SAME] for word in _WORD.findall(asked)}
    words = {word.removesuffix("'s") for word in _WORD.findall(old)} - _STOP_WORDS
    return frozenset(word for word in words if len(word) >= _MIN_CHARS and word[:_SAME] not in known)


def _ends_at(match: re.Match[str], values: frozenset[str], new: str, newer: str) -> bool:
    end = match.end()
    while (following := _COMPOUND.match(new, end)) and following["next"] in values:  # "the Yamaha MT-07"
        end = following.end()
    start, stop = _clause_at(new, match.start())
    if guess(new.split()) != ENGLISH and _ENDED.search(new[start:stop]) and _NOW.search(new):
        return True
    rest = new[end:]
    if before := _ENDS_BEFORE.search(new[start : match.start()]):
        if _is_compound(newer[end:]) or (before["weak"] and _WENT.match(rest)):
            return False
        return bool(_NEW.search(rest) or _NEW.search(new[:start]) or _FOR_NAME.match(newer[end:]))
    return bool(_ARTICLE.fullmatch(new[start : match.start()]) and _ENDS_AFTER.match(rest))


def _is_compound(rest: str) -> bool:
    """Return True if what follows a value makes a compound of it."""
    following = _COMPOUND.match(rest)
    return following is not None and following["next"] not in _AFTER_VALUE


def _clause_at(text: str, place: int) -> tuple[int, int]:
    """Return the beginning and the end of the clause at a place."""
    start, stop = 0, len(text)
    for one in _CLAUSE.finditer(text):
        if _is_title(text[: one.start()]):
            continue
        if one.end() <= place:
            start = one.end()
        else:
            return start, one.start()
    return start, stop


def _is_title(before: str) -> bool:
    return before.endswith(("dr", "mr", "mrs", "ms", "prof"))


@lru_cache(maxsize=4096)
def _named(asked: str, old: str) -> frozenset[str]:
    """Return the pairs of Chinese characters and the Latin words of a text that a question lacks."""
    pairs = {run[at : at + 2] for run in _HAN_RUN.findall(old) for at in range(len(run) - 1)}
    latin = set(_LATIN.findall(old))
    return frozenset(one for one in pairs | latin if one not in asked)


def _ends_in_chinese(asked: str, old: str, new: str) -> bool:
    """Return True if a clause ends a value, by two characters of it or a Latin word, and another one names a new one."""
    named = _named(asked, old)
    clauses = [one for one in _CLAUSE.split(new) if one]
    for place, clause in enumerate(clauses):
        if any(one in clause for one in named) and _HAN_ENDED.search(clause):
            return any(_HAN_NOW.search(one) for one in clauses[:place] + clauses[place + 1 :])
    return False
