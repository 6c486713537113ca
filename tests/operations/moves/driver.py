"""A populated gateway for moves: filled, looked at and watched by processes of their own, as a move is.

`python -m tests.operations.moves.driver fill|check|watch STATE …`; the engine is the one of the environment.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import secrets
import select
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import memory_gateway.django_setup  # noqa: F401  first: it sets Django up for the rest

# isort: split
from django.db import connections
from django.db.models import Q

from accounts.audit import Actor
from accounts.models import MemoryUser
from accounts.services import create_user
from core.errors import EngineUnavailable
from engines.registry import get_engine
from memories.models import Override
from memories.services import decisions
from memories.services.decisions import OverrideValues
from memories.services.lookup import MemoryRef
from memories.services.search import SearchCommand, search
from resources import storage
from resources.models import Resource
from resources.services import IncomingFile, ingest
from store.models import Memory
from store.table import visible
from store.types import ContentItem, Message, Owner

ACTOR = Actor.command("tests")
NOON = 1_781_172_177_000
DAY = 86_400_000
TRIES = 30
PAUSE_SECONDS = 0.2
MARK = re.compile(r"zq\d{6}")
WORDS = (
    "invoice", "bicycle", "quarterly", "report", "garden", "meeting", "budget", "train", "doctor", "holiday", "kitchen",
    "contract", "engine", "river", "music", "piano", "school", "ticket", "window", "market", "summer", "winter",
    "friend",
)  # fmt: skip
CHINESE = ("付款期限为收到发票后三十天内", "我们下周去上海开会", "她喜欢喝绿茶", "合同需要重新审核", "周末去爬山")


@dataclass
class State:
    """The marks of texts: `deleted` and `corrected` (new mark → old ones) by user, and all others."""

    deleted: dict[str, list[list[str]]] = field(default_factory=dict)
    corrected: dict[str, dict[str, list[str]]] = field(default_factory=dict)
    live: dict[str, list[str]] = field(default_factory=dict)

    @classmethod
    def load(cls, path: Path) -> State:
        return cls(**json.loads(path.read_text()))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("verb", choices=("fill", "check", "watch"))
    parser.add_argument("state", type=Path)
    for name in ("users", "chats", "messages", "agent_every", "resources", "tombstones", "overrides"):
        parser.add_argument(f"--{name}", type=int, default=1)
    parser.add_argument("--sample", type=int, default=50)
    options = parser.parse_args()
    if options.verb == "fill":
        state = fill(options)
        options.state.write_text(json.dumps(asdict(state)))
    elif options.verb == "check":
        print(json.dumps(check(State.load(options.state), options.sample)))  # noqa: T201
    else:
        watch(State.load(options.state))


# --- filling ----------------------------------------------------------------------------------------------------------


def fill(options: Any) -> State:
    chance = random.Random(8)
    run = secrets.token_hex(4)  # an EverOS may remember earlier runs
    owners = [_user(f"user{number}.{run}") for number in range(options.users)]
    with ThreadPoolExecutor(3) as pool:  # EverOS's own database is locked where more write to it
        jobs = [
            pool.submit(_in_thread, _chat, owners[number % len(owners)], number, options, chance.random())
            for number in range(options.chats)
        ]
        jobs += [
            pool.submit(_in_thread, _file, owners[number % len(owners)], number, chance.random())
            for number in range(options.resources)
        ]
        for number, job in enumerate(jobs):
            job.result()
            if number % 50 == 0:
                print(f"filled {number}", file=sys.stderr, flush=True)  # noqa: T201
    return _decide(owners, options, chance)


def _user(name: str) -> Owner:
    user = create_user(name, actor=ACTOR).key.user
    return Owner(user.pk, user.user_id)


def _in_thread(work: Any, *given: Any) -> None:
    try:
        work(*given)
    finally:
        connections.close_all()


def _mark(kind: int, number: int, part: int) -> str:
    return f"zq{kind}{number:03d}{part:02d}"


def _sentence(chance: random.Random, mark: str) -> str:
    if chance.random() < 0.2:
        return f"{chance.choice(CHINESE)}，编号 {mark}。"
    return f"The {' '.join(chance.choices(WORDS, k=8))} of {mark}."


def _chat(owner: Owner, number: int, options: Any, seed: float) -> None:
    """Two flushes; every third chat goes over midnight. EverOS begins a memory with every day and every word of an
    agent."""
    chance, count, every = random.Random(seed), options.messages, options.agent_every
    session_id, at = f"chat:{owner.user_id}:{number}", NOON + number * 60_000
    for half in range(2):
        messages = []
        for part in range(half * count // 2, (half + 1) * count // 2):
            is_agent = part % every == every - 1
            later = DAY if number % 3 == 0 and part % (count // 2) >= count // 4 else 0
            text = ContentItem("text", text=_sentence(chance, _mark(1 + number // 1000, number % 1000, part)))
            sender, role = ("main", "assistant") if is_agent else (owner.user_id, "user")
            messages.append(Message(sender, role, at + half * 2 * DAY + later + part * 1000, (text,)))  # type: ignore[arg-type]
        _patiently(get_engine().add, owner, session_id, messages)
        _patiently(get_engine().flush, owner, session_id)


def _patiently(call: Callable[..., Any], *given: Any) -> None:
    """Again while the upstream does not get to it, as any client would."""
    for _ in range(TRIES):
        try:
            call(*given)
        except EngineUnavailable:
            time.sleep(2)
        else:
            return
    call(*given)


def _extract(resource_id: str) -> None:
    resource = ingest(resource_id)
    if resource.status != "extracted":
        raise EngineUnavailable(resource.error_message)


def _file(owner: Owner, number: int, seed: float) -> None:
    chance = random.Random(seed)
    paragraphs = [
        " ".join(_sentence(chance, _mark(9, number, part)) for _ in range(8)) for part in range(chance.randint(1, 4))
    ]
    incoming = IncomingFile(f"file{number}.txt")
    incoming.write("\n\n".join(paragraphs).encode())
    incoming.finish()
    resource = Resource(
        user=MemoryUser.objects.get(pk=owner.user_pk),
        filename=incoming.filename,
        content_type="text",
        mime_type=incoming.mime_type,
        size_bytes=incoming.size_bytes,
        sha256=incoming.sha256,
    )
    resource.session_id = f"resource:{owner.user_id}:{resource.resource_id}"
    resource.storage_path = storage.storage_path(owner.user_pk, resource.resource_id, ".txt")
    incoming.keep_as(resource.storage_path)
    resource.save(force_insert=True)
    _patiently(_extract, resource.resource_id)


def _decide(owners: Sequence[Owner], options: Any, chance: random.Random) -> State:
    state = State()
    for owner in owners:
        episodes = list(Memory.objects.filter(user_id=owner.user_pk, memory_type="episode").order_by("memory_id"))
        chance.shuffle(episodes)
        count, corrected = options.tombstones // len(owners), options.overrides // len(owners)
        deleted, reworded, rest = episodes[:count], episodes[count : count + corrected], episodes[count + corrected :]
        state.deleted[owner.user_id] = [_marks(row.text) for row in deleted]
        for row in deleted:
            decisions.delete(owner.user_pk, MemoryRef(row.memory_id), actor=ACTOR)
        state.corrected[owner.user_id] = {}
        for number, row in enumerate(reworded):
            mark = f"zx{number:06d}"
            state.corrected[owner.user_id][mark] = _marks(row.text)
            new = OverrideValues(text=f"Everything about this was wrong, it is {mark}.")
            decisions.override(owner.user_pk, MemoryRef(row.memory_id), new, actor=ACTOR)
        state.live[owner.user_id] = [mark for row in rest for mark in _marks(row.text)]
    return state


def _marks(text: str) -> list[str]:
    return sorted(set(MARK.findall(text)))


# --- looking ----------------------------------------------------------------------------------------------------------


def check(state: State, sample: int) -> dict[str, Any]:
    """What came back, what got lost, and which corrections no longer read as corrected: in the table everywhere, and in
    searches for so many of each."""
    chance = random.Random(9)
    found: dict[str, Any] = {"back": [], "lost": [], "uncorrected": [], "live": 0}
    for user in MemoryUser.objects.all():
        owner = Owner(user.pk, user.user_id)
        gone = {mark for marks in state.deleted[user.user_id] for mark in marks}
        gone |= {mark for marks in state.corrected[user.user_id].values() for mark in marks}
        shown = visible(Memory.objects.filter(Q(session__hidden_at=None), user=user, hidden_at=None))
        texts = " ".join(shown.values_list("text", flat=True))
        found["back"] += sorted(gone & set(MARK.findall(texts)))
        found["back"] += [mark for mark in chance.sample(sorted(gone), min(sample, len(gone))) if _hits(owner, mark)]
        live = chance.sample(state.live[user.user_id], min(sample, len(state.live[user.user_id])))
        found["live"] += len(live)
        found["lost"] += [mark for mark in live if not _hits(owner, mark)]
        in_force = set(Override.objects.filter(user=user, undone_at=None).values_list("text", flat=True))
        marks = sorted(state.corrected[user.user_id])
        found["uncorrected"] += [mark for mark in marks if not any(mark in text for text in in_force)]
        found["uncorrected"] += [
            mark for mark in chance.sample(marks, min(sample, len(marks))) if not _hits(owner, mark)
        ]
    return found


def _hits(owner: Owner, mark: str) -> list[str]:
    """The texts of hits that hold a mark, also in their records. EverOS's profile of a user is none of the memories."""
    scopes = frozenset({"all_user_memory"})
    command = SearchCommand(query=mark, scopes=scopes, method="keyword", top_k=20, include_profile=False)  # type: ignore[arg-type]
    return [one.hit.text for one in search(owner, command).results if mark in one.hit.text or mark in str(one.hit.raw)]


def watch(state: State) -> None:
    """Searches for what was deleted until its input ends, and says what came back. Not without a pause: what is looked
    at should get on."""
    marks = [(user_id, mark) for user_id, texts in state.deleted.items() for text in texts for mark in text]
    owners = {user.user_id: Owner(user.pk, user.user_id) for user in MemoryUser.objects.all()}
    back: list[str] = []
    searches = 0
    print("ready", flush=True)  # noqa: T201
    while not select.select([sys.stdin], [], [], PAUSE_SECONDS)[0]:
        user_id, mark = random.choice(marks)
        back += [mark] if _hits(owners[user_id], mark) else []
        searches += 1
    print(json.dumps({"searches": searches, "back": back}), flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
