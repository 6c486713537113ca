"""The memories of a person: the list, one memory with its reason, correction, deletion and undo."""

from collections.abc import Sequence
from typing import Any, Final
from uuid import UUID

from django.db.models import Q
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts import controls
from accounts.controls import Never
from accounts.credential_names import credential_names
from accounts.models import AuditEvent
from console import queries
from console.text import memory_item
from core.errors import NotFound
from memories.queries import history, restorable
from memories.services import decisions
from memories.services.decisions import OverrideValues
from memories.services.lookup import MemoryRef
from operations import filtered_deletion
from operations.filtered_deletion import Chosen
from portal.access import Visit, actor_of, owner_in, page, render
from resources.models import Resource
from store import browse
from store.browse import Selection
from store.models import Memory, Session
from store.neighbors import context_windows
from store.table import stored, visible
from store.text.tokens import required_tokens
from store.types import Position, StoredMemory

ROWS: Final = 30
MAX_FORGOTTEN: Final = 200
MAX_TEXT_CHARS: Final = 8_000
KINDS: Final = (
    ("", gettext_lazy("All")),
    ("user", gettext_lazy("About you")),
    ("full", gettext_lazy("Said in conversations")),
    ("self", gettext_lazy("Learned by agents")),
)


@page()
def known(request: Visit) -> HttpResponseBase:
    """List the memories, newest first, or those that have all words of a search."""
    words, kind = _words(request.GET.get("q", "")), request.GET.get("kind", "")
    kind = kind if kind in dict(KINDS) else ""
    selection = Selection(user_pk=request.link.user.pk, tab=kind or None, words=tuple(words), is_shown=True)
    is_wordless = bool(request.GET.get("q", "").strip()) and not words
    found = browse.page(selection, after=position_in(request.GET.get("after", "")), limit=ROWS)
    q = request.GET.get("q", "")
    undoable = _own(request, row_in(request.GET.get("deleted", "")))
    context = {
        "title": _("Memories"),
        "items": [] if is_wordless else _items(request, found.memories, words),
        "q": q,
        "words": words,
        "kind": kind,
        "kinds": [(_address(q=q, kind=name), label, name == kind) for name, label in KINDS],
        "following": _address(q=q, kind=kind, after=written(found.older)) if found.older else "",
        "first": _address(q=q, kind=kind) if request.GET.get("after") else "",
        "undoable": undoable if undoable is not None and not undoable.is_live else None,
    }
    return render(request, "known.html", context)


@page()
def memory(request: Visit, row: int) -> HttpResponseBase:
    """Show a memory, and why it is known: the sentences, their time and where they came from."""
    found = _owned(request, row)
    return _memory_page(request, found)


@page("POST")
def correct(request: Visit, row: int) -> HttpResponseBase:
    """Replace the text of a memory and of its copies."""
    found, text = _owned(request, row), request.POST.get("text", "").strip()
    if not text or len(text) > MAX_TEXT_CHARS:
        problem = _("Enter the corrected text, of at most %(number)s characters.") % {"number": MAX_TEXT_CHARS}
        return _memory_page(request, found, text=text, problem=problem, status=422)
    if request.POST.get("before", "").replace("\r\n", "\n") != found.text:
        problem = _("This was changed since you opened it. The text below is yours, the one above is the new one.")
        return _memory_page(request, found, text=text, problem=problem, status=409)
    decisions.override_copies(request.link.user.pk, _ref(found), OverrideValues(text=text), actor=actor_of(request))
    return redirect(reverse("portal:memory", args=[row], query={"done": "corrected"}))


@page("POST")
def revert(request: Visit, row: int) -> HttpResponseBase:
    """Undo the correction of a memory."""
    found = _owned(request, row)
    decisions.undo_override(request.link.user.pk, _ref(found), with_copies=True, actor=actor_of(request))
    return redirect(reverse("portal:memory", args=[row], query={"done": "reverted"}))


@page("POST")
def delete(request: Visit, row: int) -> HttpResponseBase:
    """Move a memory and its copies to the trash."""
    decisions.delete_copies(request.link.user.pk, _ref(_owned(request, row)), actor=actor_of(request))
    return redirect(reverse("portal:known", query={"deleted": row}))


@page("POST")
def restore(request: Visit, row: int) -> HttpResponseBase:
    """Restore a memory from the trash, with what was deleted with it."""
    decisions.restore(request.link.user.pk, _ref(_owned(request, row)), actor=actor_of(request))
    return redirect(reverse("portal:memory", args=[row], query={"done": "restored"}))


@page("GET", "POST")
def forget(request: Visit) -> HttpResponseBase:
    """Show the memories that have all words, ticked; on POST delete those still ticked, with one undo for all.

    `never` names a topic, or "words", in the place of words: the memories are those that would not be stored now.
    """
    given = request.POST if request.method == "POST" else request.GET
    q, name = given.get("q", ""), given.get("never", "")
    never = _never_in(request, name)
    chosen = Chosen(owner_in(request), words=q, is_everywhere=True, never=never)
    if request.method == "POST":
        ticked = {row_in(row) for row in request.POST.getlist("row")[:MAX_FORGOTTEN]}
        job = filtered_deletion.delete_ticked(chosen, ticked, actor=actor_of(request))
        count = job.cursor.get("changed", 0) if job.is_over else job.total
        return render(request, "forgotten.html", {"title": _("Deleted"), "count": count, "job": job})
    words = _words(q)
    found = chosen.newest(MAX_FORGOTTEN + 1) if words or never else []
    context = {
        "title": _("Delete what is stored already") if name else _("Delete by words"),
        "q": q,
        "never": name,
        "items": _items(request, [memory for memory, *_copies in found[:MAX_FORGOTTEN]], words),
        "has_more": sum(map(len, found)) > MAX_FORGOTTEN,
        "limit": MAX_FORGOTTEN,
    }
    return render(request, "forget.html", context)


