"""Recognize statements about a person's health, money, religion … by lexicons.

A topic needs a statement about the person or their people: "I take insulin", not "insulin was found in 1921". The
lexicons (`topic_words_en`, …) have terms of several kinds:

- `am`: after "I'm"; `my`: after "my"; `have`: what one has; `i`: what one does;
- `about`, `any`: in a sentence with "I" or "my";
- `told`: the same, but not if it asks or is about a book;
- `self`: Chinese, without a subject.

They catch words, not meanings.
"""

import re
from collections.abc import Collection, Iterator, Mapping
from functools import cache
from typing import Final, Literal, get_args

from store.text.normalize import UNSPACED, fold
from store.text.topic_places import is_at_place
from store.text.topic_terms import Terms, terms_of
from store.text.topic_words_de import WORDS as GERMAN
from store.text.topic_words_en import WORDS as ENGLISH
from store.text.topic_words_zh import WORDS as CHINESE

Topic = Literal["health", "money", "religion", "politics", "sexuality", "location", "family", "work"]
TOPICS: Final[tuple[Topic, ...]] = get_args(Topic)
Speaker = Literal["user", "other", "note"]
"""The voice of a text: the person ("I"), an assistant to them ("you"), or a note about them ("the user", a name)."""
_Voice = Literal["user", "other", "note", "people"]

_SENTENCE: Final = re.compile(r"(?<=[.!?;。！？；])(?<!\b[DdMS][rt]\.)\s+|(?<=[。！？；])|\n+")
_APOSTROPHES: Final = str.maketrans({"’": "'", "‘": "'", "ʼ": "'", "`": "'"})
_UNSPACED: Final = re.compile(f"[{UNSPACED}]")

_KIN: Final = (
    r"wife|husband|partner|boyfriend|girlfriend|fiancee?|son|daughter|kids?|children|mother|father|mum|mom|dad"
    r"|parents|brothers?"
    r"|sisters?|siblings?|twins?|cousins?|aunt|uncle|niece|nephew|grand\w+|gran|granny|nan|nana|step\w+|in-laws?"
    r"|\w+-in-law"
    r"|family|friends?|flatmate|roommate|ex"
)
_KIN_DE: Final = (
    r"frau|mann|freund(?:in)?|partner(?:in)?|sohne?|tochter|kind(?:er)?|mutter|mama|vater|papa|eltern|bruder"
    r"|schwestern?|geschwister"
    r"|oma|opa|gross\w+|enkel\w*|tante|onkel|cousin\w*|neffe|nichte|schw(?:ager|ieger)\w*|stief\w+|zwillinge?|familie"
    r"|jungste\w?|alteste\w?"
)
_OF_PEOPLE: Final = re.compile(
    rf"\b(?:my|our)(?: [\w-]+){{0,2}} (?:{_KIN})\b|\b(?:mum|mom|dad|grandma|grandpa|granny|nana)\b"
    rf"|\b(?:mein|unser)\w{{0,2}}(?: \w+)? (?:{_KIN_DE})\b"
)

