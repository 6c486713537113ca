"""Guess the language of a text by its stop words, and stem words of languages other than English.

English is the language of texts without other evidence. The stem of another language has the prefix `^`, so that the
reading of a word in one language never meets an English word: "care" is `car` in Spanish.
"""

from collections.abc import Iterable
from functools import lru_cache
from typing import Final

from core.patterns import lazy_pattern
from store.text.irregular_forms import bases, infinitives
from store.text.stems import MAX_WORD_CHARS, snowball

FOREIGN: Final = "^"
"""The prefix of the stems of other languages."""
UNKNOWN: Final = ""
ENGLISH: Final = "english"
MAX_UNKNOWN_WORDS: Final = 20
"""The length of the longest text that is read in all languages for lack of stop words."""

# Folded, without accents.
_STOP_WORDS: Final = {
    ENGLISH: "a about am an and are as at be been but by can could did do does for from had has have he her his how i "
    "if in into is it its me my not of on or our she should so than that the their them then there these they this to "
    "us was we were what when where which who why will with would you your",
    "german": "aber als am an auch auf aus bei bin bis bist da das dass dein deine dem den der des die dies diese "
    "diesem diesen dieser dieses dich dir du durch ein eine einem einen einer er es euch fur hab habe haben hast hat "
    "hatte hatten ich ihm ihn ihr ihre im in ist kann kein keine man mein meine meinem meinen meiner mich mir mit nach "
    "nicht noch nur ob oder sein seine sich sie sind uber um und uns unser unsere vom von vor war waren warum was wann "
    "welche welcher welches wem wen wenn wer werden wie wir wird wo wurde wurden zu zum zur",
    "spanish": "al como con cual cuando de del donde el ella ellos en era es esa ese eso esta este esto estoy fue ha "
    "han hay he la las le lo los mas me mi mis muy nos o para pero por porque que quien se si sin sobre soy son su sus "
    "te tengo tiene tu tus un una uno unos y ya yo",
    "french": "ai as au aux avec avez c ce ces cet cette comment d dans de des donc du elle elles en est et etait "
    "etre eu il ils j je l la le les leur leurs lui ma mais me mes moi mon n ne nos notre nous on ont ou par pas pour "
    "pourquoi qu quand que quel quelle quels qui sa sans se ses son sont suis sur ta te tes toi ton tu un une va vos "
    "votre vous y combien quelles etais etaient sont cela ca chez dont fut lequel laquelle sera",
    "italian": "agli ai al alla alle anche che chi ci come con cosa da dai dal dalla de degli dei del della delle di "
    "dove e ed era fu gli ha hai hanno ho i il in io la le lei lo loro lui ma me mi mia mie miei mio ne nei nel nella "
    "noi non o per perche piu quale quando questa questo qui sei si sia siamo sono su sul sulla suo sua ti tra tu tuo "
    "tua un una uno vi voi",
    "portuguese": "a ao aos as com como da das de dela dele do dos e ela elas ele eles em era essa esse esta este eu "
    "foi ha isso isto ja la lhe mais mas me meu meus minha minhas muito na nao nas nem no nos nossa nosso o onde os ou "
    "quanto quanta quantos quantas quais aonde sao foram estava estou era num numa nossos "
    "para pela pelo por porque qual quando que quem se sem ser seu seus sua suas tem tenho te teu tua um uma voce",
    "dutch": "aan al als bij dan dat de deze die dit een en er geen haar had hebben heb heeft hem het hij hoe hun "
    "ik in is je jij jullie kan maar me mij mijn met na naar niet nog nu of om omdat onder ons onze ook op over te tot "
    "u uit van veel voor waar waarom wanneer was wat we wel welke werd wie wij wordt ze zich zij zijn zo zou",
    "swedish": "alla att av bara blev bli da de dem den denna det detta dig din dina du efter eller en er ett fran for "
    "ha hade han hans har henne hennes hon hos hur i icke inte ja jag kan man med men mig min mina mitt mot mycket ni "
    "nar och om oss pa sa sedan sig sin sitt ska som till under upp ut vad var vara varfor vem vi vid vilken",
    "turkish": "acaba ama ancak bana ben beni benim bir biz bizim bu bunu cok da daha de degil diye en gibi hangi hem "
    "her icin ile ise kadar ki kim mi mu nasil ne neden nerede nereye o olan olarak oldu on onlar onu onun sen senin "
    "siz sonra su ve veya ya yok",
}
LANGUAGES: Final = tuple(_STOP_WORDS)
_OTHERS: Final = LANGUAGES[1:]
STOP_WORDS_OF: Final = {language: frozenset(words.split()) for language, words in _STOP_WORDS.items()}
_BITS: Final = {
    word: sum(1 << place for place, language in enumerate(LANGUAGES) if word in STOP_WORDS_OF[language])
    for word in frozenset().union(*STOP_WORDS_OF.values())
}
_FIRST_LETTERS: Final = lazy_pattern(r"(?<!\S)[^\w\s]*([^\W\d_]+)")
"""The letters that words begin with: `que` of "¿que", `qu` of "qu'ai-je", `it` of "it's"."""


def guess(words: Iterable[str]) -> str:
    """Return the language of folded words: the one with the most stop words, English if it has as many.

    Without any stop word: `UNKNOWN`.
    """
    bits = [one for one in map(_BITS.get, words) if one]
    if not [one for one in bits if not one & 1]:
        return ENGLISH if bits else UNKNOWN
    counts = [sum(one >> place & 1 for one in bits) for place in range(len(LANGUAGES))]
    return LANGUAGES[counts.index(max(counts))]


def first_words(folded: str) -> list[str]:
    """Return the words of a folded text that tell its language, without signs and what follows an apostrophe."""
    return _FIRST_LETTERS.findall(folded)


def foreign_stems(word: str, language: str) -> tuple[str, ...]:
    """Return the marked stems of a folded word in a language; in all of them if it is `UNKNOWN`, none in English."""
    return () if language == ENGLISH or len(word) > MAX_WORD_CHARS else _foreign_stems(word, language)


@lru_cache(maxsize=65_536)
def _foreign_stems(word: str, language: str) -> tuple[str, ...]:
    names = _OTHERS if language == UNKNOWN else (language,)
    stems = [snowball(one, base) for one in names for base in bases(word, one)]
    verbs = infinitives(word) if "german" in names else ()
    return tuple(dict.fromkeys(f"{FOREIGN}{stem}" for stem in (*stems, *verbs)))
