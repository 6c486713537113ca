"""Delete facts, do what may bring them back, and count those that are found again, and those that are lost.

Of 40 facts, 20 messages and 20 files, every other one is deleted. The remote is the stand-in for EverOS of the tests.
"""

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple
from urllib.request import urlopen

from benchmarks.answers.client import BEGAN_MS, Person, Said, SystemUser
from benchmarks.processes import PROJECT, gateway, gateway_environment
from tests.stub_upstream import StubUpstream

_FACTS: Final = 40
_SENT_SECONDS: Final = 120.0
STEPS: Final = (
    "deleted",
    "sent again",
    "ingested again",
    "EverOS attached",
    "derived again",
    "EverOS detached",
    "backup restored",
    "imported",
)


class Fact(NamedTuple):
    word: str
    is_file: bool
    is_deleted: bool

    @property
    def text(self) -> str:
        return f"The locker {self.word} opens with the code of the {self.word} gate."


FACTS: Final = tuple(
    Fact(f"kalo{chr(97 + number // 20)}{chr(97 + number % 20)}x", number % 4 < 2, bool(number % 2))
    for number in range(_FACTS)
)


class Count(NamedTuple):
    """Deleted facts that are found, all deleted facts, and other facts that are not found, as numbers."""

    back: int
    deleted: int
    lost: int


def count(user: SystemUser) -> Count:
    """Search each fact by its word and return what is wrong."""
    found = {fact for fact in FACTS if any(fact.word in one["text"] for one in user.search(fact.word, min_relevance=0))}
    deleted = {fact for fact in FACTS if fact.is_deleted}
    return Count(len(found & deleted), len(deleted), len({*FACTS} - deleted - found))


def tell(user: SystemUser, *, files: bool = True, messages: bool = True) -> None:
    """Tell the facts, each time in the same words, sessions and times."""
    if messages:
        said = (fact for fact in FACTS if not fact.is_file)
        user.say(Said(fact.text, BEGAN_MS + n * 1000, session=f"chat{n % 4}") for n, fact in enumerate(said))
    for fact in FACTS if files else ():
        if fact.is_file:
            user.upload(f"{fact.word}.txt", fact.text)


def of_peer(peer: SystemUser) -> Iterator[tuple[str, Count]]:
    """Yield the counts of the steps that a plain table knows."""
    tell(peer)
    for fact in FACTS:
        if fact.is_deleted:
            peer.delete(fact.word)
    yield "deleted", count(peer)
    tell(peer, files=False)
    yield "sent again", count(peer)
    tell(peer, messages=False)
    yield "ingested again", count(peer)


def of_gateway() -> Iterator[tuple[str, Count]]:
    """Yield the counts of all steps, each done to the gateway that the step before left."""
    with tempfile.TemporaryDirectory() as folder, StubUpstream() as remote:
        life = _Life(Path(folder), remote.url)
        for step, act in zip(STEPS, life.acts(), strict=True):
            yield step, act()
        assert remote.calls("add"), "The remote was sent nothing."


@dataclass
class _Life:
    """A gateway that is stopped and started, moved and copied, and its user."""

    folder: Path
    remote_url: str
    place: Path = field(init=False)
    key: str = ""

    def __post_init__(self) -> None:
        self.place = self._new_place("first")

    def acts(self) -> tuple[Callable[[], Count], ...]:
        return (
            self._begin,
            self._send_again,
            lambda: self._after("reingest", "--user", "ann", "--apply"),
            lambda: self._after("reingest", "--all", "--into", "remote", "--apply", is_attached=True),
            lambda: self._after("reingest", "--user", "ann", "--apply", is_attached=True),
            self._count,
            self._restore,
            self._import,
        )

    def _begin(self) -> Count:
        with self._running() as user:
            tell(user)
            for fact in FACTS:
                if fact.is_deleted:
                    user.delete(fact.word)
            return count(user)

    def _send_again(self) -> Count:
        with self._running() as user:
            tell(user, files=False)
            return count(user)

    def _after(self, *command: str, is_attached: bool = False) -> Count:
        settings = {"BACKEND_BASE_URL": self.remote_url} if is_attached else {}
        with self._running(**settings) as user:
            self._manage(*command, **settings)
            if is_attached:
                _wait_until_sent(user.port)
            return count(user)

    def _count(self) -> Count:
        with self._running() as user:
            return count(user)

    def _restore(self) -> Count:
        archive = str(self.folder / "backup.tar")
        self._manage("backup", archive)
        self.place = self._new_place("restored")
        self._manage("restore", archive)
        return self._count()

    def _import(self) -> Count:
        archive = str(self.folder / "export.tar")
        self._manage("export_memory", archive, "--all", "--with-keys")
        self.place = self._new_place("imported")
        self._manage("migrate", "--verbosity", "0")
        self._manage("import_memory", archive)
        return self._count()

    @contextmanager
    def _running(self, **settings: str) -> Iterator[Person]:
        with gateway(self.place, LOG_BODIES="false", **settings) as (port, _pid):
            if not self.key:
                self.key = Person.create(port, "ann").key
            yield Person(port, "ann", self.key)

    def _manage(self, *command: str, **settings: str) -> None:
        env = gateway_environment(self.place, **settings)
        subprocess.run([sys.executable, "manage.py", *command], cwd=PROJECT, env=env, check=True, capture_output=True)

    def _new_place(self, name: str) -> Path:
        place = self.folder / name
        place.mkdir()
        return place


def _wait_until_sent(port: int) -> None:
    deadline = time.monotonic() + _SENT_SECONDS
    while time.monotonic() < deadline:
        with urlopen(f"http://127.0.0.1:{port}/health") as response:
            outbox = json.load(response)["backend"]["outbox"]
        if not any(outbox.values()):
            return
        time.sleep(0.5)
    raise TimeoutError(f"The remote has not been sent everything: {outbox}")
