"""Find words and phrases in any of their forms: "kids" and "KID'S" for "kid", "ran" for "run", "Ärzte" for "Arzt".

A form is one of the languages whose stems `store.text.stems` and `store.text.languages` know. Words of scripts without
spaces are found literally.
"""

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Final

from store.text import languages, stems
from store.text.normalize import UNSPACED, WORD, fold

_WORD: Final = re.compile(f"[{WORD}]+")
_UNSPACED: Final = re.compile(f"[{UNSPACED}]")
_UMLAUTS: Final = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "Ä": "Ae", "Ö": "Oe", "Ü": "Ue"})
_LANGUAGE_CHARS: Final = 400
_POSSESSIVE: Final = re.compile(r"'s\b")
_LETTER: Final = f"[{WORD}]"


class WordForms:
    """Words and phrases to find. Those without any letter are none."""

    def __init__(self, words: Iterable[str]) -> None:
        spellings = dict.fromkeys(form for word in words for form in (word, word.translate(_UMLAUTS)))
        folded = [one for one in (" ".join(fold(word).split()) for word in spellings) if _is_word(one)]
        self._literal = _literal(folded)
        self._phrases = [forms for word in folded if (forms := _forms_of_phrase(word))]

    def are_in(self, text: str) -> bool:
        """Return True if the text has one of the words in any form."""
        folded = " ".join(fold(text).split())
        if self._literal is not None and self._literal.search(folded):
            return True
        if not self._phrases:
            return False
        spelled = _spelled(folded)
        language = languages.guess(languages.first_words(folded[:_LANGUAGE_CHARS]))
        if language == languages.UNKNOWN and len(spelled) > languages.MAX_UNKNOWN_WORDS:
            language = languages.ENGLISH
        forms = [_forms(word, language) for word in spelled]
        return any(_stands_in(phrase, forms) for phrase in self._phrases)


@lru_cache(maxsize=256)
def word_forms(words: tuple[str, ...]) -> WordForms:
    return WordForms(words)


def _is_word(folded: str) -> bool:
    return bool(_WORD.search(folded) or _UNSPACED.search(folded))


def _literal(folded: Sequence[str]) -> re.Pattern[str] | None:
    """Return the pattern of the words as they are written, whole ones in scripts with spaces."""
    patterns = []
    for word in folded:
        before = f"(?<!{_LETTER})" if re.match(_LETTER, word) else ""
        after = f"(?!{_LETTER})" if re.search(f"{_LETTER}$", word) else ""
        patterns.append(f"{before}{re.escape(word)}{after}")
    return re.compile("|".join(patterns)) if patterns else None


def _forms_of_phrase(folded: str) -> tuple[frozenset[str], ...]:
    """Return the stems of each word of a phrase, in all languages: its own is not known. None if a part is unspaced."""
    if _UNSPACED.search(folded):
        return ()
    return tuple(_forms(word, languages.UNKNOWN) for word in _spelled(folded))


def _spelled(folded: str) -> list[str]:
    return _WORD.findall(_POSSESSIVE.sub("", folded))


@lru_cache(maxsize=65_536)
def _forms(word: str, language: str) -> frozenset[str]:
    return frozenset((*stems.stems(word), *languages.foreign_stems(word, language)))


def _stands_in(phrase: Sequence[frozenset[str]], forms: Sequence[frozenset[str]]) -> bool:
    """Return True if words of these forms stand next to each other in the text."""
    return any(
        all(not wanted.isdisjoint(forms[start + place]) for place, wanted in enumerate(phrase))
        for start in range(len(forms) - len(phrase) + 1)
    )
