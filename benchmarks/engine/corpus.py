"""Synthetic texts with the word frequencies of a language, and clustered vectors."""

import itertools
import random
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

_WORDS = 20_000
_FREQUENT = 2000
_GROUPS = 200
_SPREAD = 0.7


@dataclass(frozen=True, slots=True)
class Item:
    """A memory or a question of a user."""

    user: int
    text: str
    vector: npt.NDArray[np.float32]


class Corpus:
    """Generated users, memories and questions; the same for the same seed."""

    def __init__(self, users: int, dimensions: int, seed: int = 1) -> None:
        self._users = users
        self._random = random.Random(seed)
        self._numbers = np.random.default_rng(seed)
        self._words = sorted({self._word() for _ in range(_WORDS)})
        self._random.shuffle(self._words)
        self._weights = list(itertools.accumulate(1 / (place + 5) for place in range(len(self._words))))
        self._groups = self._numbers.normal(size=(_GROUPS, dimensions))

    def memories(self, count: int) -> list[Item]:
        """Yield memories, one user after another in turn."""
        return [self._item(number % self._users, self._random.randint(8, 30), number) for number in range(count)]

    def questions(self, count: int) -> list[Item]:
        return [self._item(self._random.randrange(self._users), 7, number) for number in range(count)]

    def rare_questions(self, count: int) -> list[str]:
        """Return questions of four words that few memories contain."""
        return [" ".join(self._random.sample(self._words[_FREQUENT:], 4)) for _ in range(count)]

    def _item(self, user: int, length: int, number: int) -> Item:
        words = self._random.choices(self._words, cum_weights=self._weights, k=length)
        group = self._groups[self._random.randrange(_GROUPS)]
        vector = group + _SPREAD * self._numbers.normal(size=group.shape)
        unit = (vector / np.linalg.norm(vector)).astype(np.float32)
        return Item(user, f"{' '.join(words)} {number}", unit)

    def _word(self) -> str:
        syllables = range(self._random.randint(2, 4))
        return "".join(self._random.choice("bcdfglmnprst") + self._random.choice("aeiou") for _ in syllables)
