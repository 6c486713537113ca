"""`docs/understand/engines.md` says of the engines what this suite holds them to."""

from __future__ import annotations

import pytest

from tests.contract.conftest import IS_EVEROS_ASKED_FOR
from tests.contract.differences import DIFFERENCES, LLM_MADE_TYPES, METHOD_USED, STATUS_OF_METHOD, Difference
from tests.everos import EverOS
from tests.forked import PROJECT

HEADING = "## What may differ"


@pytest.mark.skipif(not IS_EVEROS_ASKED_FOR, reason="the contract on a real EverOS: set RUN_BACKEND_INTEGRATION=1")
def test_the_contract_is_held_against_everos_too(everos: EverOS) -> None:
    """One line about it instead of one for each test."""
    assert everos.url


def table() -> dict[str, Difference]:
    """The rows of the one table below the heading."""
    page = (PROJECT / "docs" / "understand" / "engines.md").read_text(encoding="utf-8")
    section = page.split(HEADING)[1].split("\n## ")[0]
    rows = [line.strip("|").split("|") for line in section.splitlines() if line.startswith("|")]
    return {name.strip(): Difference(embedded.strip(), everos.strip()) for name, embedded, everos in rows[2:]}


def test_the_page_names_every_difference_and_no_other() -> None:
    assert table() == DIFFERENCES


def test_what_the_tests_ask_is_what_the_table_says() -> None:
    for method, status in STATUS_OF_METHOD["embedded"].items():
        said = DIFFERENCES.get(f"`method`: `{method}`")
        is_same = status == STATUS_OF_METHOD["everos"][method] and method == METHOD_USED["embedded"].get(method)
        assert (said is None) == is_same
        assert said is None or said.embedded.startswith(str(status))
    named = {f"`memory_type`: `{name}`" for name in LLM_MADE_TYPES["everos"] - LLM_MADE_TYPES["embedded"]}
    assert named == {name for name in DIFFERENCES if name.startswith("`memory_type`")}
