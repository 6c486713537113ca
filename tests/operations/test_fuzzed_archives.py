"""Randomly changed archives are rejected without any effect, or imported completely and consistently."""

from __future__ import annotations

import io
import json
import shutil
import tarfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from uuid import UUID

import pytest
from django.core.management import CommandError
from django.db import transaction
from hypothesis import given, settings
from hypothesis import strategies as st

from accounts.models import AuditEvent, MemoryUser
from operations.doctor import Doctor
from resources.models import Resource
from store.models import Memory
from tests.operations import edit_archive
from tests.operations.test_export_import import run
from tests.operations.test_hostile_archives import exported
from tests.resources.forms import files_below

__all__ = ["exported"]

pytestmark = [pytest.mark.slow, pytest.mark.django_db]

Change = Callable[[st.DrawFn, Path], None]
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.integers(-(2**70), 2**70) | st.floats() | st.text()
    | st.sampled_from(["", "default", "chat:c1", "../../etc/passwd", "{storage}/x", "2026-11-22T10:00:00Z", "\x00"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=5,
)  # fmt: skip


def change_bytes(draw: st.DrawFn, path: Path) -> None:
    """Truncate, overwrite or repeat bytes; the digests become wrong."""
    data = path.read_bytes()
    at, length = draw(st.integers(0, len(data) - 1)), draw(st.sampled_from([1, 2, 512, 10_000]))
    piece = draw(st.binary(min_size=1, max_size=20))
    path.write_bytes(
        draw(
            st.sampled_from([
                data[:at], data[:at] + piece + data[at + len(piece) :], data[: at + length] + data[at:],
                data[:at] + data[at + length :], data[: at - at % 512] + data[at - at % 512 + 512 :], data + data,
                data[:at] + bytes(length), data + bytes(5_000_000),
            ])
        )
    )  # fmt: skip


def change_lines(draw: st.DrawFn, path: Path) -> None:
    """Reorder, repeat, remove or exchange lines of a file, and update the manifest."""
    files = edit_archive.contents(path)
    names = st.sampled_from(sorted(name for name in files if name.endswith(".jsonl")))
    name, other = draw(names), draw(names)
    own, foreign = files[name].splitlines(keepends=True), files[other].splitlines(keepends=True)
    line = st.integers(0, max(len(own) - 1, 0))
    at = draw(line)
    others = draw(st.lists(st.sampled_from(foreign or [b"{}\n"]), max_size=2))
    made = draw(
        st.sampled_from([
            draw(st.permutations(own)), [*own, *own[at:]], own[:at] + own[at + 1 :], own[:at] + others + own[at:],
            [*own[:at], b"\n", *own[at:]], [*own, b"[]\n"], [*own, b"{"], [],
        ])
    )  # fmt: skip
    edit_archive.write(path, {**files, name: b"".join(made)})


def change_values(draw: st.DrawFn, path: Path) -> None:
    """Change or remove one or two fields of a row, and update the manifest."""
    files = edit_archive.contents(path)
    name = draw(st.sampled_from(sorted(name for name in files if name.endswith(".jsonl") and files[name])))
    rows = files[name].splitlines()
    at = draw(st.integers(0, len(rows) - 1))
    row = json.loads(rows[at])
    for field in draw(st.lists(st.sampled_from(sorted(row)), min_size=1, max_size=2, unique=True)):
        if draw(st.integers(0, 5)) == 0:
            del row[field]
        else:
            row[field] = draw(VALUES)
    rows[at] = json.dumps(row).encode()
    edit_archive.write(path, {**files, name: b"\n".join(rows) + b"\n"})


def change_manifest(draw: st.DrawFn, path: Path) -> None:
    """Change a field of the manifest, and update its digest."""
    fields = json.loads(edit_archive.content(path, edit_archive.MANIFEST))
    edit_archive.change_manifest(path, {draw(st.sampled_from([*sorted(fields), "more"])): draw(VALUES)})


def change_members(draw: st.DrawFn, path: Path) -> None:
    """Reorder, repeat, remove, empty or exchange files."""
    with tarfile.open(path) as tar:
        found = [(info, (tar.extractfile(info) or io.BytesIO()).read()) for info in tar]
    at, other = draw(st.integers(0, len(found) - 1)), draw(st.integers(0, len(found) - 1))
    info, content = found[at]
    made = draw(
        st.sampled_from([
            draw(st.permutations(found)), [*found, found[at]], found[:at] + found[at + 1 :],
            [*found[:at], (info, b""), *found[at + 1 :]], [*found[:at], (info, found[other][1]), *found[at + 1 :]],
            [*found[:at], (info, content * 3), *found[at + 1 :]],
        ])
    )  # fmt: skip
    with tarfile.open(path, "w") as tar:
        for one, data in made:
            copied = tarfile.TarInfo(one.name)
            copied.size = len(data)
            tar.addfile(copied, io.BytesIO(data))


CHANGES: tuple[Change, ...] = (
    change_bytes,
    change_lines,
    change_values,
    change_values,
    change_manifest,
    change_members,
)


class _Undo(Exception):
    """Roll back an example."""


@pytest.mark.parametrize("examples", [100, pytest.param(10_000, marks=pytest.mark.torture)])
def test_a_changed_archive_is_imported_completely_or_not_at_all(
    exported: tuple[UUID, bytes], storage: Path, tmp_path: Path, examples: int
) -> None:
    path, outcomes = tmp_path / "all.tar", Counter[str]()

    @settings(max_examples=examples)
    @given(st.data())
    def import_changed_archive(data: st.DataObject) -> None:
        path.write_bytes(exported[1])
        data.draw(st.composite(data.draw(st.sampled_from(CHANGES)))(path))
        try:
            with transaction.atomic():
                outcomes[import_outcome(path, storage)] += 1
                raise _Undo
        except _Undo:
            shutil.rmtree(storage, ignore_errors=True)

    import_changed_archive()
    assert outcomes["rejected"] > outcomes["imported"] > 0


def import_outcome(path: Path, storage: Path) -> str:
    before = AuditEvent.objects.count()
    try:
        run("import_memory", str(path))
    except CommandError as refused:
        message = str(refused)
        assert message.strip()
        assert "Traceback" not in message
        assert "\n" not in message
        assert not MemoryUser.objects.exists()
        assert not Memory.objects.exists()
        assert AuditEvent.objects.count() == before
        assert files_below(storage) == []
        return "rejected"
    findings = {finding.check: finding for finding in Doctor().examine()}
    assert findings["index"].status == "ok", findings["index"]
    assert findings["files"].status == "ok", findings["files"]
    assert MemoryUser.objects.count() == 1
    assert set(Resource.objects.values_list("user__user_id", flat=True)) <= {"alice"}
    return "imported"
