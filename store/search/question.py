"""Tell which words of a question say nothing about what it asks for: "do", "happen", "user", 发生, and question words.

`store.text.tokens` drops stop words of every text. These are words of texts like others, but a memory that shares only
these with a question does not answer it.
"""

import re
from collections.abc import Iterator
from functools import cache, lru_cache
from typing import Final, NamedTuple

from store.text import languages
from store.text.normalize import fold
from store.text.tokens import query_tokens

_ENGLISH: Final = """
user users do done happen happens happened occur occurs know tell told remember remind please mention about any some all
anything something everything anyone someone many much more most kind sort now current currently still ever already also
just only too very really thing things
"""
_PHRASES: Final = re.compile(r"\b(?:take|takes|took|taken|taking) place\b")
_GERMAN_WORDS: Final = """
    aber als am an auch auf aus bei bin bis bist da damit dann das dass dein deine deinem deinen deiner dem den der des
    die dies diese dieser dieses dir dich doch du durch ein eine einem einen einer eines er es etwas euch euer fur gab
    gerade gerne gibt hab habe haben hast hat hatte hatten ich ihm ihn ihr ihre ihrem ihren ihrer im in ist ja jetzt
    kann kannst konnen man mein meine meinem meinen meiner mich mir mit nach nicht noch nun ob oder sein seine seinem
    seinen seiner seit sie sind so uber um und uns unser unsere vom von vor war waren warum was wann weil welche welchem
    welchen welcher welches wem wen wer werde werden wessen wie wieviel will wird wir wo wofur woher wohin womit wurde
    wurden zu zum zur machen macht machte gemacht tun tut tat getan geschehen geschieht geschah passieren passiert
    passierte stattfinden stattgefunden weisst wissen weiss erinnerst benutzer benutzers benutzerin nutzer nutzers
    nutzerin"""
_GERMAN: Final = frozenset(_GERMAN_WORDS.split())
_ROMANCE_WORDS: Final = """
    hacer hago hace haces hice hizo hicimos hecho pasar paso pasa ocurrir ocurrio usuario usuaria sabes recuerdas
    recuerda dime ahora actualmente faire fais fait faisons passe passer utilisateur utilisatrice sais rappelle
    rappelles dis maintenant actuellement fazer faco faz fiz fez acontecer aconteceu acontece lembra sabe diga agora
    atualmente foi ser es sont quoi est"""
_ROMANCE: Final = frozenset(_ROMANCE_WORDS.split())
_ROMANCE_LANGUAGES: Final = frozenset({"spanish", "french", "portuguese"})
_OF_BOTH: Final = frozenset({"am", "an", "also", "hat", "in", "man", "so", "war", "was", "will", "die"})
"""Words that English has too, which do not tell a German question."""
_CHINESE_WORDS: Final = (
    "用户 什么时候 时候 什么 怎么样 怎么 怎样 哪些 哪个 哪里 哪儿 哪位 哪年 哪天 多少 多久 几个 几号 几点 如何 "
    "为何 为什么 请问 是否 是谁 发生 做过 知道 告诉 记得 叫什么 有没有 一下 关于 现在 目前 我们 你们 他们 她们 "
    "它们 自己 的 了 是 在 我 你 您 他 她 它 们 和 与 吗 呢 吧 啊 哪 谁 么 做"
)
_CHINESE_WORD: Final = re.compile("|".join(sorted(_CHINESE_WORDS.split(), key=len, reverse=True)))
_HAN_RUN: Final = re.compile("[\u3400-\u9fff\uf900-\ufaff]+")
_WORD: Final = re.compile(r"[^\W\d_]+")
_OWN: Final = (
    r"\b(?:my|our|(?:the\s+)?user's|mein\w{0,2}|unser\w{0,2}|mis?|mon|ma|mes|meus?|minhas?|nuestr[oa]s?|notre|noss[oa]s?)"
    r"\s+"
)
_AFTER_VERB: Final = re.compile(
    rf"\b(?:does|did|is|are|was|were|has|have|had|will|can|would|named|called|ist|sind|war|hat)\s+(?:{_OWN})?"
    r"(?!(?:a|an|the|my|our|mein\w{0,2}|unser\w{0,2}|der|die|das|ein\w{0,2})\b)(?P<subject>[^\W\d_]{2,})"
)
_SUBJECT: Final = re.compile(
    rf"{_OWN}(?P<own>(?:[^\W\d_]{{2,}}\s+){{0,2}}[^\W\d_]{{2,}})"
    r"|\b(?:of|about|von|uber)\s+(?P<last>[^\W\d_]{2,})\s*[?.!]*$"
    r"|(?<![^\W\d_])(?P<owner>[^\W\d_]{2,64})'s\b"
)
_NAME: Final = re.compile(r"(?<=[\w,;:] )[^\W\d_a-z]\w+")


