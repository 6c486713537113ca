"""Users who upload, add, search and delete, and who remember what was acknowledged."""

from __future__ import annotations

import random
import secrets
import threading
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import requests

from tests import forked
from tests.resources.people import RemotePerson
from tests.server import RunningServer

ALLOWED = {429, 502, 503, 504}
"""Statuses that clients may get while something is away. 429 and 503 must say when to call again."""
STILL_RUNNING = 409
"""The status of a repeated call whose first attempt has not ended, or ended with its process less than 30 s ago."""
FIRST_MS = 1_781_172_177_000
CALL_SECONDS = 60.0
REPEATS = 100
PAGES = ("", "list/", "resources/", "users/", "jobs/", "trash/")


class Load:
    """One thread for each user, and one for an operator who reads the panel.

    `stored` are markers of acknowledged texts, `deleted` those of acknowledged deletions. A writing call is repeated
    with its `Idempotency-Key` until it is acknowledged. `violations` is empty if all promises were kept.
    """

    def __init__(self, server: RunningServer, users: int, seed: int) -> None:
        self.stored: dict[str, RemotePerson] = {}
        self.deleted: dict[str, RemotePerson] = {}
        self.violations: list[str] = []
        self.answers: Counter[str] = Counter()
        self.longest_seconds = 0.0
        self.own_reads = 0
        self._server = server
        self._is_ending = threading.Event()
        self._lock = threading.Lock()
        people = [RemotePerson.create(server, f"user{number}") for number in range(users)]
        self._threads = [
            threading.Thread(target=self._run, args=(person, random.Random(seed + number)), daemon=True)
            for number, person in enumerate(people)
        ]
        self._threads.append(threading.Thread(target=self._read_panel, args=(signed_in(server),), daemon=True))

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        self._is_ending.set()
        for thread in self._threads:
            thread.join(2 * CALL_SECONDS)
            assert not thread.is_alive()

    def _run(self, person: RemotePerson, rng: random.Random) -> None:
        files: dict[str, str] = {}  # id of the resource by marker
        while not self._is_ending.is_set():
            step = rng.random()
            if step < 0.3:
                self._upload(person, files)
            elif step < 0.5:
                self._add(person)
            elif step < 0.6 and files:
                self._delete(person, files)
            else:
                self._search_deleted(person, rng)
            time.sleep(0.05)

    def _read_panel(self, operator: requests.Session) -> None:
        while not self._is_ending.is_set():
            for page in PAGES:
                url = f"{self._server.url}/admin/memory/{page}"
                answer = self._call(lambda url=url: operator.get(url, timeout=CALL_SECONDS, allow_redirects=False))
                if answer is not None and answer.status_code != 200:
                    self._note(f"{url}: {answer.status_code} {answer.headers.get('Location')}")
                time.sleep(0.2)

    def _upload(self, person: RemotePerson, files: dict[str, str]) -> None:
        marker = f"upload{secrets.token_hex(8)}"
        data = f"The place of {marker}.".encode()
        answer = self._written(lambda **key: person.upload(f"{marker}.txt", data, timeout=CALL_SECONDS, **key))
        if answer is not None:
            files[marker] = answer.json()["resource_id"]
            self.stored[marker] = person
            if answer.json()["status"] == "extracted":
                self._read_own(person, marker)

    def _add(self, person: RemotePerson) -> None:
        marker = f"message{secrets.token_hex(8)}"
        message = {"sender_id": person.user_id, "role": "user", "timestamp": FIRST_MS, "content": f"I like {marker}."}
        session = {"session_id": f"chat:{marker}"}
        add = {**session, "messages": [message]}
        if self._written(lambda **key: self._post(person, "/memories/add", add, **key)) is not None:
            self.stored[marker] = person
            self._read_own(person, marker)
            self._call(lambda: self._post(person, "/memories/flush", session))

    def _read_own(self, person: RemotePerson, marker: str) -> None:
        """Search for what was just acknowledged, at whichever gateway answers."""
        found = self.texts(person, marker)
        self.own_reads += found is not None
        if found == []:
            self._note(f"{marker} was acknowledged and not found")

    def _delete(self, person: RemotePerson, files: dict[str, str]) -> None:
        marker, resource_id = files.popitem()
        url = f"{person.server.url}/resources/{resource_id}"
        self.stored.pop(marker)
        answer = self._call(lambda: requests.delete(url, headers=person.headers, timeout=CALL_SECONDS))
        if answer is not None:
            self.deleted[marker] = person

    def _search_deleted(self, person: RemotePerson, rng: random.Random) -> None:
        own = [marker for marker, owner in list(self.deleted.items()) if owner == person]
        marker = rng.choice(own) if own else "nothing"
        found = self.texts(person, marker)
        if found:
            self._note(f"{marker} was deleted and found again")

    def texts(self, person: RemotePerson, marker: str) -> list[str] | None:
        """Return the texts with a marker that a search finds; None if the call failed."""
        body = {"query": marker, "scope": ["all_user_memory"], "method": "keyword", "include_profile": False}
        answer = self._call(lambda: self._post(person, "/memories/search", body))
        return None if answer is None else [one["text"] for one in answer.json()["results"] if marker in one["text"]]

    @staticmethod
    def _post(person: RemotePerson, path: str, body: dict[str, Any], **headers: str) -> requests.Response:
        url = f"{person.server.url}{path}"
        return requests.post(url, json=body, headers={**person.headers, **headers}, timeout=CALL_SECONDS)

    def _written(self, send: Callable[..., requests.Response]) -> requests.Response | None:
        """Repeat a writing call until it is acknowledged; return None if the load ends before."""
        key = {"Idempotency-Key": secrets.token_hex(8)}
        for _ in range(REPEATS):
            answer = self._call(lambda: send(**key), STILL_RUNNING)
            if answer is not None or self._is_ending.is_set():
                return answer
            time.sleep(0.5)
        self._note(f"a write was not acknowledged in {REPEATS} attempts")
        return None

    def _call(self, send: Callable[[], requests.Response], *also: int) -> requests.Response | None:
        """Return the answer of a call that was carried out, else None. `also` are further statuses that may be."""
        began = time.monotonic()
        try:
            answer = send()
        except requests.RequestException as error:
            with self._lock:
                self.answers[type(error).__name__] += 1
            return None
        with self._lock:
            self.answers[str(answer.status_code)] += 1
            self.longest_seconds = max(self.longest_seconds, time.monotonic() - began)
        if answer.ok:
            return answer
        has_remedy = answer.status_code not in {429, 503} or "Retry-After" in answer.headers
        if answer.status_code not in ALLOWED.union(also) or not has_remedy:
            self._note(f"{answer.request.method} {answer.request.path_url}: {answer.status_code} {answer.text[:300]}")
        return None

    def _note(self, violation: str) -> None:
        with self._lock:
            self.violations.append(f"{time.strftime('%H:%M:%S')} {violation}")


def signed_in(server: RunningServer) -> requests.Session:
    """Return the session of a new operator of the panel."""
    username, password = f"operator-{secrets.token_hex(4)}", secrets.token_hex(16)
    create = ["manage.py", "createsuperuser", "--noinput", f"--username={username}", "--email=operator@example.org"]
    created = forked.run(create, server.env | {"DJANGO_SUPERUSER_PASSWORD": password})
    assert created.returncode == 0, created.stderr
    session, url = requests.Session(), f"{server.url}/admin/login/"
    session.get(url, timeout=CALL_SECONDS)
    form = {
        "username": username,
        "password": password,
        "csrfmiddlewaretoken": session.cookies["memory_gateway_csrftoken"],
    }
    answer = session.post(url, form, timeout=CALL_SECONDS, allow_redirects=False)
    assert answer.status_code == 302, answer.text
    return session