# Who a sentence is about, by who says it: subjects and possessives of English, German and Chinese.
_ENGLISH: Final[Mapping[_Voice, tuple[str, str]]] = {
    "user": (r"i|we|(?:the )?user", r"my|our|(?:the )?user's"),
    "other": (r"i|we|you|(?:the )?user", r"my|our|your|(?:the )?user's"),
    "people": (rf"i|we|he|she|they|both|who|(?:the )?user|{_KIN}", r"my|our|his|her|their"),
    "note": (r"[\w-]+", r"my|our|your|his|her|their|[\w-]+'s?"),
}
_GERMAN: Final[Mapping[_Voice, tuple[str, str]]] = {
    "user": (r"ich|wir|(?:der |die )?(?:be)?nutzer(?:in)?", r"mein\w{0,2}|unser\w{0,2}"),
    "other": (
        r"ich|wir|du|ihr|sie|(?:der |die )?(?:be)?nutzer(?:in)?",
        r"mein\w{0,2}|unser\w{0,2}|dein\w{0,2}|ihr\w{0,2}",
    ),
    "people": (
        rf"ich|wir|er|sie|beide|(?:der |die )?(?:be)?nutzer(?:in)?|(?:mein|unser)\w{{0,2}}(?: \w+)? (?:{_KIN_DE})",
        r"mein\w{0,2}|unser\w{0,2}|sein\w{0,2}|ihr\w{0,2}",
    ),
    "note": (r"[\w-]+", r"(?:m|d|s)?ein\w{0,2}|unser\w{0,2}|ihr\w{0,2}|[\w-]+s"),
}
_WHEN_ZH: Final = re.compile(
    "(?:(?:最近|刚刚?|昨[天晚]|前[天几]天?|今[天早晚年]|明天|上个?(?:周|月|星期|礼拜)|下个?(?:周|月|星期|礼拜)"
    "|去年|前年|这个?(?:周|月|几年|些年|阵子|段时间)"
    "|每[天周年晚早]|每个月|从小|小时候|现在|目前|已经|终于|好久|一直|又|还|也|都|就|才|正在?|准备|打算|开始|自从"
    "|快要?|因为|早上|晚上|周末|去做?了?|做了|做完)[，,、]?){0,3}"
)
_KIN_ZH: Final = re.compile(
    "(?:老公|老婆|老伴|爸妈|爸爸|妈妈|婆婆|公公|岳父|岳母|弟弟|哥哥|姐姐|妹妹|儿子|女儿|孙子|孙女|侄子|侄女"
    "|外甥女?|爷爷|奶奶|外公|外婆|姥姥|姥爷|媳妇|女婿"
    "|男朋友|女朋友)(?!国)"
)
_CHINESE: Final[Mapping[Speaker, str]] = {
    "user": "(?<!自)(?<!帮)(?<!教)(?<!告诉)我(?![国军方党省市县])|咱|俺|本人|用户",
    "other": "(?<!自)我(?![国军方党省市县])|咱|俺|你|您|用户",
    "note": "",
}
_ENGLISH_MARKS: Final[Mapping[Speaker, re.Pattern[str]]] = {
    "user": re.compile(r"\b(?:i|we|my|our|me|us|mine|ours|user|mum|mom|dad|grandma|grandpa)\b"),
    "other": re.compile(r"\b(?:i|we|my|our|me|us|mine|ours|you|your|user)\b"),
    "note": re.compile(""),
}
_GERMAN_MARKS: Final[Mapping[Speaker, re.Pattern[str]]] = {
    "user": re.compile(r"\b(?:ich|wir|mir|mich|uns|mein\w{0,2}|unser\w{0,2}|\w*nutzer\w*)\b"),
    "other": re.compile(
        r"\b(?:ich|wir|mir|mich|uns|mein\w{0,2}|unser\w{0,2}|du|dir|dich|dein\w{0,2}|sie|ihnen|ihr\w{0,2}"
        r"|\w*nutzer\w*)\b"
    ),
    "note": re.compile(""),
}

