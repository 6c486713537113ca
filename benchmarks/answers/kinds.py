"""The kinds of cases: how to tell each to a gateway, and how to judge its answer."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple

from benchmarks.answers.client import BEGAN_MS, DAY_MS, Asked, Said, SystemUser

Case = Mapping[str, Any]
Shown = dict[str, bool]
"""The verdict on an answer by the name of the measure: True if it passes."""

_BETWEEN: Final = 30
"""Days between a statement and the one that replaces it."""
_HALF_OF_LONGEST: Final = 490_000
"""Characters of filler before and after a fact in a message that is as long as the gateway takes."""
_SMALL_TALK: Final = (
    "The bakery around the corner has new opening hours.",
    "I watched a documentary about deep sea fish.",
    "Tomatoes were expensive at the market.",
    "The neighbors are painting their fence green.",
    "I finished the crossword in twenty minutes.",
    "Our train was late because of leaves on the tracks.",
    "My umbrella broke in the storm.",
    "The library lends board games too.",
)


class Kind(NamedTuple):
    """A kind of cases. `targets`: the least shares of cases by measure, of the own and of those that others wrote."""

    name: str
    tell_and_ask: Callable[[SystemUser, Case], Shown]
    targets: Mapping[str, tuple[float, float]]


def _holds(texts: Sequence[str], answer: str) -> bool:
    return any(answer.casefold() in text.casefold() for text in texts)


def _first(asked: Asked, answer: str, places: int = 1) -> Shown:
    texts = [result["text"] for result in asked.results[:places]]
    return {"search": _holds(texts, answer), "recall": _holds(asked.recalled[:places], answer)}


def _is_of_agent(text: str) -> bool:
    """Return True for a fact in the words of an agent, which stores it by its tool."""
    return "the user" in text.casefold() or text.startswith("用户")


def _tell(person: SystemUser, texts: Sequence[str], *, days: int) -> None:
    """Tell texts some days apart, after small talk: as messages, or as facts of an agent."""
    person.say(Said(text, BEGAN_MS + n * DAY_MS, session=f"talk{n}") for n, text in enumerate(_SMALL_TALK))
    if all(map(_is_of_agent, texts)):
        for text in texts:
            person.store(text)
    else:
        person.say(Said(text, BEGAN_MS + n * days * DAY_MS, session=f"chat{n}") for n, text in enumerate(texts))


def _updates(person: SystemUser, case: Case) -> Shown:
    _tell(person, [case["old"], case["new"]], days=_BETWEEN)
    asked = person.ask(case["question"])
    return _first(asked, case["answer"]) | {"recall without the old one": not _holds(asked.recalled, case["old"])}


def _history(person: SystemUser, case: Case) -> Shown:
    _tell(person, [case["old"], case["new"]], days=_BETWEEN)
    return _first(person.ask(case["question"]), case["answer"])


def _negatives(person: SystemUser, case: Case) -> Shown:
    said = [
        Said(
            one["text"],
            BEGAN_MS + one.get("day", place) * DAY_MS,
            "user" if one.get("role") == "participant" else one.get("role", "user"),
            f"chat{place}",
            one.get("sender") or ("maria" if one.get("role") == "participant" else ""),
        )
        for place, one in enumerate(case["messages"])
    ]
    person.say(said)
    asked = person.ask(case["question"])
    earlier = case["messages"][0]["text"]
    is_found = _holds([one["text"] for one in asked.results], earlier)
    shown = {
        "not marked": not any(one["superseded_by"] for one in asked.results),
        "not left out": not is_found or _holds(asked.recalled, earlier),
    }
    if case.get("answer"):
        shown["not reordered"] = not asked.results or _first(asked, case["answer"])["search"]
    return shown


def _unanswerable(person: SystemUser, case: Case) -> Shown:
    person.say(Said(text, BEGAN_MS + n * DAY_MS, session=f"chat{n}") for n, text in enumerate(case["facts"]))
    asked = person.ask(case["question"])
    if case.get("known") == "partly":
        is_low = all(one["relevance"] is not None and one["relevance"] < 0.5 for one in asked.results)
        return {"partly known: three of low relevance at most": is_low and len(asked.results) <= 3}
    return {"nothing known: nothing": not asked.results and not asked.recalled}


def _answerable(person: SystemUser, case: Case) -> Shown:
    person.say(Said(text, BEGAN_MS + n * DAY_MS, session=f"chat{n}") for n, text in enumerate(case["facts"]))
    asked = person.ask(case["question"])
    without_floor = person.search(case["question"], min_relevance=0)
    was_found = _holds([one["text"] for one in without_floor], case["answer"])
    found = _holds([one["text"] for one in asked.results], case["answer"])
    return {"as without the floor": found or not was_found, **_first(asked, case["answer"])}


def _echoes(person: SystemUser, case: Case) -> Shown:
    told = [Said(case["fact"], BEGAN_MS, session="told")]
    for n, question in enumerate(case["asked_before"], start=1):
        at = BEGAN_MS + n * DAY_MS
        told.append(Said(question, at, session=f"asked{n}"))
        if case.get("reply"):
            told.append(Said(case["reply"], at + 1000, "assistant", f"asked{n}"))
    person.say(told)
    asked = person.ask(case["question"])
    return _first(asked, case.get("answer") or case["fact"])


def _duplicates(person: SystemUser, case: Case) -> Shown:
    others = case.get("others", ())
    texts = [*case["wordings"], *others]
    person.say(Said(text, BEGAN_MS + n * DAY_MS, session=f"chat{n}") for n, text in enumerate(texts))
    found = [one["text"] for one in person.search(case["question"])]
    if not others:
        return {"different facts keep their places": found == _unfolded(person, case["question"])}
    wordings = [place for place, text in enumerate(found) if text in case["wordings"]]
    last_other = max((place for place, text in enumerate(found) if text in others), default=-1)
    return {"two of five wordings before others": len(wordings) < 3 or wordings[2] > last_other}


def _unfolded(person: SystemUser, question: str) -> list[str]:
    return [one["text"] for one in person.search(question, fold=False)]


def _time(person: SystemUser, case: Case) -> Shown:
    said = [
        Said(text, int(datetime.fromisoformat(at).timestamp() * 1000), session=f"chat{n}")
        for n, (at, text) in enumerate(case["messages"])
    ]
    options = {name: case[key] for name, key in (("now", "now"), ("timezone", "zone")) if case.get(key)}
    person.say(said, **({"timezone": case["zone"]} if case.get("zone") else {}))
    found = person.search(case["question"], **options)
    return {"search": bool(found) and _holds([found[0]["text"]], case["answer"])}


def _pronouns(person: SystemUser, case: Case) -> Shown:
    person.say(Said(text, BEGAN_MS + n * 60_000) for n, text in enumerate(case["messages"]))
    return _first(person.ask(case["question"]), case["answer"], places=2)


def _words(person: SystemUser, case: Case) -> Shown:
    person.say([Said(case["memory"])])
    asked = person.ask(case["query"])
    return {"search": bool(asked.results), "recall": bool(asked.recalled)}


def _budgets(person: SystemUser, case: Case) -> Shown:
    filler = (case["filler"] * (case["times"] // 2))[:_HALF_OF_LONGEST]
    person.say([Said(f"{filler}{case['fact']}{filler}")])
    lines, size = person.recall(case["query"])
    return {"small": size <= case["max_bytes"], "with the passage": _holds(lines, case["fact"].strip())}


KINDS: Final = (
    Kind(
        "updates",
        _updates,
        {"search": (0.95, 0.85), "recall": (0.95, 0.85), "recall without the old one": (0.95, 0.85)},
    ),
    Kind(
        "negatives",
        _negatives,
        {"not marked": (0.98, 0.98), "not left out": (1.0, 1.0), "not reordered": (0.98, 0.98)},
    ),
    Kind("history", _history, {"search": (0.9, 0.9), "recall": (0.9, 0.9)}),
    Kind(
        "unanswerable",
        _unanswerable,
        {"nothing known: nothing": (0.98, 0.98), "partly known: three of low relevance at most": (0.9, 0.9)},
    ),
    Kind("answerable", _answerable, {"as without the floor": (0.99, 0.99), "search": (0.0, 0.0), "recall": (0.0, 0.0)}),
    Kind("echoes", _echoes, {"search": (0.95, 0.95), "recall": (0.95, 0.95)}),
    Kind(
        "duplicates",
        _duplicates,
        {"two of five wordings before others": (0.95, 0.9), "different facts keep their places": (0.95, 0.95)},
    ),
    Kind("time", _time, {"search": (0.95, 0.95)}),
    Kind("time_words", _time, {"search": (0.9, 0.9)}),
    Kind("pronouns", _pronouns, {"search": (0.8, 0.8), "recall": (0.8, 0.8)}),
    Kind("words", _words, {"search": (1.0, 1.0), "recall": (1.0, 1.0)}),
    Kind("budgets", _budgets, {"small": (1.0, 1.0), "with the passage": (0.9, 0.9)}),
)
