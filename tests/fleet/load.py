"""Users who upload, add, search and delete against a fleet, and who remember what was acknowledged."""

from __future__ import annotations

import random
import secrets
import threading
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import requests

from tests.fleet.fleet import Fleet
from tests.resources.people import RemotePerson

ALLOWED = {429, 502, 503, 504}
"""Statuses that clients may get while something is away. 429 and 503 must say when to call again."""
FIRST_MS = 1_781_172_177_000
CALL_SECONDS = 60.0


class Load:
    """One thread for each user. `stored` are markers of acknowledged texts, `deleted` those of acknowledged deletions.

    A call without an answer proves nothing: its marker is in neither. `violations` is empty if all promises were kept.
    """

    def __init__(self, fleet: Fleet, users: int, seed: int) -> None:
        self.stored: dict[str, RemotePerson] = {}
        self.deleted: dict[str, RemotePerson] = {}
        self.violations: list[str] = []
        self.answers: Counter[str] = Counter()
        self._is_ending = threading.Event()
        self._lock = threading.Lock()
        people = [RemotePerson.create(fleet, f"user{number}") for number in range(users)]
        self._threads = [
            threading.Thread(target=self._run, args=(person, random.Random(seed + number)), daemon=True)
            for number, person in enumerate(people)
        ]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        self._is_ending.set()
        for thread in self._threads:
            thread.join(2 * CALL_SECONDS)

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

    def _upload(self, person: RemotePerson, files: dict[str, str]) -> None:
        marker = f"upload{secrets.token_hex(8)}"
        answer = self._call(
            lambda: person.upload(f"{marker}.txt", f"The place of {marker}.".encode(), timeout=CALL_SECONDS)
        )
        if answer is not None:
            files[marker] = answer.json()["resource_id"]
            self.stored[marker] = person

    def _add(self, person: RemotePerson) -> None:
        marker = f"message{secrets.token_hex(8)}"
        message = {"sender_id": person.user_id, "role": "user", "timestamp": FIRST_MS, "content": f"I like {marker}."}
        session = {"session_id": f"chat:{marker}"}
        if self._post(person, "/memories/add", {**session, "messages": [message]}) is not None:
            self.stored[marker] = person
            self._post(person, "/memories/flush", session)

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
        answer = self._post(person, "/memories/search", body)
        return None if answer is None else [one["text"] for one in answer.json()["results"] if marker in one["text"]]

    def _post(self, person: RemotePerson, path: str, body: dict[str, Any]) -> requests.Response | None:
        url = f"{person.server.url}{path}"
        return self._call(lambda: requests.post(url, json=body, headers=person.headers, timeout=CALL_SECONDS))

    def _call(self, send: Callable[[], requests.Response]) -> requests.Response | None:
        """Return the answer of a call that was carried out, else None."""
        try:
            answer = send()
        except requests.RequestException as error:
            with self._lock:
                self.answers[type(error).__name__] += 1
            return None
        with self._lock:
            self.answers[str(answer.status_code)] += 1
        if answer.ok:
            return answer
        has_remedy = answer.status_code not in {429, 503} or "Retry-After" in answer.headers
        if answer.status_code not in ALLOWED or not has_remedy:
            self._note(f"{answer.request.method} {answer.request.path_url}: {answer.status_code} {answer.text[:300]}")
        return None

    def _note(self, violation: str) -> None:
        with self._lock:
            self.violations.append(violation)