# A sentence that asks, or that tells of a text, is not about the person.
_ASKED: Final = re.compile(
    r"^(?:(?:hi|hey|hello|ok|okay|please|so|and|now|then|also),? )*(?:can|could|would|will) you\b(?!.*\b(?:my|our"
    r"|i|we|i'm|i've)\b)"
    r"|^(?:(?:please|so|and|now),? )?(?:tell|explain|show|write|give|help|teach|find|list|summari[sz]e|translate"
    r"|compare|what|how|who|why|when"
    r"|where|which|is|are|does|do|did|was|were)\b(?!.*\b(?:my|our|i|we|i'm|i've)\b)"
    r"|\b(?:essay|article|novel|book|film|movie|documentary|podcast|lecture|thesis|news|headline|quiz|chapter"
    r"|paragraph|blog|script"
    r"|story|character|poem|lyrics|game|exam|history of|the history)s?\b"
    r"|\b(?:want|like|need|curious|trying|love|enjoy)s? (?:to )?(?:know|understand|learn|read|reading|find out)\b"
    r"|\bi(?:'m| am) (?:curious|writing|reading|studying)\b"
    r"|\bi (?:wonder|read|heard|saw|watched) (?:if|whether|how|that|about|a|an|the)\b"
)
_ASKED_GERMAN: Final = re.compile(
    r"^(?:bitte )?(?:kannst|konntest|konnen|was|wie|wer|warum|wann|wo|welche\w?|erklar\w*|schreib\w*|gib|nenn\w*"
    r"|hilf|sag|zeig\w*|erzahl\w*"
    r"|ubersetz\w*|ist|sind|gibt es)\b(?!.*\b(?:ich|wir|mein\w*|unser\w*)\b)"
    r"|\b(?:aufsatz|artikel|roman|buch|film|doku\w*|podcast|referat|hausarbeit|nachrichten|krimi|serie)\b"
)
# A sentence whose subject, the person, is left out.
_ELIDED: Final = re.compile(
    r"^(?:(?:and|but|so|also|just|still|then|yeah|yes|no|well|honestly|finally|lol|ugh|oh|ok|okay|recently|lately"
    r"|currently|today|yesterday"
    r"|again|already|never|always|probably|actually|anyway)[ ,]+)*"
    r"(?:(?P<did>got|had|been|went|lost|quit|made|spent|paid|took|came|met|saw|started|moved|broke|caught|bought"
    r"|sold|voted|cheated|slept"
    r"|prayed|tested|can't|cannot|couldn't|didn't|don't|haven't|won't|have to|need to|used to|gonna|going to|wanna)"
    r"|(?P<am>sitting|staying|thinking|feeling|working|living|heading|waiting|trying|looking|saving|seeing|dating"
    r"|paying|stuck"
    r"|diagnosed|pregnant|allergic|married|divorced|retired|off to|on my way|on the|back (?:at|in|from)|at (?:the"
    r"|my)|so (?:tired|sick|broke)))"
    r"\b(?! (?:is|are|was|can|helps|makes)\b)",
    re.IGNORECASE,
)
_ELIDED_THING: Final = re.compile(
    r"^(?:(?:another|more|bad|terrible|awful|horrible|my|a|the) )*(?:headaches?|migraines?|hot (?:flushes"
    r"|flashes)|fever|cramps|insomnia|nausea"
    r"|toothache|back pain|panic attacks?|blood test|night shifts?|late shifts?|early shifts?|double shifts?"
    r"|job interview|overtime|therapy|chemo)"
    r"\b.*\b(?:yesterday|today|again|tonight|tomorrow|this (?:morning|week)|last (?:night|week)|all (?:day|night"
    r"|week)|since|lately)\b",
    re.IGNORECASE,
)
_ELIDED_GERMAN: Final = re.compile(
    r"^(?:und |aber |also |ja |nein |naja |na ja |endlich |heute |gestern |jetzt )?(?:hab|habe|bin|war|hatte"
    r"|musste|muss|krieg|kriege|bekomme|gehe"
    r"|geh|mach|mache|wohne|arbeite|darf|durfte|nehme|nehm|leide|verdiene|sitze|sitz|stehe|steh|glaube|wurde|kann"
    r"|will|sind|haben)\b(?! sie\b| du\b)",
    re.IGNORECASE,
)


def _with_subject(sentence: str) -> str:
    """Return the sentence with the subject that it leaves out."""
    if found := _ELIDED.search(sentence):
        return ("I'm " if found["am"] else "I ") + sentence
    if _ELIDED_THING.search(sentence):
        return "I have " + sentence
    return "ich " + sentence if _ELIDED_GERMAN.search(sentence) else sentence


