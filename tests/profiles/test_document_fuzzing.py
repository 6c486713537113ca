"""Arbitrary valid documents can be stored, read, merged, restored and turned into prompts."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from accounts.audit import Actor
from core.errors import Conflict
from profiles import services
from profiles.prompts import build_system_prompt
from profiles.schemas import MODELS
from tests.conftest import Person
from tests.profiles.documents import documents, users, works

ACTOR = Actor("key", "k1")


def without_meta(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: without_meta(part) for key, part in value.items() if key != "meta"}
    return [without_meta(part) for part in value] if isinstance(value, list) else value


@pytest.mark.django_db
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(document=documents, patches=st.tuples(users, works), merge_lists=st.booleans())
def test_any_valid_document_can_be_stored_merged_and_restored(
    alice: Person, document: Any, patches: Any, merge_lists: bool
) -> None:
    kind, content = document
    expected = MODELS[kind].model_validate(content).model_dump()
    written = services.write(alice.user_pk, kind, content, actor=ACTOR)
    read = services.read(alice.user_pk, kind)
    assert read.content.model_dump() == written.content.model_dump()
    assert without_meta(read.content.model_dump()) == without_meta(expected)
    assert services.write(alice.user_pk, kind, read.content.model_dump(), actor=ACTOR).etag == read.etag

    patch = patches[kind == "work"]
    try:
        patched = services.patch(alice.user_pk, kind, patch, actor=ACTOR, merge_lists=merge_lists)
    except Conflict:
        assert merge_lists  # two of one name
    else:
        again = services.patch(alice.user_pk, kind, patch, actor=ACTOR, merge_lists=merge_lists)
        assert without_meta(again.content.model_dump()) == without_meta(patched.content.model_dump())
    if read.version:
        restored = services.restore(alice.user_pk, kind, read.version, actor=ACTOR)
        assert restored.content == read.content
    for agent in ("router", "worker"):
        for language in ("en", "zh"):
            services.make_prompt(alice.user_pk, agent, max_tokens=200, language=language)


@given(user=users, work=works)
@settings(max_examples=40, deadline=None)
def test_prompts_of_any_documents_are_deterministic(user: Any, work: Any) -> None:
    memories = {"user_memory": MODELS["user"].model_validate(user), "work_memory": MODELS["work"].model_validate(work)}
    for agent in ("router", "worker"):
        built = [build_system_prompt(agent_type=agent, base_prompt="Base.", **memories) for _ in range(2)]  # type: ignore[arg-type]
        assert built[0] == built[1]
        assert built[0].startswith("Base.")
