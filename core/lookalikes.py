"""Find user ids that imitate others: with letters of several scripts, or that read as plain letters."""

import re
import unicodedata
from typing import Final

_ALLOWED: Final = (
    frozenset({"LATIN", "CJK", "HIRAGANA", "KATAKANA"}),
    frozenset({"LATIN", "CJK", "HANGUL"}),
    frozenset({"LATIN", "CJK", "BOPOMOFO"}),
)
"""Scripts that names mix."""
_LATIN: Final = str.maketrans(
    "\u0430\u0435\u043e\u0440\u0441\u0443\u0445\u0456\u0458\u0455\u0501\u051b\u051d\u04bb\u0410\u0412\u0415\u041a\u041c"
    "\u041d\u041e\u0420\u0421\u0422\u0425\u0406\u0408\u0405\u03b1\u03b5\u03bf\u03c1\u03c5\u03bd\u03b9\u03ba\u0391\u0392"
    "\u0395\u0396\u0397\u0399\u039a\u039c\u039d\u039f\u03a1\u03a4\u03a5\u03a7\u0131\u0251\u0261",
    "aeopcyxijsdqwhABEKMHOPCTXIJSaeopuvikABEZHIKMNOPTYXiag",
)
"""Cyrillic, Greek and other letters that look like Latin ones."""


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
    return unicodedata.normalize("NFKC", user_id).translate(_LATIN)
