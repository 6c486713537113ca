"""The signature of an erasure's receipt: what it covers, who can check it, and what the trail keeps."""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from accounts.audit import Actor
from accounts.models import AuditEvent
from core.errors import InvalidInput
from operations import erase, receipts
from tests.conftest import Person
from tests.memories.calls import say

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def receipt(alice: Person, storage: Path) -> dict[str, Any]:
    """The receipt as a person keeps it: a JSON file."""
    say(alice, "chat:c1", "My name is Alice.")
    found = erase.erase(alice.user_pk, actor=Actor.operator("olga"))
    return dict(json.loads(json.dumps(found, indent=2)))


def verify(*arguments: str) -> tuple[int, str]:
    """Run the command; return its exit code and what it printed."""
    out = StringIO()
    try:
        call_command("verify_receipt", *arguments, stdout=out)
    except SystemExit as ending:
        return int(ending.code or 0), out.getvalue()
    except CommandError as error:
        return error.returncode, str(error)
    return 0, out.getvalue()


def test_a_receipt_is_genuine_and_each_change_of_it_is_found(receipt: dict[str, Any], tmp_path: Path) -> None:
    file = tmp_path / "receipt.json"
    file.write_text(json.dumps(receipt), encoding="utf-8")
    assert verify(str(file))[0] == 0
    for name in receipt.keys() - {"signature"}:
        file.write_text(json.dumps({**receipt, name: "x"}), encoding="utf-8")
        code, text = verify(str(file))
        assert code == 1, name
        assert "was changed" in text


def test_the_check_reads_no_database(receipt: dict[str, Any], tmp_path: Path, django_assert_num_queries: Any) -> None:
    file = tmp_path / "receipt.json"
    file.write_text(json.dumps(receipt), encoding="utf-8")
    with django_assert_num_queries(0):
        assert verify(str(file))[0] == 0


def test_others_check_it_with_the_public_key(receipt: dict[str, Any], tmp_path: Path, settings: Any) -> None:
    file = tmp_path / "receipt.json"
    file.write_text(json.dumps(receipt), encoding="utf-8")
    key = verify()[1].strip()
    former = settings.SECRET_KEY
    settings.SECRET_KEY = "the secret of another gateway, which is long enough for the checks"
    code, text = verify(str(file))
    assert code == 1
    assert "Another key signed" in text
    assert verify(str(file), "--public-key", key)[0] == 0
    settings.SECRET_KEY_FALLBACKS = [former]  # as after a rotation
    assert verify(str(file))[0] == 0


def test_a_receipt_that_another_key_signed_is_not_genuine(receipt: dict[str, Any], settings: Any) -> None:
    own = receipts.public_keys()
    settings.SECRET_KEY = "the secret of a forger, which is long enough for the checks of settings"
    forged = receipts.signed({name: value for name, value in receipt.items() if name != "signature"})
    with pytest.raises(InvalidInput, match="Another key"):
        receipts.check(forged, own)
    lying = {**forged, "signature": {**forged["signature"], "public_key": own[0]}}
    with pytest.raises(InvalidInput, match="was changed"):
        receipts.check(lying, own)


def test_the_trail_keeps_the_signature_without_the_person(receipt: dict[str, Any]) -> None:
    event = AuditEvent.objects.get(action="user.erase_receipt")
    assert (event.subject_id, event.user_id, event.actor) == (receipt["receipt_id"], "", "olga")
    assert event.detail == receipts.trace(receipt)
    assert event.detail["signature"] == receipt["signature"]["value"]
    assert "alice" not in json.dumps(event.detail)
    assert not event.subjects.exists()


@pytest.mark.parametrize("content", [b"", b"[]", b"{}", b'{"signature": 1}', b"\xff"])
def test_other_files_are_refused(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "x.json"
    file.write_bytes(content)
    assert verify(str(file))[0] == 1
