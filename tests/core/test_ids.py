"""The grammar of identifiers, and the parsing of session ids."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ValidationError

from core import ids


class Holder(BaseModel):
    name: ids.Name = "default"
    session_id: ids.SessionId = "chat:c"


@pytest.mark.parametrize("name", ["a", "A.b", "u_123", "x@y.example", "a+b-c", "." * 3, "a" * 64])
def test_valid_names_are_returned_unchanged(name: str) -> None:
    assert Holder(name=name).name == name


@pytest.mark.parametrize(
    "name", ["", ".", "..", "a" * 65, "a:b", "a/b", "а", "a b", "a\n", "\x00", "..\\", "名", "%2e"]
)
def test_invalid_names_are_refused_with_the_grammar(name: str) -> None:
    with pytest.raises(ValidationError, match="1 to 64 characters"):
        Holder(name=name)


@pytest.mark.parametrize("session_id", ["chat:c_456", "s/'\"会话", "x" * 128])
def test_session_ids_may_hold_any_printable_characters(session_id: str) -> None:
    assert Holder(session_id=session_id).session_id == session_id


@pytest.mark.parametrize("session_id", ["", "x" * 129, "chat:a\nb", "a\x00", "a\u2028b", "a\x85b", "\ud800"])
def test_session_ids_with_control_characters_or_too_many_characters_are_refused(session_id: str) -> None:
    with pytest.raises(ValidationError):
        Holder(session_id=session_id)


@pytest.mark.parametrize("session_id", [".", ".."])
def test_a_session_to_write_to_is_one_that_a_path_can_name(session_id: str) -> None:
    with pytest.raises(ValueError, match="which clients remove from addresses"):
        ids.check_new_session_id(session_id)
    assert ids.check_session_id(session_id) == session_id, "older sessions stay usable"
    assert ids.check_new_session_id(f"{session_id}a") == f"{session_id}a"


@given(st.from_regex(r"[A-Za-z0-9_.@+-]{1,64}", fullmatch=True))
def test_a_resource_session_names_its_user_and_fits_the_limit(user_id: str) -> None:
    resource_id = ids.new_resource_id()
    session_id = ids.resource_session_id(user_id, resource_id)
    assert ids.check_session_id(session_id) == session_id
    assert ids.parse_session_id(session_id) == ("resource", user_id, resource_id)


def test_session_ids_are_parsed_into_kind_user_and_rest() -> None:
    assert ids.parse_session_id("chat:a:b") == ("chat", None, "a:b")
    assert ids.parse_session_id("memory_edit:u") == ("memory_edit", "u", "")
    assert ids.parse_session_id("manual_insert") == ("other", None, "manual_insert")
    assert ids.parse_session_id("chat:") == ("other", None, "chat:")
