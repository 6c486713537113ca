"""Requests without credentials leave nothing behind: no row and no file, or a bounded number of them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.contrib.sessions.models import Session
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection
from django.test import Client
from django.utils import timezone

from accounts import audit, oidc, sign_in
from accounts.models import OAuthClient, SignInThrottle
from agents.rpc.failures import Refusal
from agents.rpc.frames import Request
from agents.rpc.handshake import UpgradeInfo, connect
from core.background.tasks import Round
from operations.tasks import clean_up
from tests import stub_oidc
from tests.agents.rpc.client import connect_params
from tests.memory_gateway.routes import Route
from tests.memory_gateway.test_urls import ROUTES, call_id

pytestmark = pytest.mark.django_db
FEW, SOME, MANY = 4, 30, 1000
WAYS = ("GET", "form", "JSON", "file", "PUT", "PATCH", "DELETE")
# The pages of Django's admin for single models have the same guard: those of one model stand for all.
OPEN = [
    route
    for route in ROUTES
    if not route.pattern.startswith("/admin/")
    or route.pattern.split("/")[2] in {"", "memory", "login", "logout", "password_change", "jsi18n", "r"}
    or route.pattern.startswith("/admin/accounts/userkey/")
]
# Failed sign-ins and lock-outs are events, so many within ten minutes, and one for the rest of each.
SIGN_INS = {
    "accounts_signinthrottle": sign_in.FAILURES_PER_NETWORK + 1,
    "accounts_auditevent": 2 * (audit.ANONYMOUS_EVENTS + 1),
}
# The rows that an address may leave, however often it is requested.
BOUNDS = {
    # One user, whose key `POST /users` returns again to anybody under `local`.
    "/users": {"accounts_memoryuser": 1, "accounts_userkey": 1, "accounts_auditevent": 3, "accounts_auditsubject": 3},
    "/oauth/register": {"accounts_oauthclient": 1000},
    "/admin/login/": SIGN_INS,
    "/plugins/memory": SIGN_INS,
    "/plugins/memory/": SIGN_INS,
    "/plugins/memory/<path:rest>": SIGN_INS,
}


@pytest.fixture(scope="module")
def provider() -> Iterator[stub_oidc.Provider]:
    with stub_oidc.running() as running:
        yield running


@pytest.fixture(autouse=True)
def sign_on(settings: Any, storage: Path, provider: stub_oidc.Provider) -> None:
    """Single sign-on, and no limits on rates: they would only slow the growth."""
    for name in ("FAILED_AUTHENTICATIONS", "ANONYMOUS_REQUESTS", "CLIENT_REGISTRATIONS"):
        setattr(settings, f"{name}_PER_MINUTE", 0)
    settings.MEMORY_GATEWAY_OIDC_ISSUER = provider.issuer
    settings.MEMORY_GATEWAY_OIDC_CLIENT_ID = stub_oidc.CLIENT_ID
    settings.MEMORY_GATEWAY_OIDC_CLIENT_SECRET = stub_oidc.CLIENT_SECRET
    oidc._discovered.cache_clear()


def counts(storage: Path) -> dict[str, int]:
    """Return the number of rows of each table, and of files."""
    found = {"files": sum(path.is_file() for path in storage.rglob("*"))}
    with connection.cursor() as cursor:
        for table in connection.introspection.table_names(cursor):
            if table == "store_keywords":
                continue  # SQLite's index without rows; those of its tables are counted
            cursor.execute(f"SELECT count(*) FROM {connection.ops.quote_name(table)}")
            found[table] = cursor.fetchone()[0]
    return found


def send(client: Client, route: Route, way: str, number: int) -> Any:
    """Request an address in one of `WAYS`, each time with other values."""
    registration = {"redirect_uris": [f"https://app{number}.example/callback"], "client_name": f"app {number}"}
    body = {"user_id": "anybody"} if route.pattern == "/users" else registration
    form = {
        "username": f"name-{number}", "password": "wrong", "grant_type": "refresh_token", "client_id": f"c-{number}",
        "refresh_token": f"ort_{number}", "token": f"oat_{number}", "language": "en", "next": f"/admin/?{number}",
    }  # fmt: skip
    headers = {"Authorization": f"Bearer rpc_{number:043}"} if number % 2 else {}
    keys = {"Idempotency-Key": f"key-{number}", "X-Request-Id": f"request-{number}"}
    if way == "GET":
        return client.get(route.address, {"next": f"/admin/?{number}", "state": str(number), "code": str(number)})
    if way == "form":
        return client.post(route.address, form, headers=headers)
    if way == "JSON":
        return client.post(route.address, body, "application/json", headers=keys)
    if way == "file":
        return client.post(route.address, {**form, "file": SimpleUploadedFile("a.txt", b"text")})
    return client.generic(way, route.address, b"{}", "application/json")


def request_all(route: Route, numbers: Iterable[int], ways: Collection[str] = WAYS) -> set[str]:
    """Request an address in these ways, twice for each number; return the ways that wrote rows or set a cookie."""
    leaving: set[str] = set()
    way = ""

    def note_writing(execute: Any, sql: str, *arguments: Any) -> Any:
        if sql.startswith(("INSERT", "UPDATE", "DELETE", "REPLACE")):
            leaving.add(way)
        return execute(sql, *arguments)

    with connection.execute_wrapper(note_writing):
        for number in numbers:
            client = Client(raise_request_exception=False)
            for _ in range(2):  # the second time with the cookies of the first
                for way in ways:
                    answer = send(client, route, way, number)
                    assert answer.status_code < 500
                    if answer.cookies:
                        leaving.add(way)
    return leaving


def check_growth(route: Route, storage: Path, reads: int, writes: int) -> None:
    """Request an address `reads` times in each way, and in those that left a row or a cookie, `writes` times."""
    before = counts(storage)
    leaving = request_all(route, range(reads // 2))
    request_all(route, range(reads // 2, writes // 2), leaving)
    grown = {name: count - before[name] for name, count in counts(storage).items() if count != before[name]}
    bounds = BOUNDS.get(route.pattern, {})
    assert {name: count for name, count in grown.items() if count > bounds.get(name, 0)} == {}


@pytest.mark.parametrize("route", OPEN, ids=call_id)
def test_requests_without_credentials_leave_nothing(route: Route, storage: Path) -> None:
    check_growth(route, storage, FEW, FEW)


@pytest.mark.torture
@pytest.mark.parametrize("route", OPEN, ids=call_id)
def test_a_thousand_requests_without_credentials_leave_nothing(route: Route, storage: Path) -> None:
    """Requests that write no row and set no cookie `SOME` times, with other values each, do not start to later."""
    check_growth(route, storage, SOME, MANY)


def test_notices_for_anonymous_visitors_are_not_stored_in_a_session() -> None:
    client = Client()
    client.post("/admin/memory/add/")
    one_notice = client.cookies["messages"].value
    for _ in range(20):
        client.post("/admin/memory/add/")
    assert client.cookies["messages"].value == one_notice
    assert not Session.objects.exists()


def test_refused_websockets_leave_nothing(storage: Path) -> None:
    before = counts(storage)
    for number in range(50):
        request = Request("1", "connect", connect_params(token=f"rpc_{number:043}"))
        with pytest.raises(Refusal):
            connect(request, UpgradeInfo("192.0.2.1", "testserver", None, "ws"))
    assert counts(storage) == before


def test_refused_provisioning_leaves_one_event(storage: Path, settings: Any) -> None:
    settings.MEMORY_GATEWAY_PROVISIONING_TOKEN = "p" * 50
    before = counts(storage)
    for number in range(20):
        assert Client().post("/users", {"user_id": f"u{number}"}, "application/json").status_code == 401
    assert counts(storage) == {**before, "accounts_auditevent": before["accounts_auditevent"] + 1}


def test_the_daily_task_deletes_what_has_expired(storage: Path) -> None:
    now = timezone.now()
    for days, key in ((-1, "old"), (1, "new")):
        Session.objects.create(session_key=key, session_data="", expire_date=now + timedelta(days=days))
        SignInThrottle.objects.create(network=key, counted_since=now + timedelta(days=days))
        OAuthClient.objects.create(
            name=key, redirect_uris=["https://a.example/"], expires_at=now + timedelta(days=days)
        )
    clean_up(Round())
    assert [session.pk for session in Session.objects.all()] == ["new"]
    assert [row.network for row in SignInThrottle.objects.all()] == ["new"]
    assert [client.name for client in OAuthClient.objects.all()] == ["new"]
