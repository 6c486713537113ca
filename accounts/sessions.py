"""The end of operators' sessions: at the latest some hours after the sign-in, or when the identity provider says so.

Both times are in the session itself, in Unix seconds.
"""

from typing import Final

from django.conf import settings
from django.contrib.auth import SESSION_KEY
from django.contrib.sessions.backends.db import SessionStore
from django.http import HttpRequest
from django.utils import timezone

from accounts import oidc

_SIGNED_IN_AT: Final = "signed_in_at"
_CONFIRMED_AT: Final = "confirmed_at"
"""When the identity provider confirmed the role last. Sessions that began with a password have no such time."""


def begin(request: HttpRequest, *, at_provider: bool = False) -> None:
    """Note the time of a sign-in, which has just happened, in the session."""
    request.session[_SIGNED_IN_AT] = _now()
    if at_provider:
        request.session[_CONFIRMED_AT] = _now()


def forget(request: HttpRequest) -> None:
    """Forget the times of an earlier sign-in of this browser, because another follows."""
    for name in (_SIGNED_IN_AT, _CONFIRMED_AT):
        request.session.pop(name, None)


def end_if_due(request: HttpRequest) -> None:
    """End a session that has lasted too long, or whose operator the identity provider does not confirm.

    The provider is asked every 15 minutes of activity. While it does not answer, the session goes on.
    """
    if settings.SESSION_COOKIE_NAME not in request.COOKIES:
        return
    session, now = request.session, _now()
    if SESSION_KEY not in session:
        return
    if now - session.get(_SIGNED_IN_AT, now) >= settings.MEMORY_GATEWAY_SESSION_MAX_HOURS * 3600:
        session.flush()
    elif now - session.get(_CONFIRMED_AT, now) >= oidc.CONFIRMED_FOR.total_seconds():
        session[_CONFIRMED_AT] = int(oidc.confirm(int(session[SESSION_KEY])).timestamp())
        if not session.exists(session.session_key or ""):
            session.flush()


def begin_if_new(request: HttpRequest) -> None:
    """Note the time of the sign-in of a session that has none: its sign-in is this request."""
    session = request.session
    if session.accessed and SESSION_KEY in session and _SIGNED_IN_AT not in session:
        begin(request)


def clear_expired() -> None:
    """Delete expired sessions, as `manage.py clearsessions` does."""
    SessionStore.clear_expired()


def _now() -> int:
    return int(timezone.now().timestamp())
