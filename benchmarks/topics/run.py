"""Topics that are never remembered: how many statements are refused, and how many of other topics by mistake.

`statements.tsv` holds 300 statements that were written before the lexicons, `others.tsv` 320 of two writers who did not
know these; do not tune the lexicons to them. `read.tsv` has those of other writers that were read since.
`--conversations` names a file of conversations (a list of objects with `conversation`), whose turns are not labeled:
refused ones count as mistakes unless `judged.tsv` has them, by a digest of their text.
"""

import argparse
import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from store.text.topics import TOPICS, topics_of

FOLDER: Final = Path(__file__).parent
MIN_FOUND: Final = 0.70
MAX_WRONG: Final = 0.005


def statements(name: str = "statements") -> list[tuple[str, str, str]]:
    """Return the topic, the language and the text of each statement."""
    lines = (FOLDER / f"{name}.tsv").read_text(encoding="utf-8").splitlines()
    return [(topic, language, text) for topic, language, text in (line.split("\t") for line in lines)]


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def judged() -> set[tuple[str, str]]:
    """Return the digests of turns with a topic that they are about."""
    lines = (FOLDER / "judged.tsv").read_text(encoding="utf-8").splitlines()
    return {(name, topic) for name, topic in (line.split("\t") for line in lines)}


def wrong(turns: Iterable[str]) -> tuple[Counter[str], Counter[str]]:
    """Return by topic how many turns are refused, and how many of these by mistake."""
    right, refused, mistaken = judged(), Counter[str](), Counter[str]()
    for text in turns:
        for topic in topics_of(text):
            refused[topic] += 1
            mistaken[topic] += (digest(text), topic) not in right
    return refused, mistaken


def _report(name: str) -> bool:
    """Print how many statements are refused; return True if enough are."""
    found, all_of = Counter[str](), Counter[str]()
    for topic, language, text in statements(name):
        all_of.update((topic, language, "all"))
        found.update((topic, language, "all") if topic in topics_of(text) else ())
    print(f"\n| {name} | refused | of | % |\n|---|---|---|---|")
    for part, number in all_of.items():
        print(f"| {part} | {found[part]} | {number} | {100 * found[part] / number:.0f} |")
    return found["all"] >= MIN_FOUND * all_of["all"]


def main(arguments: Sequence[str]) -> int:
    """Run the command line. Exit code 1 if a target is missed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks topics", description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--conversations", type=Path, help="a file of conversations, to count mistakes")
    options = parser.parse_args(arguments)
    is_met = min(map(_report, ("statements", "others", "read")))
    if options.conversations:
        told = json.loads(options.conversations.read_text(encoding="utf-8"))
        parts = [part for one in told for part in one["conversation"].values() if isinstance(part, list)]
        turns = [turn["text"] for part in parts for turn in part]
        refused, mistaken = wrong(turns)
        print(f"\n| of {len(turns)} turns | refused | by mistake | % |\n|---|---|---|---|")
        for topic in TOPICS:
            print(f"| {topic} | {refused[topic]} | {mistaken[topic]} | {100 * mistaken[topic] / len(turns):.2f} |")
        is_met &= all(mistaken[topic] <= MAX_WRONG * len(turns) for topic in TOPICS)
    return 0 if is_met else 1