_ATTRIBUTE: Final = re.compile(
    r"[^\w]*(?:cual|cuales|que|quien|cuando|donde|cuant[oa]s?|como|en que|a que)(?: \w+)?"
    r"\s+(?:es|son|era|esta|se llaman?|tengo|tiene|cuesta)\b"
    r"|\s*(?:c'est quoi,?|quel(?:le)?s?|qui|quand|ou|combien|comment)(?: \w+)?\s*"
    r"(?:est|sont|etait|s'appellent?)?\s*(?:le|la|les|l'|mon|ma|mes|notre)\b"
    r"|\s*(?:qual|quais|quem|quando|onde|quant[oa]s?|como|em que|a que)(?: \w+)?"
    r"\s+(?:e|sao|era|esta|se chama|fica|tenho|tem)\b"
    r"|\s*(?:what|which|when|where|who|how \w+)(?:'s|\s+(?:is|are|was|were))\s+(?:the|my|your|our|[\w-]+'s?)\b"
    r"|\s*(?:was|wie|wann|wo|wer|welche\w?)(?: \w+)?\s+(?:ist|sind|war|waren|heisst|lautet)\s+"
    r"(?:der|die|das|mein\w{0,2})\b"
    r"|.*的[^的]{1,8}(?:是|叫)?(?:什么|谁|多少|几|哪|怎)"
)


class Asked(NamedTuple):
    """The tokens of a question that never inform, and those of whom or what it asks about: Tomas, "my sister".

    `is_attribute`: it asks for one property, such as "my blood type".
    """

    common: frozenset[str]
    subjects: frozenset[str]
    is_attribute: bool = False


@lru_cache(maxsize=1024)
def asked(query: str) -> Asked:
    """Return what the words of a question are."""
    folded = fold(query)
    common = {*_english()}
    if _PHRASES.search(folded):
        common.update(query_tokens("take took place"))
    words = set(_WORD.findall(folded))
    german = words & _GERMAN
    if len(german) >= 2 and german - _OF_BOTH:
        common.update(*(_tokens_of_word(word) for word in german))
    language = languages.guess(languages.first_words(folded))
    if language in _ROMANCE_LANGUAGES:
        unasked = words & (_ROMANCE | languages.STOP_WORDS_OF[language])
        common.update(*(_tokens_of_word(word) for word in unasked))
    named = [words for match in _SUBJECT.finditer(folded) for words in match.groups() if words]
    subjects = {word for words in named for word in words.split()}
    if match := _AFTER_VERB.search(folded):
        subjects.add(match["subject"])
    subjects.update(fold(name) for name in _NAME.findall(query))
    found = {token for word in subjects for token in _tokens_of_word(word) if ":" not in token}
    if not folded.isascii():
        common.update(_chinese(folded))
        found |= _chinese_subject(folded)
    return Asked(frozenset(common), frozenset(found - common), _ATTRIBUTE.match(folded) is not None)


@cache
def _english() -> frozenset[str]:
    return frozenset(query_tokens(_ENGLISH))


@lru_cache(maxsize=1024)
def _tokens_of_word(word: str) -> tuple[str, ...]:
    return tuple(query_tokens(word))


def _chinese(folded: str) -> Iterator[str]:
    """Yield the pairs of characters that contain a character of a stop word: "做什" and "什么" of 小明是做什么的."""
    for run in _HAN_RUN.finditer(folded):
        text, is_stop = run[0], [False] * len(run[0])
        for word in _CHINESE_WORD.finditer(text):
            is_stop[word.start() : word.end()] = [True] * len(word[0])
        for place in range(len(text)):
            if is_stop[place]:
                yield text[place]
            if place and (is_stop[place - 1] or is_stop[place]):
                yield text[place - 1 : place + 1]


def _chinese_subject(folded: str) -> set[str]:
    """Return the pairs of characters of the first word that is no stop word: 小明 of 小明是做什么的."""
    words = (word for run in _HAN_RUN.findall(folded) for word in _CHINESE_WORD.split(run))
    first = next((word for word in words if len(word) > 1), "")
    return {first[place : place + 2] for place in range(len(first) - 1)}
