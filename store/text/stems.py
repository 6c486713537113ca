"""Stems of words: irregular forms by table, British and American spellings as one, then Snowball.

A form that two words share has the stems of both: "lives" is of "life" and of "live".
"""

import threading
from functools import cache, lru_cache
from typing import Any, Final

from core.patterns import lazy_pattern

_TABLE: Final = """arise arose arisen|awake awoke awoken|bear bore borne|beat beaten|become became|begin began begun|
bend bent|bind bound|bite bit bitten|bleed bled|blow blew blown|break broke broken|breed bred|bring brought|
build built|burn burnt|buy bought|catch caught|choose chose chosen|cling clung|come came|creep crept|deal dealt|
dig dug|dive dove|draw drew drawn|dream dreamt|drink drank drunk|drive drove driven|eat ate eaten|
fall fell fallen|feed fed|feel felt|fight fought|find found|flee fled|fling flung|fly flew flown|
forbid forbade forbidden|forget forgot forgotten|forgive forgave forgiven|freeze froze frozen|get got gotten|
give gave given|go went gone goes|grind ground|grow grew grown|hang hung|hear heard|hide hid hidden|hold held|keep kept|
kneel knelt|know knew known|lay laid|lead led|lean leant|leap leapt|learn learnt|leave left|lend lent|lie lay lain|
light lit|lose lost|make made|mean meant|meet met|mow mown|pay paid|plead pled|prove proven|ride rode ridden|
ring rang rung|rise rose risen|run ran|saw sawn|shear shorn|say said|see saw seen|seek sought|sell sold|send sent|
sew sewn|
shake shook shaken|shine shone|shoot shot|show shown|shrink shrank shrunk|sing sang sung|sink sank sunk|sit sat|
slay slew slain|sleep slept|slide slid|sling slung|smell smelt|sow sown|speak spoke spoken|speed sped|spell spelt|
spend spent|spill spilt|spin spun|spit spat|spoil spoilt|spring sprang sprung|stand stood|steal stole stolen|
stick stuck|sting stung|strike struck|string strung|strive strove striven|swear swore sworn|sweep swept|
swell swollen|swim swam swum|swing swung|take took taken|teach taught|tear tore torn|tell told|think thought|
throw threw thrown|tread trod trodden|understand understood|wake woke woken|wear wore worn|weave wove woven|
weep wept|win won|wind wound|withdraw withdrew withdrawn|wring wrung|write wrote written|
child children|person people|man men|woman women|foot feet|tooth teeth|mouse mice|goose geese|ox oxen|louse lice|
wife wives|knife knives|life lives|leaf leaves|half halves|shelf shelves|wolf wolves|calf calves|elf elves|
loaf loaves|thief thieves|scarf scarves|hoof hooves|self selves|
good better best|bad worse worst|far farther further|
analysis analyses|crisis crises|thesis theses|basis bases|axis axes|oasis oases|diagnosis diagnoses|
hypothesis hypotheses|emphasis emphases|synthesis syntheses|parenthesis parentheses|synopsis synopses|
index indices|matrix matrices|vertex vertices|appendix appendices|criterion criteria|phenomenon phenomena|
medium media|datum data|bacterium bacteria|curriculum curricula|cactus cacti|nucleus nuclei|stimulus stimuli|
fungus fungi|alumnus alumni"""
ENTRIES: Final = tuple(tuple(line.split()) for line in _TABLE.replace("\n", "").split("|"))
"""Words with their irregular forms."""
_NUMBERS = """zero 0|two 2|three 3|four 4|five 5|six 6|seven 7|eight 8|nine 9|ten 10|eleven 11|twelve 12|thirteen 13|
fourteen 14|fifteen 15|sixteen 16|seventeen 17|eighteen 18|nineteen 19|twenty 20|thirty 30|forty 40|fifty 50|sixty 60|
seventy 70|eighty 80|ninety 90|hundred 100|thousand 1000|million 1000000"""
NUMBERS: Final = dict(line.split() for line in _NUMBERS.replace("\n", "").split("|"))
"""Words of numbers and their digits. "one" is missing: it rarely is a number."""
_SHARED = """bore bit bound found ground felt fell left lay led fed lent lit saw rose shot spoke stole thought wound
             dove
             mean slew lives leaves halves shelves calves selves thieves analyses bases axes diagnoses syntheses
             hypotheses better best worst further media data people"""
SHARED: Final = frozenset(_SHARED.split())
"""Irregular forms that are, or look like, regular forms of another word too, which has another stem."""
_WORDS: Final = frozenset(base for base, *_ in ENTRIES)
_BASES: Final[dict[str, list[str]]] = {}
for _base, *_forms in ENTRIES:
    for _form in _forms:
        _BASES.setdefault(_form, []).append(_base)

