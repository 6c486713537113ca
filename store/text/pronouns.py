"""Recognize turns that go on about a person or thing that the turn before names: "He is a glassblower."."""

import re
from typing import Final

_LEAD = r"(?:[^:\n]{1,40}:\s+)?(?:(?:and|but|also|so|well|oh|yes|yeah|actually|sadly|und|aber|ja|auch)\b,?\s+)?"
_PRONOUNS = "he|she|it|they|his|her|its|their|er|sie|es|seine?|ihre?"
_CONTINUES: Final = re.compile(rf"\s*{_LEAD}(?:(?:{_PRONOUNS})(?!\w)|(?:而|而且|另外)?[他她它])", re.IGNORECASE)

CONTINUATION_SIGN: Final = "c:he"
"""The token of such a turn. No text has it: those of its signs are single characters."""


def continues(text: str) -> bool:
    """Return True if a text begins with a pronoun of the third person, after a speaker's name and a word like "and"."""
    return _CONTINUES.match(text) is not None
