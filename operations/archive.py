"""One file that holds many: a plain tar whose last members say what must be in it.

Not compressed, so that nothing in it can be larger than the file, and the same content makes the same bytes on every
machine. `manifest.json` names each file with its size and SHA-256, `manifest.sha256` holds that of the manifest.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import io
import json
import os
import re
import shutil
import tarfile
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

from core.errors import Conflict, InvalidInput, NoSpace, NotFound
from core.json_data import holds_nul
from operations.commands import Report, Stop
from resources.storage import NO_SPACE

VERSION = 1
_MANIFEST, _SEAL = "manifest.json", "manifest.sha256"
_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9_.-]*(/[A-Za-z0-9_-][A-Za-z0-9_.-]*){0,7}")
_MAX_MANIFEST_BYTES = 256 * 2**20
_MAX_LINE_BYTES = 64 * 2**20
_SPOOL_BYTES = 4 * 2**20
_CHUNK = 2**20
# Endings that nobody else gives to files.
_PART, _FOLDER = ".mg-part", ".mg-files"


class Writer:
    """Writes an archive beside its place and moves it there when it is whole; what a killed one left is removed.

    Errors: `Conflict` if one is there or is being written, `NotFound` for its folder, `NoSpace`.
    """

    def __init__(self, target: Path, kind: str) -> None:
        if target.exists():
            raise Conflict(f"{target} exists: choose another name.")
        self._target, self._kind = target, kind
        self._part = target.with_name(f".{target.name}{_PART}")
        self._files: dict[str, dict[str, Any]] = {}
        self.folder = target.with_name(f".{target.name}{_FOLDER}")
        """For what is put together first; whoever makes it need not remove it."""

    def __enter__(self) -> Self:
        with _no_folder(self._target):
            _clear_broken_off(self._target.parent)
            descriptor = _claim(self._part)
        if descriptor is None:
            raise Conflict(f"Another command is writing {self._target} now.")
        if self._target.exists():  # it was written since somebody looked
            _remove(self._part)
            os.close(descriptor)
            raise Conflict(f"{self._target} exists: choose another name.")
        self._raw = os.fdopen(descriptor, "wb")
        self._tar = tarfile.open(fileobj=self._raw, mode="w", format=tarfile.PAX_FORMAT)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _remove(self._part)
        with contextlib.suppress(OSError):  # what is still to be written is of no use
            self._raw.close()
        if isinstance(error, OSError) and error.errno in NO_SPACE:
            raise NoSpace(f"There is no space for {self._target}: nothing was written.") from None

    def add_lines(self, name: str, rows: Iterable[Mapping[str, Any]]) -> int:
        """A file of JSON lines; how many there were."""
        count = 0
        with tempfile.SpooledTemporaryFile(_SPOOL_BYTES, dir=str(self._target.parent)) as spool:
            for row in rows:
                spool.write(dump(row) + b"\n")
                count += 1
            size = spool.tell()
            spool.seek(0)
            self._add(name, spool, size)
        return count

    def add_file(self, name: str, source: IO[bytes]) -> None:
        """Errors: OSError, also where the file changes its size meanwhile."""
        self._add(name, source, os.fstat(source.fileno()).st_size)

    def finish(self, head: Mapping[str, Any]) -> dict[str, Any]:
        """Ends with the manifest, which begins with `head`, and moves the archive to its place."""
        manifest = {"format": self._kind, "version": VERSION, **head, "files": self._files}
        data = json.dumps(manifest, ensure_ascii=False, indent=1, sort_keys=True).encode()
        self._add(_MANIFEST, io.BytesIO(data), len(data))
        seal = f"{hashlib.sha256(data).hexdigest()}\n".encode()
        self._add(_SEAL, io.BytesIO(seal), len(seal))
        self._tar.close()
        self._raw.flush()
        os.fsync(self._raw.fileno())
        if self._target.exists():
            raise Conflict(f"{self._target} came meanwhile: choose another name.")
        self._part.rename(self._target)
        return manifest

    def _add(self, name: str, source: IO[bytes], size: int) -> None:
        info = tarfile.TarInfo(name)
        info.size, info.mode = size, 0o600
        hashing = _Hashing(source)
        self._tar.addfile(info, hashing)
        self._files[name] = {"size": size, "sha256": hashing.digest.hexdigest()}


class Reader:
    """An archive of some kind. Opening looks at its names and sizes only; `verify` reads it whole."""

    def __init__(self, path: Path, kind: str) -> None:
        """Errors: `NotFound`, `InvalidInput` with what is wrong about it."""
        if not path.is_file():
            raise NotFound(f"There is no file {path}.")
        try:
            self._tar = tarfile.open(path, "r:")  # noqa: SIM115  closed by the caller's `with`, or below
        except (tarfile.TarError, ValueError) as error:
            raise InvalidInput(f"{path} is no archive: {str(error)[:200]}.") from error
        try:
            self._members = _checked(self._tar, path.stat().st_size)
            self.manifest = self._read_manifest(kind)
            self.files: Mapping[str, Mapping[str, Any]] = self.manifest["files"]
            _compare_names(set(self._members) - {_MANIFEST, _SEAL}, set(self.files))
        except BaseException:
            self._tar.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._tar.close()

    def verify(self, report: Report, stop: Stop | None = None) -> None:
        """Reads everything. Errors: `InvalidInput` naming the files that differ, with both checksums."""
        wrong = []
        for number, (name, told) in enumerate(sorted(self.files.items()), 1):
            if stop:
                stop.check()
            found = self._digest(name)
            if self._members[name].size != told["size"] or found != told["sha256"]:
                wrong.append(f"{name} has SHA-256 {found}, the manifest says {told['sha256']}")
            report("Verifying the archive", number, len(self.files))
        if wrong:
            raise InvalidInput("The archive is damaged, nothing was taken from it: " + "; ".join(wrong[:20]) + ".")

    def lines(self, name: str) -> Iterator[tuple[int, Any]]:
        """The JSON lines of a file with their numbers. Errors: `InvalidInput` naming the line."""
        source = self.open(name)
        for number in range(1, 2**62):
            line = source.readline(_MAX_LINE_BYTES)
            if not line:
                return
            try:
                row = _parsed(line)
            except ValueError:
                raise InvalidInput(f"{name}, line {number}: not JSON.") from None
            yield number, row

    def open(self, name: str) -> IO[bytes]:
        found = self._tar.extractfile(self._members[name])
        if found is None:
            raise InvalidInput(f"{name} is no file.")
        return found

    def has(self, name: str) -> bool:
        return name in self.files

    def _digest(self, name: str) -> str:
        digest = hashlib.sha256()
        with self.open(name) as source:
            while chunk := source.read(_CHUNK):
                digest.update(chunk)
        return digest.hexdigest()

    def _read_manifest(self, kind: str) -> dict[str, Any]:
        if _MANIFEST not in self._members or _SEAL not in self._members:
            raise InvalidInput("The archive has no manifest: it is damaged, or was cut short.")
        if self._members[_MANIFEST].size > _MAX_MANIFEST_BYTES:
            raise InvalidInput("The manifest of the archive is too large.")
        told, found = self.open(_SEAL).read(100).decode("ascii", "replace").strip(), self._digest(_MANIFEST)
        if told != found:
            raise InvalidInput(f"The archive is damaged: {_MANIFEST} has SHA-256 {found}, {_SEAL} says {told}.")
        try:
            manifest = _parsed(self.open(_MANIFEST).read())
        except ValueError:
            raise InvalidInput("The manifest of the archive is not JSON.") from None
        return _checked_manifest(manifest, kind)


def _claim(part: Path) -> int | None:
    """An empty file that is this process's alone until it is closed; None while it is another's."""
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    with contextlib.suppress(BlockingIOError, FileNotFoundError):
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # Whoever had it may have moved it to its place, or removed it, just now.
        if os.path.samestat(os.fstat(descriptor), part.lstat()):
            os.ftruncate(descriptor, 0)
            return descriptor
    os.close(descriptor)
    return None


def _clear_broken_off(folder: Path) -> None:
    """Removes what killed processes left in the folder, whatever the name of their archive: it holds everything."""
    for part in folder.glob(f".*{_PART}"):
        with contextlib.suppress(OSError):
            descriptor = _claim(part)
            if descriptor is not None:
                _remove(part)
                os.close(descriptor)


def _remove(part: Path) -> None:
    """With the folder beside it, which goes first: a kill in between leaves the part that tells of it."""
    shutil.rmtree(part.with_name(part.name.removesuffix(_PART) + _FOLDER), ignore_errors=True)
    part.unlink(missing_ok=True)


def dump(row: Mapping[str, Any]) -> bytes:
    """One JSON object in one line, the same for the same content."""
    return json.dumps(row, ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode()


class _Hashing:
    """Reads through, and knows the digest of what was read."""

    def __init__(self, source: IO[bytes]) -> None:
        self._source = source
        self.digest = hashlib.sha256()

    def read(self, size: int = -1) -> bytes:
        data = self._source.read(size)
        self.digest.update(data)
        return data


def _checked(tar: tarfile.TarFile, size: int) -> dict[str, tarfile.TarInfo]:
    """The members by name: plain files with plain names that lie within the archive, each once."""
    members: dict[str, tarfile.TarInfo] = {}
    for info in _infos(tar):
        if info.type != tarfile.REGTYPE or info.sparse is not None:
            raise InvalidInput(f"The archive holds {info.name[:200]!r}, which is no plain file.")
        if not _NAME.fullmatch(info.name):
            raise InvalidInput(f"The archive holds a file with the name {info.name[:200]!r}, which is not allowed.")
        if info.name in members:
            raise InvalidInput(f"The archive holds {info.name} twice.")
        if info.size < 0 or info.offset_data + info.size > size:
            raise InvalidInput(f"The archive is cut short in {info.name}.")
        members[info.name] = info
    return members


def _infos(tar: tarfile.TarFile) -> Iterator[tarfile.TarInfo]:
    try:
        yield from tar
    except (tarfile.TarError, ValueError) as error:  # some odd headers are the latter
        raise InvalidInput(f"The archive is damaged: {str(error)[:200]}.") from error


def _checked_manifest(manifest: Any, kind: str) -> dict[str, Any]:
    if not isinstance(manifest, dict) or manifest.get("format") != kind:
        raise InvalidInput(f"This is no archive of the kind {kind}.")
    if manifest.get("version") != VERSION:
        raise InvalidInput(f"The archive has version {manifest.get('version')!r}; this gateway reads {VERSION}.")
    files = manifest.get("files")
    if not isinstance(files, dict) or not all(_is_told(file) for file in files.values()):
        raise InvalidInput("The manifest of the archive does not say size and SHA-256 of each file.")
    return manifest


def _is_told(file: Any) -> bool:
    return isinstance(file, dict) and isinstance(file.get("size"), int) and isinstance(file.get("sha256"), str)


def _parsed(data: bytes) -> Any:
    """Errors: ValueError, also for what no database keeps: NUL, halves of characters, numbers that are none."""
    try:
        found = json.loads(data, parse_constant=_refuse)
        if rb"\u" in data:  # how alone they can be written
            json.dumps(found, ensure_ascii=False).encode()
            if holds_nul(found):
                raise ValueError("holds NUL")
    except RecursionError:
        raise ValueError("nested too deeply") from None
    return found


def _refuse(name: str) -> None:
    raise ValueError(name)


def _compare_names(found: set[str], told: set[str]) -> None:
    if missing := sorted(told - found):
        raise InvalidInput(f"The archive is damaged: {', '.join(missing[:20])} of its manifest is not in it.")
    if unknown := sorted(found - told):
        raise InvalidInput(f"The archive holds what its manifest does not name: {', '.join(unknown[:20])}.")


@contextlib.contextmanager
def _no_folder(target: Path) -> Iterator[None]:
    try:
        yield
    except (FileNotFoundError, NotADirectoryError):
        raise NotFound(f"There is no folder {target.parent}.") from None