# Each rule makes one spelling of two. They run on whole words; only the result has to be equal, not right.
_OUR = (
    "arb|ard|arm|behavi|cand|clam|col|demean|endeav|fav|ferv|flav|glam|harb|hon|hum|lab|neighb|od|parl|ranc|rig|rum|sav"
    "|savi|splend|succ|tum|val|vap|vig"
)
_DOUBLED = (
    "bevel|cancel|channel|chisel|counsel|dial|duel|enamel|enrol|equal|fuel|fulfil|initial|instal|jewel|label|level"
    "|libel|marvel|model|panel|parcel|pencil|quarrel|rival|shovel|signal|swivel|total|towel|travel|tunnel|unravel"
)
_SPELLINGS: Final = tuple(
    (lazy_pattern(pattern), replacement)
    for pattern, replacement in (
        (rf"^((?:dis|un|mis)?(?:{_OUR}))our", r"\1or"),
        (r"(?<=\w{3})iz(e[drs]?|ers|ing|ations?|ational|able)$", r"is\1"),
        (r"(?<=\w{2}[al])yz(e[drs]?|ers|ing)$", r"ys\1"),
        (r"^(cent|theat|fib|calib|sab|spect|lust|meag|somb|(?:kilo|centi|milli)?met|lit)r(?:e[sd]?|ing)$", r"\1er"),
        (r"^(jewel)lery$", r"\1ry"),
        (r"^(catal|dial|anal|monol|prol|epil)ogue", r"\1og"),
        (rf"^({_DOUBLED})l(?=[eioam]|$)", r"\1"),
        (r"^(def|off|pret|lic)ens(?=e|i)", r"\1enc"),
        (r"^practis(?=e|i)", "practic"),
        (r"^grey", "gray"),
        (r"^(judg|acknowledg|abridg)ement", r"\1ment"),
        (r"^(ag|cring)eing$", r"\1ing"),
        (r"^programme(s?)$", r"program\1"),
        (r"^aluminium$", "aluminum"), (r"^aeroplane", "airplane"), (r"^pyjama", "pajama"), (r"^moustache", "mustache"),
        (r"^sceptic", "skeptic"), (r"^(s?m)ould", r"\1old"), (r"^plough", "plow"),
        (r"^doughnut", "donut"), (r"^yoghurt", "yogurt"), (r"^sulph", "sulf"), (r"^cheque(s?)$", r"check\1"),
        (r"^tyre(s?)$", r"tire\1"), (r"^kerb(s?)$", r"curb\1"), (r"^axe?$", "axe"),
        (r"^cosy$", "cozy"), (r"^draught", "draft"), (r"^(skil|wil)lful", r"\1ful"), (r"^manoeuvr", "maneuver"),
        (r"^mum(s?)$", r"mom\1"), (r"^(an)?aesth", r"\1esth"), (r"aemia", "emia"), (r"^(p|orthop)aed", r"\1ed"),
        (r"^archaeo", "archeo"), (r"^gynaec", "gynec"), (r"^encyclopaed", "encycloped"), (r"^foet", "fet"),
        (r"^oestro", "estro"), (r"rrhoea", "rrhea"), (r"^haem", "hem"), (r"^(whisk)ey(s?)$", r"\1y\2"),
        (r"^artefact", "artifact"), (r"^enquir", "inquir"), (r"^(dis)k(s?)$", r"\1c\2"), (r"^(ok)ay$", r"\1"),
    )
)  # fmt: skip
_MAY_VARY = lazy_pattern(
    r"our|i[sz]|yz|re|ogue|ll|ens|grey|dgement|eing|programme|aluminium|plane|jama|stache|scept|ould|ough|hurt|sulph"
    r"|cheque|tyre|kerb|^axe?$|cosy|raught|lful|oeuvr|^mum|ae|oe|key|artef|enq|isk|okay"
)


MAX_WORD_CHARS: Final = 64
"""The length of the longest word that is stemmed: the stemmers take quadratic time."""


def is_irregular_form(word: str) -> bool:
    """Return True for a form of a word by the table: "saw" of "see"."""
    return word in _BASES


def stems(word: str) -> tuple[str, ...]:
    """Return the stems of a folded word, the likeliest first: one, or those of all words that have this form."""
    return _stems(word) if len(word) <= MAX_WORD_CHARS else (word,)


@lru_cache(maxsize=65_536)
def _stems(word: str) -> tuple[str, ...]:
    if number := NUMBERS.get(word):
        return (number,)
    bases = _BASES.get(word)
    if bases is None:
        return (_stem(word),)
    found = [_stem(base) for base in bases]
    return tuple(dict.fromkeys([*found, _stem(word)] if word in SHARED or word in _WORDS else found))


def _stem(word: str) -> str:
    name = _stemmer_of(word[0])
    if name is None:
        return word
    if name == "english" and _MAY_VARY.search(word):
        for pattern, replacement in _SPELLINGS:
            word = pattern.sub(replacement, word)
    return snowball(name, word)


def snowball(language: str, word: str) -> str:
    """Return the stem of a word by the Snowball stemmer of a language."""
    with _lock:  # the stemmers are not thread-safe
        return str(_stemmer(language).stemWord(word))


@cache
def _stemmer(language: str) -> Any:
    import snowballstemmer  # noqa: PLC0415  3 MB that a gateway needs with its first memory

    return snowballstemmer.stemmer(language)


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