def _never_in(request: Visit, name: str) -> Never:
    """Return a topic that is never remembered, or all such words, by the name in an address."""
    never = controls.never_of(request.link.user.pk)
    topics = tuple(topic for topic in never.topics if topic == name)
    return Never(never.words if name == "words" else (), topics)


@page("POST")
def undo(request: Visit) -> HttpResponseBase:
    """Restore what one deletion by words deleted, and was not deleted again since."""
    try:
        deletion = UUID(request.POST.get("deletion", ""))
    except ValueError:
        raise NotFound(_("There is no such deletion.")) from None
    job = filtered_deletion.get_of_person(request.link.user.pk, deletion)
    undone = filtered_deletion.undoing(filtered_deletion.undo(job, actor=actor_of(request)))
    count = 0 if undone is None else undone.result.get("undone", undone.total)
    return render(request, "restored.html", {"title": _("Restored"), "count": count})


def _memory_page(
    request: Visit, found: StoredMemory, *, text: str | None = None, problem: str = "", status: int = 200
) -> HttpResponseBase:
    user_pk = request.link.user.pk
    is_live = found.is_live and not found.is_session_hidden
    sources = _sources_of(found)
    session = Session.objects.filter(user_id=user_pk, session_id=found.session_id or "", **_scope(found)).first()
    window = context_windows(found.owner, [found.memory_id], 1).get(found.memory_id) if is_live else None
    addition = queries.addition(found)
    context = {
        "title": _("One memory"),
        "item": memory_item(found, is_edited=bool(queries.edited([found.row]))),
        "memory": found,
        "is_live": is_live,
        "can_restore": not found.is_live and restorable(Q(row_id=found.row)).exists(),
        "original": queries.original_text(found.row),
        "sources": sources,
        "window": window,
        "session": session if session is not None and session.kind != Session.Kind.RESOURCE else None,
        "filename": files_of(request, [found]).get(found.session_id or ""),
        "added_by": _name_of(addition) if addition else "",
        "events": [event for event in history(found.owner, found.memory_id) if event.action != "original"],
        "text": found.text if text is None else text,
        "problem": problem,
        "done": request.GET.get("done", ""),
        "max_chars": MAX_TEXT_CHARS,
    }
    return render(request, "memory.html", context, status=status)


def _sources_of(found: StoredMemory) -> list[StoredMemory]:
    """Return the live messages from which a memory was derived, oldest first."""
    if not found.sources:
        return []
    own = Memory.objects.filter(user_id=found.owner.user_pk, memory_id__in=list(found.sources), **_scope(found))
    rows = [stored(row) for row in visible(own).order_by("created_at_ms", "pk")]
    return [one for one in rows if one.is_live and not one.is_session_hidden]


def _scope(found: StoredMemory) -> dict[str, str]:
    return {"app_id": found.owner.app_id, "project_id": found.owner.project_id}


def _name_of(event: AuditEvent) -> str:
    """Return the name of the actor who added a memory: an operator's name, or the first characters of a key."""
    if event.actor_kind in queries.CREDENTIALS:
        return credential_names([event.actor]).get(event.actor, "")
    return event.actor


def _own(request: Visit, row: int) -> StoredMemory | None:
    """Return the person's memory of this row; None for one that does not exist, is another user's or incognito."""
    found = browse.get_many([row]) if row < 2**63 else []
    is_shown = found and found[0].owner.user_pk == request.link.user.pk and not found[0].is_incognito
    return found[0] if is_shown else None


def _owned(request: Visit, row: int) -> StoredMemory:
    """Return the person's memory of this row, also a deleted one. Raises: `NotFound`."""
    found = _own(request, row)
    if found is None or found.state == "purged":
        raise NotFound(_("There is no such memory."))
    return found


def _ref(found: StoredMemory) -> MemoryRef:
    return MemoryRef(found.memory_id, found.session_id, found.owner.app_id, found.owner.project_id)


def _words(q: str) -> tuple[str, ...]:
    return tuple(required_tokens(q))


def files_of(request: Visit, memories: Sequence[StoredMemory]) -> dict[str, str]:
    """Return the names of the person's files from which memories were read, by session id. One statement."""
    names = {one.session_id for one in memories if one.session_id}
    own = Resource.objects.filter(user_id=request.link.user.pk, session_id__in=names) if names else ()
    return {one.session_id: one.filename for one in own}


def _items(request: Visit, memories: Sequence[StoredMemory], words: Sequence[str]) -> list[Any]:
    """Return memories as the list shows them, with their files. Two statements."""
    edited = queries.edited([one.row for one in memories])
    files = files_of(request, memories)
    return [
        memory_item(
            one,
            is_edited=one.row in edited,
            filename=files.get(one.session_id or "", ""),
            words=words,
        )
        for one in memories
    ]


def _address(**query: str) -> str:
    return reverse("portal:known", query={name: value for name, value in query.items() if value})


def written(position: Position) -> str:
    return f"{position.created_at_ms}.{position.row}"


def row_in(text: str) -> int:
    """Return the row that an address or a form names; 0, which no row has, for anything else."""
    return int(text) if text.isdecimal() and len(text) < 19 else 0


def position_in(text: str) -> Position | None:
    """Return the position that an address names; None for anything else."""
    at, dot, row = text.partition(".")
    if not dot or not (at.removeprefix("-").isdecimal() and row.isdecimal() and len(at) < 18 and len(row) < 19):
        return None
    return Position(int(at), int(row))
