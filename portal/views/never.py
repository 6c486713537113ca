"""Words and topics that are never remembered: the person adds them, and takes them away, on the page *Remembering*."""

from collections.abc import Mapping
from typing import Any

from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from accounts import controls
from accounts.models import MAX_NEVER_WORD_CHARS, Controls
from core.errors import InvalidInput
from core.localization import localized
from portal.access import Visit, actor_of, page, render
from store.text.synonyms import similar_to


def context_of(visit: Visit) -> dict[str, Any]:
    """Return what the page shows of words and topics. `stored` names those whose memories are offered for deletion."""
    never = controls.never_of(visit.link.user.pk)
    return {
        "topics": [(topic, label, topic in never.topics) for topic, label in Controls.Topic.choices],
        "words": [(word, [one for one in similar_to(word) if one not in never.words]) for word in never.words],
        "max_word_chars": MAX_NEVER_WORD_CHARS,
        "stored": visit.GET.get("of", ""),
    }


def numbers_in(detail: Mapping[str, Any]) -> list[str]:
    """Return how many words and topics a change added or took away: the trail does not name them."""
    words, topics = detail.get("words", 0), detail.get("topics", 0)
    told = [
        ngettext("%(number)s word", "%(number)s words", words) % {"number": words} if words else "",
        ngettext("%(number)s topic", "%(number)s topics", topics) % {"number": topics} if topics else "",
    ]
    return [one for one in told if one]


@page("POST")
def forbid(request: Visit) -> HttpResponseBase:
    """Add words or a topic, and offer what is stored of them for deletion."""
    user_pk, words, topics = request.link.user.pk, request.POST.getlist("word"), request.POST.getlist("topic")
    never = controls.never_of(user_pk)
    try:
        controls.set_never(
            user_pk, words=[*never.words, *words], topics=[*never.topics, *topics], actor=actor_of(request)
        )
    except InvalidInput as error:
        problem = " ".join(str(localized(one.message)) for one in error.errors)
        context = {"title": _("Never remember"), "problem": problem, "word": " ".join(words), **context_of(request)}
        return render(request, "never.html", context, status=error.status)
    of = topics[0] if topics else "words"
    return redirect(reverse("portal:remembering", query={"done": "never", "of": of}))


@page("POST")
def allow(request: Visit) -> HttpResponseBase:
    """Take words or a topic away. Raises: `LooseningRefused` in the session of a key."""
    user_pk, words, topics = request.link.user.pk, request.POST.getlist("word"), request.POST.getlist("topic")
    never = controls.never_of(user_pk)
    controls.set_never(
        user_pk,
        words=[word for word in never.words if word not in words],
        topics=[topic for topic in never.topics if topic not in topics],
        is_loosening_allowed=controls.may_loosen(request.link),
        actor=actor_of(request),
    )
    return redirect(reverse("portal:remembering", query={"done": "allowed"}))
