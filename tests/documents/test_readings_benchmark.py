"""The comparison with other readers runs on the small files."""

from __future__ import annotations

import pytest

from benchmarks import readings


def test_the_gateway_reads_what_the_standard_library_does(capsys: pytest.CaptureFixture[str]) -> None:
    assert readings.main(["--kinds", "json", "mbox", "tsv", "odp"]) == 0
    said = capsys.readouterr().out
    assert [line.split(" | ")[0] for line in said.splitlines()[2:6]] == ["| json", "| mbox", "| odp", "| tsv"]


def test_a_kind_that_is_read_worse_misses_the_target(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readings, "_gateway", lambda _path: "something else")
    assert readings.main(["--kinds", "json"]) == 1