def topics_of(text: str, wanted: Collection[str] = TOPICS, *, speaker: Speaker = "user") -> set[Topic]:
    """Return those of the wanted topics about which the text says something of the person."""
    left, found = {topic for topic in TOPICS if topic in wanted}, set[Topic]()
    for written in _SENTENCE.split(text.translate(_APOSTROPHES)) if left else ():
        sentence = _with_subject(written) if speaker == "user" else written
        told = set(_told(fold(sentence), speaker, left))
        if "location" in left and is_at_place(sentence, speaker):
            told.add("location")
        found |= told
        left -= told
        if not left:
            break
    return found


def _told(folded: str, speaker: Speaker, left: Collection[Topic]) -> Iterator[Topic]:
    """Yield topics about which a sentence tells something; none without a person in it."""
    voice: _Voice = "people" if speaker == "user" and _OF_PEOPLE.search(folded) else speaker
    if _UNSPACED.search(folded):
        yield from _chinese(folded, speaker, left)
    if _ENGLISH_MARKS[speaker].search(folded):
        yield from _english(folded, voice, left)
    if _GERMAN_MARKS[speaker].search(folded):
        yield from _german(folded, voice, left)


def _after(text: str, place: int, step: re.Pattern[str], steps: int) -> Iterator[int]:
    """Yield the places of words after a place, at most some steps away."""
    for _step in range(steps + 1):
        if text.startswith(" ", place):
            yield place + 1
        if not (found := step.match(text, place)):
            break
        place = found.end()


_Index = Mapping[str, Terms[Topic]]


def _index(words: Mapping[str, Mapping[str, str]], ending: str, kinds: Mapping[str, Collection[str]]) -> _Index:
    """Return the terms of each place in a sentence."""
    return {
        place: Terms(
            {topic: [term for kind in of_place for term in terms_of(words[topic].get(kind, ""))] for topic in TOPICS},
            ending,
        )
        for place, of_place in kinds.items()
    }


@cache
def _english_terms() -> _Index:
    kinds = {
        "am": ("am",),
        "my": ("my",),
        "have": ("have",),
        "about": ("about",),
        "any": ("about", "any"),
        "told": ("told",),
    }
    verbs = {
        topic: [re.sub(r"^([a-z]{3,})(?= |$)", r"\1(?:s|es)?", verb) + r"\b" for verb in terms_of(ENGLISH[topic]["i"])]
        for topic in TOPICS
    }
    return {**_index(ENGLISH, r"(?:s|es)?\b", kinds), "i": Terms(verbs, "")}


@cache
def _english_people(voice: _Voice) -> tuple[re.Pattern[str], re.Pattern[str], re.Pattern[str]]:
    subject, owner = _ENGLISH[voice]
    be = (
        r"(?:'m|'re| am| are| was| were|(?:'ve| have|'s| has)(?: \w+)? been| became| become| get| got| feel| felt"
        r"|(?: \w+)? identify as| consider (?:myself|ourselves)| turned out| turned|'d been| is|'s gone|'s| remains"
        r"| (?:might|may|could|used to) be|'ll be| went)"
    )
    return re.compile(rf"\b(?:{subject})\b"), re.compile(rf"\b(?:{subject}){be}(?= )"), re.compile(rf"\b(?:{owner})\b")


_HAS: Final = re.compile(
    r" ?(?:have|has|had|'ve|got|gotten|need|needed|take|takes|took|taking|use|uses|using|wear|wears|on|get|gets"
    r"|getting|own)(?=[ ,])"
)
_ONE: Final = re.compile(r" \w+|'\w+")
_GAP: Final = re.compile(r" [\w-]+")
_SOME: Final = re.compile(r",? [\w'-]+")
_SHORT: Final = re.compile(r"'\w+")
_WORDS: Final = re.compile(r"\b\w")


