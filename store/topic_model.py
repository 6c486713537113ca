"""Ask the language model which texts are about topics that a person wants never remembered.

The model finds meanings that the lexicons miss (`store.text.topics`). It is asked before a transaction, for a limited
time, and for all topics. Its answers are kept in the process, by digest: a transcript that is sent again is not asked
about again. About what it does not answer, the lexicons decide alone.
"""

import hashlib
import logging
import threading
import time
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cache
from itertools import islice
from typing import Any, Final

from django.conf import settings

from core.background.model_calls import in_parallel
from core.messages import Translatable as _
from core.network import language_model
from core.network.language_model import RULE, ChatClient, ModelAnswer
from core.network.model_endpoint import EndpointError, ModelAddress
from store.text.topics import TOPICS, Topic

logger = logging.getLogger("memory_gateway.llm")

SECONDS: Final = 8.0
"""The longest time that a request waits for the model."""
CALLS: Final = 4
_CHARS: Final = 6000
"""The characters of the texts of a call. A longer text is asked about in parts."""
_TEXTS: Final = 20
_KEPT: Final = 20_000
_PROMPT: Final = f"""\
A person wants some topics never remembered. For each numbered text, say which of these topics it tells something about
that person, or about their family and friends:
- health: illness, medicine, disability, pregnancy, therapy, the body, addiction;
- money: income, debts, savings, taxes, what they can afford;
- religion: belief, worship, what their faith asks of them;
- politics: votes, parties, opinions on public matters, activism;
- sexuality: orientation, gender identity, sexual life;
- location: where they live, are or go to;
- family: partner, children, parents and other relatives;
- work: employer, profession, colleagues, applications.
It also counts if the text only implies it, in any language. General knowledge, fiction and questions about the world do
not count. The answer's form: {{"texts": [{{"number": 1, "topics": ["health"]}}]}}. Leave out texts without a topic.
{RULE}"""


class _Told(ModelAnswer):
    number: int
    topics: list[str] = []


class _Answer(ModelAnswer):
    texts: list[_Told] = []


class _Known:
    """The answers of the model, by digest of its name and the text; the oldest ones are dropped. Thread-safe."""

    def __init__(self) -> None:
        self._topics: OrderedDict[bytes, frozenset[Topic]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, text: str) -> frozenset[Topic] | None:
        return self._topics.get(self._key(text))

    def keep(self, text: str, topics: frozenset[Topic]) -> None:
        with self._lock:
            self._topics[self._key(text)] = topics
            while len(self._topics) > _KEPT:
                self._topics.popitem(last=False)

    @staticmethod
    def _key(text: str) -> bytes:
        return hashlib.sha256(f"{_address()}\0{text}".encode("utf-8", "surrogatepass")).digest()


_known: Final = _Known()


def is_set() -> bool:
    """Return True if a language model is configured."""
    return language_model.is_set()


def ask(texts: Iterable[str], seconds: float = SECONDS) -> None:
    """Ask about the texts that the model has not told of, for `seconds` at most. No error is raised. No transaction."""
    unknown = {text for text in texts if text.strip() and _known.get(text) is None}
    if not unknown or not is_set():
        return
    ends_at = time.monotonic() + seconds
    all_calls = list(_calls(sorted(unknown)))
    missing = Counter(text for parts in all_calls for text, _part in parts)
    calls = iter(all_calls)
    told: defaultdict[str, set[Topic]] = defaultdict(set)
    answers = in_parallel(
        lambda limit: list(islice(calls, limit)),
        lambda parts: _topics(parts, ends_at - time.monotonic()),
        CALLS,
        lambda: time.monotonic() >= ends_at,
    )
    for parts, topics in answers:
        for place, (text, _part) in enumerate(parts if topics is not None else ()):
            missing[text] -= 1
            told[text] |= (topics or {}).get(place, set())
    for text, found in told.items():
        if found or not missing[text]:
            _known.keep(text, frozenset(found))


def is_about(text: str, topics: Collection[str]) -> bool:
    """Return True if the model has said that a text is about one of the topics."""
    told = _known.get(text) if topics and is_set() else None
    return bool(told and told.intersection(topics))


def _calls(texts: Sequence[str]) -> Iterator[list[tuple[str, str]]]:
    """Yield the parts of texts, each with its text, of one call each."""
    parts: list[tuple[str, str]] = []
    size = 0
    for text in texts:
        for start in range(0, len(text), _CHARS):
            part = text[start : start + _CHARS]
            if parts and (size + len(part) > _CHARS or len(parts) == _TEXTS):
                yield parts
                parts, size = [], 0
            parts.append((text, part))
            size += len(part)
    if parts:
        yield parts


def _topics(parts: Sequence[tuple[str, str]], seconds: float) -> dict[int, set[Topic]] | None:
    """Return the topics of the parts of a call, by place; None without an answer of the model."""
    lines: list[dict[str, Any]] = [{"number": 1 + place, "text": part} for place, (_text, part) in enumerate(parts)]
    try:
        answer = _client(_address()).ask(_PROMPT, lines, _Answer, max(seconds, 0.1))
    except EndpointError as error:
        logger.info("A model was not asked what is never remembered: %s The lexicons decided.", error.detail)
        return None
    found: dict[int, set[Topic]] = {}
    for one in answer.texts:
        found.setdefault(one.number - 1, set()).update(topic for topic in TOPICS if topic in one.topics)
    return found


def _address() -> ModelAddress:
    address: ModelAddress = settings.MEMORY_GATEWAY_MODELS["llm"]
    return address


@cache
def _client(address: ModelAddress) -> ChatClient:
    """Return a client with its own backoff: a model that is too slow here must not pause the extraction of memories."""
    return ChatClient(address, _("The language model endpoint"))
