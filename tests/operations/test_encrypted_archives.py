"""Encrypted backups and exports: only the right key opens them, and nothing is read of a changed or shortened one."""

from __future__ import annotations

import io
import os
import secrets
from pathlib import Path

import pytest

from core.errors import GatewayError, InvalidInput
from operations.archives.encryption import CHUNK_BYTES, MAGIC, Decrypted, Encrypting, read_key
from tests.server import RunningServer, own_database, running_server, server_environment

KEY = bytes(range(32))
TAG_BYTES = 16
HEADER_BYTES = len(MAGIC) + 48


def written(path: Path, plaintext: bytes, piece_bytes: int = 10_000) -> bytes:
    with path.open("wb") as target:
        encrypting = Encrypting(target, KEY)
        for begin in range(0, len(plaintext), piece_bytes):
            encrypting.write(plaintext[begin : begin + piece_bytes])
        encrypting.finish()
    return path.read_bytes()


def read(path: Path, key: bytes = KEY) -> bytes:
    with path.open("rb") as source:
        return io.BufferedReader(Decrypted(path, source, key)).read()


@pytest.mark.parametrize("size", [0, 1, CHUNK_BYTES - 1, CHUNK_BYTES, CHUNK_BYTES + 1, 3 * CHUNK_BYTES, 200_000])
def test_the_plaintext_is_read_again(tmp_path: Path, size: int) -> None:
    plaintext = secrets.token_bytes(size)
    stored = written(tmp_path / "a", plaintext)
    assert read(tmp_path / "a") == plaintext
    assert len(stored) == HEADER_BYTES + size + TAG_BYTES * max(1, -(-size // CHUNK_BYTES))
    assert size < 32 or plaintext[:32] not in stored


def test_any_part_is_read(tmp_path: Path) -> None:
    plaintext = secrets.token_bytes(3 * CHUNK_BYTES + 7)
    written(tmp_path / "a", plaintext, piece_bytes=len(plaintext))
    with (tmp_path / "a").open("rb") as source:
        decrypted = io.BufferedReader(Decrypted(tmp_path / "a", source, KEY))
        for begin, size in ((CHUNK_BYTES - 3, 10), (0, 5), (3 * CHUNK_BYTES, 100), (CHUNK_BYTES, 2 * CHUNK_BYTES)):
            assert decrypted.seek(begin) == begin
            assert decrypted.read(size) == plaintext[begin : begin + size]
        assert decrypted.seek(-2, os.SEEK_END) == len(plaintext) - 2
        assert decrypted.read() == plaintext[-2:]


def test_equal_archives_differ_when_encrypted(tmp_path: Path) -> None:
    assert written(tmp_path / "a", b"equal" * 100) != written(tmp_path / "b", b"equal" * 100)


@pytest.mark.parametrize("lost", [1, TAG_BYTES, CHUNK_BYTES // 2 + TAG_BYTES, CHUNK_BYTES + 2 * TAG_BYTES, 10**9])
def test_a_shortened_file_is_refused_when_it_is_opened(tmp_path: Path, lost: int) -> None:
    """Also where exactly the last chunks are missing."""
    stored = written(tmp_path / "a", secrets.token_bytes(2 * CHUNK_BYTES + CHUNK_BYTES // 2))
    (tmp_path / "a").write_bytes(stored[: max(len(MAGIC), len(stored) - lost)])
    with (tmp_path / "a").open("rb") as source, pytest.raises(InvalidInput, match="was changed or cut off"):
        Decrypted(tmp_path / "a", source, KEY)


@pytest.mark.parametrize("place", [HEADER_BYTES, HEADER_BYTES + CHUNK_BYTES, HEADER_BYTES + CHUNK_BYTES + 20, -1])
def test_a_changed_byte_is_found(tmp_path: Path, place: int) -> None:
    stored = bytearray(written(tmp_path / "a", secrets.token_bytes(2 * CHUNK_BYTES)))
    stored[place] ^= 1
    (tmp_path / "a").write_bytes(stored)
    with pytest.raises(InvalidInput, match="was changed or cut off"):
        read(tmp_path / "a")


def test_chunks_that_changed_places_are_found(tmp_path: Path) -> None:
    stored = written(tmp_path / "a", secrets.token_bytes(3 * CHUNK_BYTES))
    size = CHUNK_BYTES + TAG_BYTES
    head, first, second, rest = (
        stored[:HEADER_BYTES],
        stored[HEADER_BYTES:][:size],
        stored[HEADER_BYTES + size :][:size],
        stored[HEADER_BYTES + 2 * size :],
    )
    (tmp_path / "a").write_bytes(head + second + first + rest)
    with pytest.raises(InvalidInput, match="was changed or cut off"):
        read(tmp_path / "a")


@pytest.mark.parametrize("place", [len(MAGIC), len(MAGIC) + 32, len(MAGIC) + 47])
def test_another_key_or_header_is_one_sentence(tmp_path: Path, place: int) -> None:
    stored = bytearray(written(tmp_path / "a", b"text"))
    with pytest.raises(InvalidInput, match=r"^The key file does not belong to \S+\.$"):
        read(tmp_path / "a", KEY[::-1])
    stored[place] ^= 1
    (tmp_path / "a").write_bytes(stored)
    with pytest.raises(InvalidInput, match="does not belong"):
        read(tmp_path / "a")


@pytest.mark.parametrize("text", ["", "abc", "0" * 63, "0" * 65, "g" * 64, "0" * 5000])
def test_what_is_no_key_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "key").write_text(text)
    with pytest.raises(InvalidInput, match="openssl rand -hex 32"):
        read_key(tmp_path / "key")


def test_a_key_file_is_read(tmp_path: Path) -> None:
    (tmp_path / "key").write_text(f"{KEY.hex()}\n")
    assert read_key(tmp_path / "key") == KEY
    with pytest.raises(GatewayError, match="cannot be read"):
        read_key(tmp_path / "none")


def refused(gateway: RunningServer, *arguments: str) -> str:
    """Return the sentence of a refused command, the only one beside its progress."""
    done = gateway.manage(*arguments)
    lines = [line for line in done.stderr.splitlines() if not line.startswith("Verifying the archive: ")]
    assert (done.returncode, len(lines)) == (2, 1), done.stderr
    return lines[0]


def test_backups_and_exports_are_encrypted_and_read_with_the_key_only(tmp_path: Path) -> None:
    key, other_key = tmp_path / "key", tmp_path / "other_key"
    for file in (key, other_key):
        file.write_text(secrets.token_hex(32))
    backup, export = tmp_path / "backup.tar", tmp_path / "export.tar"
    with running_server(tmp_path) as server:
        for arguments in (
            ("seed_memories", "30"),
            ("backup", str(backup), "--key-file", str(key)),
            ("export_memory", str(export), "--all", "--key-file", str(key)),
        ):
            done = server.manage(*arguments)
            assert done.returncode == 0, done.stderr
        markdown = ("export_memory", str(tmp_path / "md"), "--all", "--markdown", "--key-file", str(key))
        assert "Leave out --markdown" in refused(server, *markdown)
        memories = server.rows("SELECT count(*) FROM store_memory")
    for archive in (backup, export):
        data = archive.read_bytes()
        assert data.startswith(MAGIC)
        assert b"manifest.json" not in data
    assert not [path.name for path in tmp_path.iterdir() if path.name.startswith(".backup")]

    cut = tmp_path / "cut.tar"
    cut.write_bytes(backup.read_bytes()[:-1000])
    changed = bytearray(backup.read_bytes())
    changed[len(changed) // 2] ^= 1
    (tmp_path / "changed.tar").write_bytes(changed)
    for name in ("other", "third"):
        (tmp_path / name).mkdir()
    again = RunningServer(tmp_path / "other", server_environment(tmp_path / "other", own_database(tmp_path / "other")))
    for arguments, sentence in (
        ((str(backup),), "is encrypted. Name its key file by --key-file."),
        ((str(backup), "--key-file", str(other_key)), "The key file does not belong to"),
        ((str(cut), "--key-file", str(key)), "was changed or cut off, so nothing was read from it."),
        (
            (str(tmp_path / "changed.tar"), "--key-file", str(key)),
            "was changed or cut off, so nothing was read from it.",
        ),
    ):
        assert sentence in refused(again, "restore", *arguments)
    restored = again.manage("restore", str(backup), "--key-file", str(key))
    assert restored.returncode == 0, restored.stdout + restored.stderr
    assert again.rows("SELECT count(*) FROM store_memory") == memories

    third = RunningServer(tmp_path / "third", server_environment(tmp_path / "third", own_database(tmp_path / "third")))
    assert "does not belong to" in refused(third, "import_memory", str(export), "--key-file", str(other_key))
    assert third.rows("SELECT count(*) FROM store_memory") == [(0,)]
    assert third.manage("import_memory", str(export), "--key-file", str(key)).returncode == 0
    assert third.rows("SELECT count(*) FROM store_memory") == memories
    plain = tmp_path / "plain.tar"
    assert third.manage("export_memory", str(plain), "--all").returncode == 0
    assert "is not encrypted" in refused(third, "import_memory", str(plain), "--key-file", str(key))
