"""Recognize turns that go on about a person or thing that the turn before names: "He is a glassblower."."""

import re
from typing import Final

from core.patterns import lazy_pattern

_LEAD = (
    r"(?:[^:\n]{1,40}:\s+)?(?:(?:and|but|also|so|well|oh|yes|yeah|actually|sadly|und|aber|ja|auch|y|pero|et|mais|e|mas)\b"
    r",?\s+)?"
)
_PRONOUNS = (
    "he|she|it|they|his|her|its|their|er|sie|es|seine?|ihre?|[eé]l|ellas?|ellos|sus?|ils?|elles?|c'est|son|sa|ses|leurs?"
    "|eles?|elas?|del[ea]s?"
)
# Spanish and Portuguese sentences without a subject.
_VERBS = "est[aá]n?|tiene|era|eran|fue|vive|trabaja|tem|vivem?|mora|trabalha|foi|é|s[aã]o"
_CONTINUES: Final = lazy_pattern(
    rf"\s*{_LEAD}(?:(?:{_PRONOUNS}|{_VERBS})(?!\w)|(?:而|而且|另外|听说|原来)?[他她它])", re.IGNORECASE
)
# "Remind me that she …": no other person is named before the pronoun.
_LATER: Final = lazy_pattern(r"\s*(?:\w[a-zà-ÿ']*,?\s+){1,5}(?:he|she|elle|ella|ele|ela)(?![\w-])|\w{1,4}[他她]")

CONTINUATION_SIGN: Final = "c:he"
"""The token of such a turn. No text has it: those of its signs are single characters."""


def continues(text: str) -> bool:
    """Return True if a text begins with a pronoun of the third person, or has one before any name.

    A speaker's name and a word like "and" may come first.
    """
    return _CONTINUES.match(text) is not None or _LATER.match(text) is not None
