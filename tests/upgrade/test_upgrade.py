"""A gateway that commit c6813ca wrote is upgraded: every user sees what they saw, by the ids that they kept."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.server import RunningServer, own_database, server_environment
from tests.upgrade.checkout import NoCommit, write_fixtures
from tests.upgrade.fixture import DIGESTS, ENVIRONMENT, EXPORT, SCENARIOS, OldGateway, database, packed
from tests.upgrade.view import digest

pytestmark = pytest.mark.slow

NOT_ADDED = {"chat:trash": 409, "chat:trash-2": 409, "chat:bulk-session": 409, "chat:purged-2": 404}
"""The sessions whose adds are refused because they are deleted, with the status."""


# With EverOS on SQLite by name only: PostgreSQL has both each time.
_BY_DAY = {"sqlite": ("embedded",), "postgresql": SCENARIOS}[database()]


def long_on_sqlite(test: Callable[..., None]) -> Callable[..., None]:
    """Leave a test to `make torture` on SQLite: what it looks at runs on PostgreSQL each time."""
    return pytest.mark.torture(test) if database() == "sqlite" else test


@pytest.fixture(params=[pytest.param(name, marks=() if name in _BY_DAY else pytest.mark.torture) for name in SCENARIOS])
def scenario(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def upgraded_once(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], OldGateway]]:
    """The gateways that were upgraded, by scenario: tests get copies of them."""
    folder = tmp_path_factory.mktemp("upgraded")

    @cache
    def made(name: str) -> OldGateway:
        gateway = OldGateway.unpack(packed(name), folder / name)
        gateway.upgrade()
        return gateway

    yield made
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def upgraded(scenario: str, upgraded_once: Callable[[str], OldGateway], tmp_path: Path) -> Iterator[OldGateway]:
    yield upgraded_once(scenario).copy(tmp_path)
    shutil.rmtree(tmp_path, ignore_errors=True)


def views_of(state: dict[str, Any]) -> dict[str, Any]:
    return {user_id: user["view"] for user_id, user in state["users"].items()}


def assert_unchanged(old: OldGateway, now: dict[str, Any]) -> None:
    """Compare part by part, so that a failure names it."""
    for user_id, then in views_of(old.state).items():
        for memory_id, detail in then["memories"].items():
            assert now[user_id]["memories"].get(memory_id) == detail, (user_id, memory_id)
        # A message that EverOS has read answers to its id again; it is not listed.
        added = now[user_id]["memories"].keys() - then["memories"].keys()
        assert all(memory_id.startswith("msg_") for memory_id in added)
        now[user_id]["memories"] = {name: now[user_id]["memories"][name] for name in then["memories"]}
        for scope, before in zip(now[user_id]["scopes"], then["scopes"], strict=True):
            scope["found"] = without_unread(scope["found"], before["found"])
        for name in then["scopes"][0]:
            assert [one[name] for one in now[user_id]["scopes"]] == [one[name] for one in then["scopes"]], name
    assert {user_id: digest(view) for user_id, view in now.items()} == digests_of(old)


def without_unread(now: dict[str, list[list[str]]], then: dict[str, list[list[str]]]) -> dict[str, list[list[str]]]:
    """Return the hits by word without messages that EverOS has not read, which are found only since."""
    found = {
        word: [hit for hit in hits if hit in then.get(word, ()) or not hit[0].startswith("msg_")]
        for word, hits in now.items()
    }
    return {word: hits for word, hits in found.items() if hits}


def digests_of(old: OldGateway) -> dict[str, str]:
    return {user_id: digest(view) for user_id, view in views_of(old.state).items()}


def test_the_fixture_is_the_one_that_was_reviewed(scenario: str, tmp_path: Path) -> None:
    """It holds every case by which an upgrade can lose something."""
    old = OldGateway.unpack(packed(scenario), tmp_path)
    assert digests_of(old) == json.loads(DIGESTS.read_text())[f"{scenario}-{database()}"]
    for case, statement in CASES.items():
        is_there = bool(old.server.rows(f"SELECT 1 FROM {statement} LIMIT 1"))
        assert is_there or case in ABSENT[scenario], case


CASES = {
    "flushed message": "store_memory WHERE delivery_state = 'flushed'",
    "buffered message": "store_memory WHERE delivery_state = 'buffered'",
    "unconfirmed message": "store_memory WHERE delivery_state = 'unconfirmed' AND sent_at IS NOT NULL",
    "cleared message": "store_memory WHERE delivery_state = 'flushed' AND text = ''",
    "open message": "store_memory m JOIN store_session s ON s.id = m.session_id "
    "WHERE s.flushed_at IS NULL AND m.origin = 'embedded'",
    "open flush": "store_session WHERE flushed_at IS NOT NULL AND searchable_at IS NULL AND deleted_at IS NULL",
    "purged sentinel": "store_memory WHERE delivery_state = 'purged' AND text = ''",
    "purged session": "store_session WHERE deleted_at IS NOT NULL AND session_id = 'chat:purged-2'",
    "staging session": "store_session s JOIN store_memory m ON m.session_id = s.id "
    "WHERE s.deleted_at IS NOT NULL AND s.session_id LIKE '%moving:%' AND m.delivery_state = 'flushed'",
    "fact of a tool": "store_memory WHERE origin = 'tool' AND agent_id = 'coder'",
    "fact of the panel": "store_memory WHERE origin = 'panel' AND agent_id = 'planner'",
    "fact of an import": "store_memory m JOIN store_session s ON s.id = m.session_id "
    "WHERE s.session_id = 'import_mem0'",
    "derived memory": "store_memory WHERE origin = 'extracted' AND memory_type = 'episode' AND hidden_at IS NULL",
    "profile": "store_memory WHERE memory_type = 'profile'",
    "superseded": "store_memory m WHERE hidden_reason = 'superseded' AND NOT EXISTS "
    "(SELECT 1 FROM memories_tombstone t WHERE t.row_id = m.id AND t.undone_at IS NULL)",
    "superseded and deleted": "store_memory m JOIN memories_tombstone t ON t.row_id = m.id "
    "WHERE m.superseded_by <> '' AND t.undone_at IS NULL",
    "hidden with its source": "store_memory WHERE hidden_reason = 'with_source'",
    "hidden by an edit of its source": "store_memory WHERE hidden_reason = 'reworded'",
    "deleted memory": "memories_tombstone WHERE memory_id <> '' AND undone_at IS NULL AND row_id IS NOT NULL",
    "deleted session": "memories_tombstone WHERE memory_id = '' AND undone_at IS NULL",
    "tombstone without a row": "memories_tombstone WHERE memory_id <> '' AND undone_at IS NULL AND row_id IS NULL",
    "restored memory": "memories_tombstone WHERE memory_id <> '' AND undone_at IS NOT NULL",
    "override": "memories_override WHERE undone_at IS NULL",
    "override of several revisions": "memories_overriderevision WHERE number = 2",
    "override that was undone": "memories_override WHERE undone_at IS NOT NULL",
    "override that is deleted": "memories_override o JOIN memories_tombstone t ON t.row_id = o.row_id "
    "WHERE o.undone_at IS NULL AND t.undone_at IS NULL",
    "participant": "store_memory WHERE category = 'full_context_others'",
    "agent": "store_memory WHERE agent_id = 'planner'",
    "attachment of a message": "resources_attachment WHERE source = 'memory_add'",
    "unmatched decision": "operations_unmatcheddecision WHERE hides <> '[]'",
    "name left in EverOS": "store_leftupstream",
    "undo data": "operations_job j JOIN operations_jobstep s ON s.job_id = j.id WHERE j.undone_at IS NULL",
    "file in the trash with a tombstone": "resources_resource r "
    "JOIN memories_tombstone t ON t.session_id = r.session_id "
    "WHERE r.former_status <> '' AND t.memory_id = '' AND t.undone_at IS NULL",
    "file in the trash without a tombstone": "resources_resource r WHERE former_status = 'extracted' AND NOT EXISTS "
    "(SELECT 1 FROM memories_tombstone t WHERE t.session_id = r.session_id AND t.undone_at IS NULL)",
    "unread file in the trash": "resources_resource WHERE former_status = 'pending'",
    "purged file": "resources_resource WHERE status = 'deleted' AND former_status = '' AND NOT cleanup_pending",
    "file purged half way": "resources_resource WHERE cleanup_pending",
    **{
        f"{status} file": f"resources_resource WHERE status = '{status}'"
        for status in ("pending", "ingesting", "extracted", "empty", "failed", "deleted")
    },
}
ONLY_EMBEDDED = {"derived memory", "superseded", "superseded and deleted", "hidden with its source"}
ONLY_EMBEDDED |= {"hidden by an edit of its source"}
ONLY_EVEROS = {"flushed message", "buffered message", "unconfirmed message", "cleared message", "open flush"}
ONLY_EVEROS |= {"staging session", "unmatched decision", "name left in EverOS"}
ABSENT = {"embedded": ONLY_EVEROS, "everos": {*ONLY_EMBEDDED, "profile"}}


def test_users_see_what_they_saw(upgraded: OldGateway) -> None:
    assert_unchanged(upgraded, upgraded.views())


def test_states_follow_from_the_decisions(upgraded: OldGateway) -> None:
    report = json.loads(upgraded.server.manage("doctor", "--json", timeout_seconds=3600).stdout)
    assert [one["text"] for one in report["findings"] if one["check"] == "decisions" and one["status"] != "ok"] == []
    states = upgraded.server.rows("SELECT DISTINCT state FROM store_memory ORDER BY state")
    assert {state for (state,) in states} >= {"live", "purged", "trashed"}


@long_on_sqlite
def test_the_same_transcript_adds_no_rows_and_is_not_sent_again(upgraded: OldGateway) -> None:
    assert_nothing_is_added(upgraded, upgraded.run("repeat", repeated_state(upgraded, of_embedded=False)))
    assert_unchanged(upgraded, upgraded.views())


@long_on_sqlite
@pytest.mark.parametrize("scenario", ["everos"])
def test_a_transcript_from_before_everos_adds_no_rows(upgraded: OldGateway) -> None:
    assert_nothing_is_added(upgraded, upgraded.run("repeat", repeated_state(upgraded, of_embedded=True)))


def repeated_state(old: OldGateway, *, of_embedded: bool) -> dict[str, Any]:
    """Return the state with the calls to repeat: those of sessions from before EverOS, or the others.

    Adds of unknown outcome are left out: repeating them settles it, which is no repetition.
    """

    def is_repeated(user_id: str, session_id: str) -> bool:
        is_embedded = user_id == "frank" or session_id == "chat:unmatched"
        return is_embedded == of_embedded and not session_id.startswith("chat:unconfirmed")

    users = {
        user_id: {**user, "talks": [body for body in user["talks"] if is_repeated(user_id, body["session_id"])]}
        for user_id, user in old.state["users"].items()
    }
    assert any(user["talks"] for user in users.values())
    return {**old.state, "users": users}


def assert_nothing_is_added(old: OldGateway, repeated: dict[str, Any]) -> None:
    assert repeated["after"] == repeated["before"]
    assert repeated["sent"] == []
    for user_id, session_id, status in repeated["statuses"]:
        assert status == NOT_ADDED.get(session_id, 200), (user_id, session_id)


@long_on_sqlite
def test_jobs_from_before_can_be_undone(upgraded: OldGateway, scenario: str) -> None:
    """Keep what a user decided since: the first word was deleted again."""
    before = bulk_words(upgraded.views())
    undone = upgraded.run("undo")
    assert before == BULK_WORDS[scenario][0]
    assert bulk_words(upgraded.views()) == BULK_WORDS[scenario][1]
    assert undone["delete"] == {"undone": 2, "left": {"embedded": 1, "everos": 0}[scenario]}
    assert undone["categorize"] == {"undone": 2, "left": 0}


BULK_WORDS = {
    "embedded": ({3: True, 4: True, 5: False}, {1: False, 2: False, 3: False, 4: False}),
    "everos": ({2: True, 3: True}, {0: False, 1: False, 2: False, 3: False}),
}
"""The numbers of listed memories that jobs were about, before and after the undo, each with whether it is edited."""


def bulk_words(views: dict[str, Any]) -> dict[int, bool]:
    [scope] = [one for one in views["bob"]["scopes"] if one["scope"] == ["default", "default"]]
    shown = [views["bob"]["memories"][memory_id]["memory"] for memory_id in scope["listed"]]
    found = [(re.search(r"Bulk word (\d)", row["text"]), row["override_id"] is not None) for row in shown]
    return {int(match[1]): is_edited for match, is_edited in found if match}


@long_on_sqlite
def test_an_export_after_the_upgrade_holds_everything(upgraded: OldGateway, tmp_path: Path) -> None:
    upgraded.manage("export_memory", str(tmp_path / "after.tar"), "--all", "--with-keys")
    imported = import_archive(tmp_path / "after.tar", tmp_path / "second", upgraded)
    assert_unchanged(imported, imported.views())


def test_an_archive_of_then_is_imported_without_loss(scenario: str, tmp_path: Path) -> None:
    old = OldGateway.unpack(packed(scenario), tmp_path)
    imported = import_archive(tmp_path / EXPORT, tmp_path / "second", old)
    assert_unchanged(imported, imported.views())


def import_archive(archive: Path, folder: Path, of: OldGateway) -> OldGateway:
    """Import an archive into an empty gateway of the present version."""
    gateway = folder / "gateway"
    gateway.mkdir(parents=True)
    server = RunningServer(gateway, server_environment(gateway, own_database(gateway), **ENVIRONMENT))
    imported = OldGateway(server, of.state, folder)
    imported.manage("import_memory", str(archive))
    return imported


@pytest.mark.torture
def test_an_upgrade_of_100_000_memories_changes_nothing(tmp_path: Path) -> None:
    """Of the cases, and as many synthetic memories; each page of each list is compared."""
    try:
        write_fixtures(tmp_path, "--memories", "100000")
    except NoCommit as error:
        pytest.skip(f"the commit is not in this clone: {error}")
    for name in SCENARIOS:
        old = OldGateway.unpack(tmp_path / packed(name).name, tmp_path / name)
        old.upgrade()
        assert_unchanged(old, old.views())
