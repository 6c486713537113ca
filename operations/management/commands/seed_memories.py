"""Generate synthetic memories for load tests and demos: conversations of many users over many days."""

import random
import time
import uuid
from datetime import timedelta
from itertools import islice
from typing import Any, Final

from django.core.management.base import CommandParser
from django.db import transaction
from django.utils import timezone

from accounts import services as accounts
from accounts.audit import Actor
from accounts.models import MemoryUser
from core.persistence import sql
from core.times import to_ms
from operations.commands import Answer, OperationsCommand, Report, whole_number
from store import rollups, writes
from store.models import Memory, Session
from store.types import Owner

ACTOR: Final = Actor.command("seed_memories")
AGENTS: Final = ("main", "coder", "planner", "travel")
_SESSIONS_PER_TRANSACTION: Final = 200
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


def make(number: int, users: int, *, days: int, seed: int, is_indexed: bool, report: Report) -> int:
    """Add `number` memories of the last `days` days; return their number. Equal seeds give equal texts.

    Raises: `Stopped`.
    """
    chance = random.Random(seed)  # noqa: S311 - synthetic texts, no secrets
    owners = [_owner(place) for place in range(users)]
    lengths, left = [], number
    while left:
        lengths.append(min(left, chance.randint(8, 40)))
        left -= lengths[-1]
    now = timezone.now()
    first, last = to_ms(now - timedelta(days=days)), to_ms(now)
    conversations = zip(sorted(chance.randrange(first, last) for _ in lengths), lengths, strict=True)
    done = analyzed = 0
    while batch := list(islice(conversations, _SESSIONS_PER_TRANSACTION)):
        with transaction.atomic():
            drafts = [(chance.choice(owners), at, length) for at, length in batch]
            sessions = Session.objects.bulk_create(_session(chance, owner) for owner, _at, _length in drafts)
            groups: dict[Owner, list[Memory]] = {}
            for session, (owner, at, length) in zip(sessions, drafts, strict=True):
                groups.setdefault(owner, []).extend(_conversation(chance, session, owner, at, length))
                done += length
            if is_indexed:
                for owner, memories in groups.items():
                    writes.insert(owner, memories)
            else:
                writes.insert_unindexed(memory for memories in groups.values() for memory in memories)
        rollups.settle()
        if done >= 2 * analyzed:
            sql.analyze()
            analyzed = done
        report("Creating memories", done, number)
    sql.analyze()
    return done


def _owner(number: int) -> Owner:
    user_id = f"many-{number:05}"
    user = MemoryUser.objects.filter(user_id=user_id).first()
    pk = user.pk if user else accounts.create_user(user_id, actor=ACTOR).key.user_id
    return Owner(pk, user_id)


def _session(chance: random.Random, owner: Owner) -> Session:
    name = f"chat:{uuid.UUID(int=chance.getrandbits(128))}"
    return Session(
        user_id=owner.user_pk,
        session_id=name,
        engine_session_id=name,
        kind=Session.Kind.CHAT,
        flushed_at=timezone.now(),
    )


def _conversation(chance: random.Random, session: Session, owner: Owner, at_ms: int, length: int) -> list[Memory]:
    """Return the memories of a session, not saved."""
    agent, batch_id = chance.choice(AGENTS), uuid.UUID(int=chance.getrandbits(128)).hex
    memories = []
    for seq in range(length):
        at_ms += chance.randint(2_000, 90_000)
        # Mostly messages, sometimes a memory that an agent wrote.
        is_learned, is_of_user = chance.random() < 0.15, seq % 2 == 0
        speaker = agent if is_learned or not is_of_user else owner.user_id
        memory = Memory(
            user_id=owner.user_pk,
            memory_id=str(uuid.UUID(int=chance.getrandbits(128))),
            session=session,
            agent_id="" if speaker == owner.user_id else agent,
            memory_type=Memory.Type.EPISODE,
            category=chance.choice(_LEARNED) if is_learned else f"full_context_{'user' if is_of_user else 'assistant'}",
            sender_id=speaker,
            speaker=speaker,
            text=f"{_sentence(chance)}. {_sentence(chance)}.",
            importance=round(chance.random(), 2) if is_learned else None,
            batch_id="" if is_learned else batch_id,
            seq=seq,
            payload={"role": "user" if speaker == owner.user_id else "assistant"},
            created_at_ms=at_ms,
            stored_at_ms=at_ms,
            origin=Memory.Origin.TOOL if is_learned else Memory.Origin.EMBEDDED,
        )
        memories.append(memory)
    return memories


def _sentence(chance: random.Random) -> str:
    number = chance.randrange(10_000)
    return f"{chance.choice(_SUBJECTS)} {chance.choice(_VERBS)} {chance.choice(_OBJECTS)} ({number})"


class Command(OperationsCommand):
    help = (
        "Generate synthetic memories of users many-00000, many-00001, … for load tests and demos. Do not use it in a "
        "database with real data: the memories remain until their users are erased."
    )
    requires_storage = False

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("number", type=whole_number(1, 10**9), help="number of memories")
        parser.add_argument(
            "--users", type=whole_number(1, 99_999), default=100, help="number of users (default: %(default)s)"
        )
        parser.add_argument(
            "--days",
            type=whole_number(1, 18_250),
            default=730,
            help="spread over this many past days (default: %(default)s)",
        )
        parser.add_argument("--seed", type=int, default=0, help="random seed (default: %(default)s)")
        parser.add_argument(
            "--no-index", action="store_true", help="skip the keyword index: faster, but searches find nothing"
        )

    def run(self, *, number: int, users: int, days: int, seed: int, no_index: bool, **options: Any) -> Answer:
        began = time.monotonic()
        done = make(number, users, days=days, seed=seed, is_indexed=not no_index, report=self.report)
        seconds = round(time.monotonic() - began, 1)
        data = {"memories": done, "users": users, "seconds": seconds}
        return Answer(data, f"Created {done:,} memories of {users:,} users in {seconds:,} s.")
