"""Made-up memories in any number, for measuring and showing: conversations of many users over many days."""

from __future__ import annotations

import random
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice
from typing import Final

from django.db import transaction
from django.utils import timezone

from accounts import services as accounts
from accounts.audit import Actor
from accounts.models import MemoryUser
from core.times import to_ms
from operations.commands import Report, Stop
from store import rollups, storage
from store.index.keyword import entry_of
from store.models import Memory, Session
from store.types import Owner

ACTOR: Final = Actor.command("seed_memories")
AGENTS: Final = ("main", "coder", "planner", "travel")
_SESSIONS_AT_ONCE: Final = 50
_LEARNED: Final = (
    "user_memory_fact", "user_memory_preference", "user_memory_decision", "self_improving_learnings",
    "self_improving_errors", "self_improving_feature_requests",
)  # fmt: skip
_SUBJECTS: Final = (
    "the invoice",
    "the garden",
    "this release",
    "my sister",
    "the train to Hamburg",
    "合同",
    "下周的会议",
)
_VERBS: Final = ("has to wait for", "goes well with", "was moved because of", "depends on", "要等", "已经取代了")
_OBJECTS: Final = ("the new supplier", "green tea", "a broken test", "the budget", "二号楼的租约", "客户的回复")


@dataclass(frozen=True, slots=True)
class Plan:
    """`number` memories of `users` users, said within `days` days before now; the same seed makes the same texts."""

    number: int
    users: int
    days: int = 730
    seed: int = 0
    is_indexed: bool = True


def make(plan: Plan, *, report: Report, stop: Stop, until: datetime | None = None) -> int:
    """Writes the memories beside what is there already; how many. Errors: `Stopped`."""
    chance = random.Random(plan.seed)  # noqa: S311 - made-up texts, no secrets
    owners = [_owner(number) for number in range(plan.users)]
    conversations = _conversations(plan, chance, until or timezone.now())
    done = 0
    while some := list(islice(conversations, _SESSIONS_AT_ONCE)):
        stop.check()
        with transaction.atomic():
            for at, length in some:
                done += _write(plan, chance, chance.choice(owners), at, length)
        rollups.settle()
        report("memories", done, plan.number)
    return done


def _owner(number: int) -> Owner:
    user_id = f"many-{number:05}"
    user = MemoryUser.objects.filter(user_id=user_id).first()
    pk = user.pk if user else accounts.create_user(user_id, actor=ACTOR).key.user_id
    return Owner(pk, user_id)


def _conversations(plan: Plan, chance: random.Random, until: datetime) -> Iterator[tuple[int, int]]:
    """When each begins (Unix milliseconds, in their order) and how many memories come of it."""
    lengths, left = [], plan.number
    while left:
        lengths.append(min(left, chance.randint(8, 40)))
        left -= lengths[-1]
    first, last = to_ms(until - timedelta(days=plan.days)), to_ms(until)
    return zip(sorted(chance.randrange(first, last) for _ in lengths), lengths, strict=True)


def _write(plan: Plan, chance: random.Random, owner: Owner, at_ms: int, length: int) -> int:
    name = f"chat:{uuid.UUID(int=chance.getrandbits(128))}"
    session = Session.objects.create(
        user_id=owner.user_pk,
        session_id=name,
        engine_session_id=name,
        kind=Session.Kind.CHAT,
        flushed_at=timezone.now(),
    )
    agent, batch_id = chance.choice(AGENTS), uuid.UUID(int=chance.getrandbits(128)).hex
    memories = []
    for seq in range(length):
        at_ms += chance.randint(2_000, 90_000)
        memories.append(_memory(chance, owner, session, agent, seq=seq, created_at_ms=at_ms, batch_id=batch_id))
    if plan.is_indexed:
        storage.insert(owner, memories, [entry_of(memory) for memory in memories])
    else:
        Memory.objects.bulk_create(memories)
    return length


def _memory(
    chance: random.Random, owner: Owner, session: Session, agent: str, *, seq: int, created_at_ms: int, batch_id: str
) -> Memory:
    """Mostly what was said in turn, sometimes what an agent wrote down."""
    is_learned, is_users = chance.random() < 0.15, seq % 2 == 0
    speaker = agent if is_learned or not is_users else owner.user_id
    return Memory(
        user_id=owner.user_pk,
        memory_id=str(uuid.UUID(int=chance.getrandbits(128))),
        session=session,
        agent_id="" if speaker == owner.user_id else agent,
        memory_type=Memory.Type.EPISODE,
        category=chance.choice(_LEARNED) if is_learned else f"full_context_{'user' if is_users else 'assistant'}",
        sender_id=speaker,
        speaker=speaker,
        text=f"{_sentence(chance)}. {_sentence(chance)}.",
        importance=round(chance.random(), 2) if is_learned else None,
        batch_id="" if is_learned else batch_id,
        seq=seq,
        payload={"role": "user" if speaker == owner.user_id else "assistant"},
        created_at_ms=created_at_ms,
        origin=Memory.Origin.TOOL if is_learned else Memory.Origin.EMBEDDED,
    )


def _sentence(chance: random.Random) -> str:
    number = chance.randrange(10_000)
    return f"{chance.choice(_SUBJECTS)} {chance.choice(_VERBS)} {chance.choice(_OBJECTS)} ({number})"
