"""Letters that look like Latin ones, and user ids that imitate others by them or by letters of several scripts."""

import re
import unicodedata
from typing import Final

_ALLOWED: Final = (
    frozenset({"LATIN", "CJK", "HIRAGANA", "KATAKANA"}),
    frozenset({"LATIN", "CJK", "HANGUL"}),
    frozenset({"LATIN", "CJK", "BOPOMOFO"}),
)
"""Scripts that names mix."""


def _alike(*pairs: tuple[str, str]) -> dict[int, str]:
    return {ord(one): latin for others, letters in pairs for one, latin in zip(others, letters, strict=True)}


LOOKALIKES: Final = (
    _alike(("авԁеһіјкмнорѕтуѵԝхԛүсп", "abdehijkmhopstyvwxqycn"), ("АВЕНІЈКМОРԚЅТУѴԜХҮС", "ABEHIJKMOPQSTYVWXYC")),
    _alike(("αβεηικνορτυχωγ", "abenikvoptuxwy"), ("ΑΒΕΖΗΙΚΜΝΟΡΤΥΧ", "ABEZHIKMNOPTYX")),
    _alike(("աեգհոսցօքյզղ", "wtqhnugopjqn")),
    _alike(("ᎪᏴᏟᎠᎬᎻᎫᏦᏞᎷᏢᏒᏚᎢᏙᏔᏃ", "ABCDEHJKLMPRSTVWZ")),
)
"""Letters of Cyrillic, Greek, Armenian and Cherokee that look like Latin ones."""
LIKE_LATIN: Final = {code: letter for script in LOOKALIKES for code, letter in script.items()}
LIKE_LATIN.update({0x131: "i", 0x251: "a", 0x261: "g"})


def mixes_scripts(user_id: str) -> bool:
    """Return True if an id has letters of scripts that no name mixes."""
    if user_id.isascii():
        return False
    letters = (unicodedata.name(char, "") for char in unicodedata.normalize("NFKC", user_id) if char.isalpha())
    scripts = {re.split("[ -]", name)[0] for name in letters if name}
    return len(scripts) > 1 and not any(scripts <= allowed for allowed in _ALLOWED)


def plain_form(user_id: str) -> str:
    """Return the id in the plain letters that it looks like; itself for most."""
    if user_id.isascii():
        return user_id
    return unicodedata.normalize("NFKC", user_id).translate(LIKE_LATIN)