def _english(text: str, voice: _Voice, left: Collection[Topic]) -> Iterator[Topic]:
    terms, (subject, be, owner) = _english_terms(), _english_people(voice)
    own, does, has = [0] if voice == "note" else [], [0] if voice == "note" else [], list[int]()  # "Allergic to nuts"
    for found in be.finditer(text):
        own += _after(text, found.end(), _GAP, 3)
    for found in subject.finditer(text):
        short = _SHORT.match(text, found.end())
        does += _after(text, short.end() if short else found.end(), _SOME, 2)
        place = found.end()
        for _word in range(3):
            if had := _HAS.match(text, place):
                has += _after(text, had.end(), _SOME, 4)
            if not (word := _ONE.match(text, place)):
                break
            place = word.end()
    after_owner = [place for found in owner.finditer(text) for place in _after(text, found.end(), _GAP, 1)]
    yield from terms["am"].at(text, set(own), left)
    yield from terms["my"].at(text, set(after_owner), left)
    yield from terms["have"].at(text, set(has), left)
    yield from terms["i"].at(text, set(does), left)
    everywhere = [found.start() for found in _WORDS.finditer(text)]
    is_asked = _ASKED.search(text)
    yield from terms["about" if is_asked else "any"].at(text, everywhere, left)
    if not is_asked and voice != "other":  # an assistant says "you" to anyone
        yield from terms["told"].at(text, everywhere, left)


@cache
def _german_terms() -> _Index:
    return _index(GERMAN, r"(?:e|en|er|es|s|n|in|innen)?\b", {"am": ("am",), "my": ("my",), "any": ("any",)})


@cache
def _german_people(voice: _Voice) -> tuple[re.Pattern[str], re.Pattern[str]]:
    subject, owner = _GERMAN[voice]
    be = r"(?:bin|sind|war|waren|wurde|wurden|werde|werden|ist|bist|wird)"
    return re.compile(rf"\b(?:(?:{subject}) {be}|{be} (?:{subject}))(?=[ ,])"), re.compile(rf"\b(?:{owner})\b")


def _german(text: str, voice: _Voice, left: Collection[Topic]) -> Iterator[Topic]:
    terms, (be, owner) = _german_terms(), _german_people(voice)
    yield from terms["am"].at(
        text, [at for found in be.finditer(text) for at in _after(text, found.end(), _SOME, 4)], left
    )
    yield from terms["my"].at(
        text, [at for found in owner.finditer(text) for at in _after(text, found.end(), _GAP, 1)], left
    )
    if not _ASKED_GERMAN.search(text):
        yield from terms["any"].at(text, [found.start() for found in _WORDS.finditer(text)], left)


@cache
def _chinese_terms() -> _Index:
    kinds = ("any", "my", "self")
    return {kind: Terms({topic: CHINESE[topic][kind].split() for topic in TOPICS}, "") for kind in kinds}


_MARK_ZH: Final = {speaker: re.compile(mark) for speaker, mark in _CHINESE.items()}
_ASKED_ZH: Final = re.compile("什么|怎么|如何|为何|哪|谁|几时|吗|意思|英文|解释|翻译")
_OWNED_ZH: Final = re.compile("们?(?:的|家)?")


def _chinese(text: str, speaker: Speaker, left: Collection[Topic]) -> Iterator[Topic]:
    terms, places, owned = _chinese_terms(), set[int](), set[int]()
    if speaker == "note":
        places = owned = set(range(len(text)))
    else:
        for found in _MARK_ZH[speaker].finditer(text):
            places.update(range(found.end(), min(found.end() + 31, len(text))))
            if after := _OWNED_ZH.match(text, found.end()):
                owned.update(range(found.end(), min(after.end() + 5, len(text))))
    if speaker == "user" and (after := _WHEN_ZH.match(text)) and not _ASKED_ZH.search(text):
        yield from terms["self"].at(text, {0, after.end()}, left)
        if kin := _KIN_ZH.match(text, after.end()):
            places.update(range(kin.start(), min(kin.end() + 31, len(text))))
    yield from terms["any"].at(text, places, left)
    yield from terms["my"].at(text, owned, left)
    if "location" in left and _ADDRESS_ZH.search(text):
        yield "location"


_ADDRESS_ZH: Final = re.compile(r"(?:地址|寄到|送到|快递|收货|上门)[^。！？]{0,16}(?:路|街|道|巷|弄|村)\d+号")
