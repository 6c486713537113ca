"""Demo content: one user with a few conversations, files and notes."""

from datetime import timedelta
from typing import Final

from accounts import services as accounts
from accounts.audit import Actor
from accounts.models import Principal
from core.times import to_ms
from memories.services.add import AddCommand, NewContentItem, NewMessage, add, flush
from memories.services.decisions import OverrideValues, delete, override
from memories.services.lookup import MemoryRef
from memories.services.manual import add_by_hand
from operations.commands import Report, no_report
from resources import services as resources
from resources.services import IncomingFile, Upload
from store.models import Memory
from store.types import Owner, Role

USER: Final = "user"
AGENT: Final = "assistant"
Lines = tuple[tuple[Role, str], ...]
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


def make(
    user_id: str, *, actor: Actor, wait_seconds: float | None = None, report: Report = no_report
) -> tuple[int, str]:
    """Create the demo user's content, one memory corrected and one deleted; a second run adds what is missing.

    Wait up to `wait_seconds` for the ingestion of each file (None: as an upload does). Return the number of memories
    and an API key. Raises: `InvalidInput` for the id, and the engine's errors.
    """
    issued = accounts.create_user(user_id, actor=actor)
    user = issued.key.user
    principal = Principal(user.pk, user_id, issued.key.pk)
    owner = Owner(user.pk, user_id)
    is_new = not Memory.objects.filter(user=user).exists()
    total = len(CHATS) + len(FILES) + 1
    for done, (session_id, lines) in enumerate(CHATS.items()):
        report("Creating sample data", done, total)
        # Times depend only on the creation of the user, so a second run adds nothing.
        first_ms = to_ms(user.created_at - timedelta(days=30 - done))
        messages = tuple(
            NewMessage(
                user_id if role == USER else AGENT,
                role,
                first_ms + number * 60_000,
                (NewContentItem("text", text=text),),
            )
            for number, (role, text) in enumerate(lines)
        )
        add(owner, AddCommand(session_id, messages))
        flush(owner, session_id)
    for done, (name, text) in enumerate(FILES.items(), start=len(CHATS)):
        report("Creating sample data", done, total)
        incoming = IncomingFile(name)
        try:
            incoming.write(text.encode())
            incoming.finish()
            metadata = Upload(title=name.rpartition(".")[0], wait_seconds=wait_seconds)
            resources.upload(owner, incoming, metadata, actor=Actor.key(principal))
        finally:
            incoming.close()
    if is_new:
        for category, text, importance in NOTES:
            add_by_hand(owner, category=category, text=text, importance=importance, origin="panel", actor=actor)
        # Found only if the engine stores the messages verbatim.
        rows = Memory.objects.filter(user=user, memory_type=Memory.Type.EPISODE)
        for row in rows.filter(text__contains=DELETED)[:1]:
            delete(user.pk, MemoryRef(row.memory_id), reason="bought", actor=actor)
        for row in rows.filter(text__startswith="I am redoing the kitchen")[:1]:
            override(user.pk, MemoryRef(row.memory_id), OverrideValues(text=CORRECTED), actor=actor)
    report("Creating sample data", total, total)
    return Memory.objects.filter(user=user).count(), issued.plaintext
