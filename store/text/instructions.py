"""Phrases of texts that try to instruct the agent that reads a memory. A match is a hint and often wrong."""

import re
from itertools import product
from typing import Final

PATTERN: Final = (
    r"\b(ignore|disregard|forget)\b.{0,30}\b(instructions?|rules|prompts?)\b"
    r"|\b(always|never) (answer|respond|reply|reveal|say)\b"
    r"|\byou (must|are now|shall)\b|\bsystem prompt\b|\bact as\b|\bfrom now on\b"
    r"|(忽略|无视|忘记).{0,12}(指令|说明|规则|提示)|你(必须|现在是)|从现在(起|开始)|系统提示词"
)
_PATTERN: Final = re.compile(PATTERN, re.IGNORECASE)
WORDS: Final = (
    *product(("ignore", "disregard", "forget"), ("instructions", "rules", "prompts")),
    *product(("always", "never"), ("answer", "respond", "reply", "reveal", "say")),
    *(("must",), ("shall",), ("now",), ("system", "prompt"), ("act",)),
    *product(("忽略", "无视", "忘记"), ("指令", "说明", "规则", "提示")),
    *(("你必须",), ("你现在是",), ("从现在",), ("系统提示词",)),
)
"""Words for the keyword index: every match of the pattern holds all words of one line."""


def is_instruction(text: str) -> bool:
    return _PATTERN.search(text) is not None
