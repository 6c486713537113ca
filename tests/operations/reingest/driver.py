"""Fill, check and watch a gateway during re-ingests, each in a separate process.

`python -m tests.operations.reingest.driver fill|check|watch STATE …`; the remote is the one of the environment.
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

import memory_gateway.django_setup  # noqa: F401  must come first: it sets up Django

# isort: split
from django.db import connections

from accounts.audit import Actor
from accounts.models import MemoryUser
from accounts.services import create_user
from core.errors import EngineUnavailable
from core.persistence.files import stored_files
from engines.registry import get_engine
from memories.models import Override
from memories.services import decisions
from memories.services.decisions import OverrideValues
from memories.services.lookup import MemoryRef
from memories.services.scoped_hits import SearchCommand
from memories.services.search import search
from resources import storage
from resources.models import Resource
from resources.services import IncomingFile, ingest
from store import cover
from store.models import IS_LIVE, Memory
from store.table import visible
from store.types import ContentItem, Message, Owner

ACTOR = Actor.command("tests")
NOON = 1_781_172_177_000
DAY = 86_400_000
MAX_ATTEMPTS = 30
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
    """The marks in texts by user: of deleted, overridden (new mark → old marks) and live memories."""

    deleted: dict[str, list[list[str]]] = field(default_factory=dict)
    overridden: dict[str, dict[str, list[str]]] = field(default_factory=dict)
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


# --- fill -------------------------------------------------------------------------------------------------------------


def fill(options: Any) -> State:
    rng = random.Random(8)
    run = secrets.token_hex(4)  # EverOS keeps data of earlier runs
    owners = [_user(f"user{number}.{run}") for number in range(options.users)]
    with ThreadPoolExecutor(3) as pool:  # more writers would lock the database of EverOS
        jobs = [
            pool.submit(_in_thread, _chat, owners[number % len(owners)], number, options, rng.random())
            for number in range(options.chats)
        ]
        jobs += [
            pool.submit(_in_thread, _file, owners[number % len(owners)], number, rng.random())
            for number in range(options.resources)
        ]
        for number, job in enumerate(jobs):
            job.result()
            if number % 50 == 0:
                print(f"filled {number}", file=sys.stderr, flush=True)  # noqa: T201
    return _decide(owners, options, rng)


def _user(name: str) -> Owner:
    user = create_user(name, actor=ACTOR).key.user
    return Owner(user.pk, user.user_id)


def _in_thread(work: Any, *arguments: Any) -> None:
    try:
        work(*arguments)
    finally:
        connections.close_all()


def _mark(kind: int, number: int, part: int) -> str:
    return f"zq{kind}{number:03d}{part:02d}"


def _sentence(rng: random.Random, mark: str) -> str:
    if rng.random() < 0.2:
        return f"{rng.choice(CHINESE)}，编号 {mark}。"
    return f"The {' '.join(rng.choices(WORDS, k=8))} of {mark}."


def _chat(owner: Owner, number: int, options: Any, seed: float) -> None:
    """Add and flush a session twice; every third one continues past midnight.

    EverOS starts a new memory with each day and each message of an agent.
    """
    rng, count, agent_every = random.Random(seed), options.messages, options.agent_every
    session_id, at = f"chat:{owner.user_id}:{number}", NOON + number * 60_000
    for half in range(2):
        messages = []
        for part in range(half * count // 2, (half + 1) * count // 2):
            is_agent = part % agent_every == agent_every - 1
            delay_ms = DAY if number % 3 == 0 and part % (count // 2) >= count // 4 else 0
            text = ContentItem("text", text=_sentence(rng, _mark(1 + number // 1000, number % 1000, part)))
            sender, role = ("main", "assistant") if is_agent else (owner.user_id, "user")
            messages.append(Message(sender, role, at + half * 2 * DAY + delay_ms + part * 1000, (text,)))  # type: ignore[arg-type]
        _retry(get_engine().add, owner, session_id, messages)
        _retry(get_engine().flush, owner, session_id)


def _retry(call: Callable[..., Any], *arguments: Any) -> None:
    """Call the function again while the upstream is unavailable, as clients do."""
    for _ in range(MAX_ATTEMPTS):
        try:
            call(*arguments)
        except EngineUnavailable:
            time.sleep(2)
        else:
            return
    call(*arguments)


def _extract(resource_id: str) -> None:
    resource = ingest(resource_id)
    if resource.status != "extracted":
        raise EngineUnavailable(resource.error_message)


def _file(owner: Owner, number: int, seed: float) -> None:
    rng = random.Random(seed)
    paragraphs = [
        " ".join(_sentence(rng, _mark(9, number, part)) for _ in range(8)) for part in range(rng.randint(1, 4))
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
    stored_files().put(incoming.path, resource.storage_path)
    resource.save(force_insert=True)
    _retry(_extract, resource.resource_id)


def _decide(owners: Sequence[Owner], options: Any, rng: random.Random) -> State:
    state = State()
    for owner in owners:
        episodes = list(
            Memory.objects.filter(user_id=owner.user_pk, memory_type="episode", is_covered=False).order_by("memory_id")
        )
        rng.shuffle(episodes)
        count, overrides = options.tombstones // len(owners), options.overrides // len(owners)
        deleted, overridden, rest = episodes[:count], episodes[count : count + overrides], episodes[count + overrides :]
        state.deleted[owner.user_id] = [_marks(row.text) for row in deleted]
        for row in deleted:
            decisions.delete(owner.user_pk, MemoryRef(row.memory_id), actor=ACTOR)
        state.overridden[owner.user_id] = {}
        for number, row in enumerate(overridden):
            mark = f"zx{number:06d}"
            state.overridden[owner.user_id][mark] = _marks(row.text)
            new = OverrideValues(text=f"Everything about this was wrong, it is {mark}.")
            decisions.override(owner.user_pk, MemoryRef(row.memory_id), new, actor=ACTOR)
        state.live[owner.user_id] = [mark for row in rest for mark in _marks(row.text)]
    return state


def _marks(text: str) -> list[str]:
    return sorted(set(MARK.findall(text)))


# --- check and watch --------------------------------------------------------------------------------------------------


def check(state: State, sample: int) -> dict[str, Any]:
    """Return the marks of restored and lost texts and of lost overrides.

    The table is checked completely, searches for a sample of each.
    """
    rng = random.Random(9)
    found: dict[str, Any] = {"restored": [], "lost": [], "lost_overrides": [], "live": 0}
    for user in MemoryUser.objects.all():
        owner = Owner(user.pk, user.user_id)
        hidden_marks = {mark for marks in state.deleted[user.user_id] for mark in marks}
        hidden_marks |= {mark for marks in state.overridden[user.user_id].values() for mark in marks}
        shown = visible(Memory.objects.filter(IS_LIVE, user=user))
        shown = shown.exclude(cover.is_left_out())
        texts = " ".join(shown.values_list("text", flat=True))
        found["restored"] += sorted(hidden_marks & set(MARK.findall(texts)))
        found["restored"] += [
            mark for mark in rng.sample(sorted(hidden_marks), min(sample, len(hidden_marks))) if _hits(owner, mark)
        ]
        live = rng.sample(state.live[user.user_id], min(sample, len(state.live[user.user_id])))
        found["live"] += len(live)
        found["lost"] += [mark for mark in live if not _hits(owner, mark)]
        active_texts = set(Override.objects.filter(user=user, undone_at=None).values_list("text", flat=True))
        marks = sorted(state.overridden[user.user_id])
        found["lost_overrides"] += [mark for mark in marks if not any(mark in text for text in active_texts)]
        found["lost_overrides"] += [
            mark for mark in rng.sample(marks, min(sample, len(marks))) if not _hits(owner, mark)
        ]
    return found


def _hits(owner: Owner, mark: str) -> list[str]:
    """Return the texts of hits that contain a mark, also in their records. Profiles are not searched."""
    scopes = frozenset({"all_user_memory"})
    command = SearchCommand(query=mark, scopes=scopes, method="keyword", top_k=20, include_profile=False)  # type: ignore[arg-type]
    return [one.hit.text for one in search(owner, command).results if mark in one.hit.text or mark in str(one.hit.raw)]


def watch(state: State) -> None:
    """Search for deleted texts until standard input ends, and print those found.

    Pauses between searches leave processor time to the re-ingest.
    """
    marks = [(user_id, mark) for user_id, texts in state.deleted.items() for text in texts for mark in text]
    owners = {user.user_id: Owner(user.pk, user.user_id) for user in MemoryUser.objects.all()}
    restored: list[str] = []
    searches = 0
    print("ready", flush=True)  # noqa: T201
    while not select.select([sys.stdin], [], [], PAUSE_SECONDS)[0]:
        user_id, mark = random.choice(marks)
        restored += [mark] if _hits(owners[user_id], mark) else []
        searches += 1
    print(json.dumps({"searches": searches, "restored": restored}), flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
