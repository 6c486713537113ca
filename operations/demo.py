"""A small life to look at: what one does with the gateway, done once for a user of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from accounts import services as accounts
from accounts.audit import Actor
from accounts.principal import Principal
from core.times import to_ms
from memories.services.add import AddCommand, Part, Said, add
from memories.services.decisions import OverrideValues, delete, override
from memories.services.flush import flush
from memories.services.lookup import MemoryRef
from memories.services.manual import add_by_hand
from operations.commands import Report, Stop
from resources import services as resources
from resources.services import IncomingFile, Upload
from store.models import Memory
from store.types import Owner

Lines = tuple[tuple[str, str], ...]
USER, AGENT = "user", "assistant"
CHATS: Final[dict[str, Lines]] = {
    "chat:kitchen": (
        (USER, "I am redoing the kitchen in June and have 12,000 euros for it."),
        (AGENT, "Noted: kitchen in June, budget 12,000 euros. Do you want the induction hob we spoke of?"),
        (USER, "Yes, induction. I prefer matt black fronts, and no handles."),
        (USER, "We decided on the fitter from Lyon; he comes on 9 June at eight."),
        (AGENT, "The fitter from Lyon comes on 9 June at 08:00. I will remind you the day before."),
    ),
    "chat:旅行": (
        (USER, "十月我想和女儿去杭州，住三晚。"),
        (AGENT, "好的：十月，杭州，三晚，两个人。需要靠近西湖吗？"),
        (USER, "要，最好步行十分钟以内。她对花生过敏，请记住。"),
        (USER, "我们决定坐高铁去，不坐飞机。"),
    ),
    "chat:work": (
        (USER, "The quarterly report goes out on Fridays, and Meera signs it."),
        (AGENT, "I tried to send the report on Thursday and the mail server refused it: the list was wrong."),
        (USER, "Next time ask me before you send anything to the whole list."),
    ),
}
FILES: Final[dict[str, str]] = {
    "rental-contract.txt": (
        "RENTAL CONTRACT\n\nThe flat in Rue des Lilas 4 is let from 1 September 2025 for three years.\n\n"
        "The rent is 1,180 euros a month and is due on the third working day.\n\n"
        "Either side may end the contract with three months' notice, in writing."
    ),
    "购物清单.md": "# 购物清单\n\n- 龙井茶 250 克\n- 无花生的饼干\n- 雨伞两把\n",
}
NOTES: Final[tuple[tuple[str, str, float], ...]] = (
    ("user_memory_fact", "Her daughter Lin is nine and allergic to peanuts.", 1.0),
    ("user_memory_preference", "Prefers trains to planes wherever both go.", 0.8),
    ("self_improving_learnings", "Ask before sending anything to a whole mailing list.", 0.9),
    ("self_improving_errors", "The mail server refuses lists with more than 50 addresses.", 0.6),
)
DELETED: Final = "250 克"
CORRECTED: Final = "I am redoing the kitchen in June and have 12,500 euros for it."


@dataclass(frozen=True, slots=True)
class Demo:
    """The user that shows it, with the key, and how many memories there are now."""

    user_id: str
    user_key: str
    memories: int


def make(user_id: str, *, report: Report, stop: Stop) -> Demo:
    """Fills a user with a few conversations, files and notes, one of them corrected and one deleted; a second time it
    adds only what is not there. Errors: `InvalidInput` for the id, and the engine's."""
    actor = Actor.command("demo_data")
    issued = accounts.create_user(user_id, actor=actor)
    user = issued.key.user
    principal = Principal(user.pk, user_id, issued.key.pk)
    owner = Owner(user.pk, user_id)
    is_new = not Memory.objects.filter(user=user).exists()
    total = len(CHATS) + len(FILES) + 1
    for done, (session_id, lines) in enumerate(CHATS.items()):
        stop.check()
        report("demo", done, total)
        _talk(principal, session_id, lines, user.created_at - timedelta(days=30 - done))
    for done, (name, text) in enumerate(FILES.items(), start=len(CHATS)):
        stop.check()
        report("demo", done, total)
        _upload(principal, name, text)
    if is_new:
        for category, text, importance in NOTES:
            add_by_hand(owner, category=category, text=text, importance=importance, origin="panel", actor=actor)
        _decide(owner, actor)
    report("demo", total, total)
    return Demo(user_id, issued.plaintext, Memory.objects.filter(user=user).count())


def _talk(principal: Principal, session_id: str, lines: Sequence[tuple[str, str]], at: datetime) -> None:
    """At the same times whenever it is done: the same message is remembered once."""
    said = tuple(
        Said(
            principal.user_id if role == USER else "assistant",
            "user" if role == USER else "assistant",
            to_ms(at) + number * 60_000,
            (Part("text", text=text),),
        )
        for number, (role, text) in enumerate(lines)
    )
    add(principal, AddCommand(session_id, said))
    flush(principal, session_id, app_id="default", project_id="default")


def _upload(principal: Principal, name: str, text: str) -> None:
    incoming = IncomingFile(name)
    try:
        incoming.write(text.encode())
        incoming.finish()
        resources.upload(principal, incoming, Upload(title=name.rpartition(".")[0]))
    finally:
        incoming.close()


def _decide(owner: Owner, actor: Actor) -> None:
    """What an engine made of these in other words is left as it is."""
    rows = Memory.objects.filter(user_id=owner.user_pk, memory_type=Memory.Type.EPISODE)
    deleted = rows.filter(text__contains=DELETED).first()
    if deleted is not None:
        delete(owner.user_pk, MemoryRef(deleted.memory_id), reason="bought", actor=actor)
    corrected = rows.filter(text__startswith="I am redoing the kitchen").first()
    if corrected is not None:
        override(owner.user_pk, MemoryRef(corrected.memory_id), OverrideValues(text=CORRECTED), actor=actor)
