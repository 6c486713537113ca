"""Words to the stem that their inflections share, and the words that say too little to look for."""

from __future__ import annotations

import threading
from typing import Final

import snowballstemmer

_STOP_WORDS = """a am an and are as at be been being but by can could did do does doing for from had has have having he
her hers herself him himself his how i if in into is it its itself me my myself not of on or our ours ourselves she
should so than that the their theirs them themselves then there these they this those to us was we were what when where
which who whom whose why will with would you your yours yourself yourselves"""
STOP_WORDS: Final = frozenset(_STOP_WORDS.split())

_IRREGULAR: Final = {
    form: base
    for line in """arise arose arisen|awake awoke awoken|bear bore borne|beat beaten|become became|begin began begun|
    bend bent|bind bound|bite bit bitten|bleed bled|blow blew blown|break broke broken|breed bred|bring brought|
    build built|burn burnt|buy bought|catch caught|choose chose chosen|come came|creep crept|deal dealt|dig dug|
    draw drew drawn|dream dreamt|drink drank drunk|drive drove driven|eat ate eaten|fall fell fallen|feed fed|
    feel felt|fight fought|find found|fly flew flown|forbid forbade forbidden|forget forgot forgotten|
    forgive forgave forgiven|freeze froze frozen|get got gotten|give gave given|go went gone|grow grew grown|
    hang hung|hear heard|hide hid hidden|hold held|keep kept|kneel knelt|know knew known|lay laid|lead led|
    lean leant|learn learnt|leave left|lend lent|light lit|lose lost|make made|mean meant|meet met|pay paid|
    prove proven|ride rode ridden|ring rang rung|rise rose risen|run ran|say said|see saw seen|seek sought|sell sold|
    send sent|sew sewn|shake shook shaken|shine shone|shoot shot|show shown|shrink shrank shrunk|sing sang sung|
    sink sank sunk|sit sat|sleep slept|slide slid|speak spoke spoken|spend spent|spin spun|spring sprang sprung|
    stand stood|steal stole stolen|stick stuck|sting stung|strike struck|swear swore sworn|sweep swept|
    swim swam swum|swing swung|take took taken|teach taught|tear tore torn|tell told|think thought|
    throw threw thrown|understand understood|wake woke woken|wear wore worn|weave wove woven|weep wept|win won|
    withdraw withdrew withdrawn|write wrote written|child children|person people|man men|woman women|foot feet|
    tooth teeth|mouse mice|goose geese|wife wives|knife knives|life lives|leaf leaves|half halves|shelf shelves|
    wolf wolves|good better best|bad worse worst|analysis analyses|crisis crises|thesis theses|index indices|
    criterion criteria|phenomenon phenomena|2 two|3 three|4 four|5 five|6 six|7 seven|8 eight|9 nine|10 ten|
    11 eleven|12 twelve|1st first|2nd second|3rd third""".replace("\n", "").split("|")
    for base, *forms in [line.split()]
    for form in forms
}


def stem(word: str) -> str:
    """The stem of a folded word: irregular forms by table, then Snowball by the script it is written in."""
    word = _IRREGULAR.get(word, word)
    name = _stemmer_of(word[0])
    if name is None:
        return word
    with _lock:  # the stemmers keep the word that they work on
        return str(_stemmers[name].stemWord(word))


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
_stemmers = {name: snowballstemmer.stemmer(name) for name in ("english", "greek", "russian", "arabic", "hindi")}
