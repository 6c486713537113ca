"""A tar file of many files, with a manifest at its end.

It is not compressed: no file in it can be larger than the archive, and equal content gives equal bytes on every
machine. `manifest.json` names each file with its size and SHA-256, `manifest.sha256` is the digest of the manifest.
"""

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
from functools import partial
from pathlib import Path
from typing import IO, Any, Self, cast

from core.errors import Conflict, InvalidInput, NoSpace, NotFound
from core.persistence.files import NO_SPACE
from core.storable import STORED_DEPTH, NotStorable, check_json, cut_json, parse_json
from operations.archives.encryption import CHUNK_BYTES, Decrypted, Encrypting, is_encrypted
from operations.commands import Report

VERSION = 4
_MANIFEST, _DIGEST = "manifest.json", "manifest.sha256"
_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9_.-]*(/[A-Za-z0-9_-][A-Za-z0-9_.-]*){0,7}")
_MAX_MANIFEST_BYTES = 256 * 2**20
_MAX_LINE_BYTES = 2**30
_SPOOL_BYTES = 4 * 2**20
# Suffixes of the temporary files of archives; no other file has them.
_PART, _FOLDER = ".mg-part", ".mg-files"


class Writer:
    """Writes an archive under a temporary name and renames it when it is complete.

    With a `key` it is encrypted, and what is not is kept in the machine's folder for temporary files, not beside the
    target. Temporary files of killed processes are removed. Raises: `Conflict` if the target exists or is being
    written, `NotFound` for its folder, `NoSpace`.
    """

    def __init__(self, target: Path, kind: str, key: bytes | None = None) -> None:
        if target.exists():
            raise Conflict(f"{target} already exists. Choose another name.")
        self._target, self._kind, self._key = target, kind, key
        self._part = target.with_name(f".{target.name}{_PART}")
        self._files: dict[str, dict[str, Any]] = {}
        beside, apart = _folders(self._part)
        self.folder = beside if key is None else apart
        """A folder for temporary files; it is removed when the writer closes."""

    def __enter__(self) -> Self:
        if not self._target.parent.is_dir():
            raise NotFound(f"The folder {self._target.parent} does not exist.")
        for part in self._target.parent.glob(f".*{_PART}"):  # left by killed processes, of any archive
            with contextlib.suppress(OSError):
                if (abandoned := _claim(part)) is not None:
                    _remove(part)
                    os.close(abandoned)
        descriptor = _claim(self._part)
        if descriptor is None:
            raise Conflict(f"Another command is writing {self._target}.")
        if self._target.exists():  # another process wrote it meanwhile
            _remove(self._part)
            os.close(descriptor)
            raise Conflict(f"{self._target} already exists. Choose another name.")
        self._raw = os.fdopen(descriptor, "wb")
        self._encrypting = None if self._key is None else Encrypting(self._raw, self._key)
        target = cast("IO[bytes]", self._encrypting or self._raw)
        self._tar = tarfile.open(fileobj=target, mode="w", format=tarfile.PAX_FORMAT)
        return self

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        _remove(self._part)
        with contextlib.suppress(OSError):  # unwritten data is no longer needed
            self._raw.close()
        if isinstance(error, OSError) and error.errno in NO_SPACE:
            raise NoSpace(f"There is no space left for {self._target}. Nothing was written.") from None

    def add_lines(self, name: str, rows: Iterable[Mapping[str, Any]]) -> int:
        """Add a file with one JSON line per row; return their number."""
        count = 0
        folder = None if self._key else str(self._target.parent)
        with tempfile.SpooledTemporaryFile(_SPOOL_BYTES, dir=folder) as spool:
            for row in rows:
                spool.write(dump(row) + b"\n")
                count += 1
            size = spool.tell()
            spool.seek(0)
            self._add(name, spool, size)
        return count

    def add_file(self, name: str, source: IO[bytes]) -> None:
        """Add a file. Raises: OSError, also if the file changes its size meanwhile."""
        self._add(name, source, os.fstat(source.fileno()).st_size)

    def finish(self, head: Mapping[str, Any]) -> dict[str, Any]:
        """Write the manifest, which begins with `head`, and rename the archive to its target."""
        manifest = {"format": self._kind, "version": VERSION, **head, "files": self._files}
        data = json.dumps(manifest, ensure_ascii=False, indent=1, sort_keys=True).encode()
        self._add(_MANIFEST, io.BytesIO(data), len(data))
        digest = f"{hashlib.sha256(data).hexdigest()}\n".encode()
        self._add(_DIGEST, io.BytesIO(digest), len(digest))
        self._tar.close()
        if self._encrypting is not None:
            self._encrypting.finish()
        self._raw.flush()
        os.fsync(self._raw.fileno())
        if self._target.exists():
            raise Conflict(f"{self._target} was created meanwhile. Choose another name.")
        self._part.rename(self._target)
        return manifest

    def _add(self, name: str, source: IO[bytes], size: int) -> None:
        info = tarfile.TarInfo(name)
        info.size, info.mode = size, 0o600
        hashing = _Hashing(source)
        self._tar.addfile(info, hashing)
        self._files[name] = {"size": size, "sha256": hashing.digest.hexdigest()}


class Reader(contextlib.AbstractContextManager["Reader"]):
    """An archive of one kind. Opening it checks names and sizes only; `verify` reads all files."""

    def __init__(self, path: Path, kind: str, *, oldest: int = VERSION, key: bytes | None = None) -> None:
        """Open an archive of version `oldest` or later, encrypted if there is a key, and check its names and sizes.

        Raises: `NotFound`, `InvalidInput` with the reason.
        """
        if not path.exists():
            raise NotFound(f"The file {path} does not exist.")
        if not path.is_file():
            raise InvalidInput(f"{path} is not a regular file.")
        with contextlib.ExitStack() as opened:
            source, size = _plaintext(path, opened.enter_context(path.open("rb")), key)
            try:
                self._tar = opened.enter_context(tarfile.open(fileobj=source, mode="r:"))
            except (tarfile.TarError, ValueError) as error:
                raise InvalidInput(f"{path} is not an archive: {str(error)[:200]}.") from error
            self._members = _checked_members(self._tar, size)
            self.manifest = self._read_manifest(kind, oldest)
            self.files: Mapping[str, Mapping[str, Any]] = self.manifest["files"]
            self._opened = opened.pop_all()

    def __exit__(self, *_: object) -> None:
        self._opened.close()

    def verify(self, report: Report) -> None:
        """Check the digests of all files. Raises: `InvalidInput` naming the files that differ, with both digests."""
        wrong = []
        for number, (name, named) in enumerate(sorted(self.files.items()), 1):
            report("Verifying the archive", number, len(self.files))
            found = self._digest(name)
            if self._members[name].size != named["size"] or found != named["sha256"]:
                wrong.append(f"{name} has SHA-256 {found}, but the manifest says {named['sha256']}")
        if wrong:
            raise InvalidInput("The archive is damaged. Nothing was read from it: " + "; ".join(wrong[:20]) + ".")

    def lines(self, name: str, *, is_checked: bool = True) -> Iterator[tuple[int, Any]]:
        """Yield the JSON lines of a file with their numbers; if not `is_checked`, also what no database stores.

        Raises: `InvalidInput` naming the line.
        """
        source = self.open(name)
        for number, line in enumerate(iter(partial(source.readline, _MAX_LINE_BYTES), b""), 1):
            try:
                row = _parse_json(line, is_checked=is_checked)
            except NotStorable as error:
                raise InvalidInput(f"{name}, line {number}: {error.field('it')} {error.message}.") from None
            except ValueError:
                raise InvalidInput(f"{name}, line {number}: not valid JSON.") from None
            yield number, row

    def open(self, name: str) -> IO[bytes]:
        """Open a file of the archive. Raises: `InvalidInput` if it is no file."""
        found = self._tar.extractfile(self._members[name])
        if found is None:
            raise InvalidInput(f"{name} is not a file.")
        return found

    def _digest(self, name: str) -> str:
        with self.open(name) as source:
            return hashlib.file_digest(cast("io.BufferedReader", source), "sha256").hexdigest()

    def _read_manifest(self, kind: str, oldest: int) -> dict[str, Any]:
        if _MANIFEST not in self._members or _DIGEST not in self._members:
            raise InvalidInput("The archive has no manifest. It is damaged or incomplete.")
        if self._members[_MANIFEST].size > _MAX_MANIFEST_BYTES:
            raise InvalidInput("The manifest of the archive is too large.")
        recorded, found = self.open(_DIGEST).read(100).decode("ascii", "replace").strip(), self._digest(_MANIFEST)
        if recorded != found:
            raise InvalidInput(
                f"The archive is damaged: {_MANIFEST} has SHA-256 {found}, but {_DIGEST} says {recorded!r}."
            )
        try:
            manifest = _parse_json(self.open(_MANIFEST).read())
        except ValueError:
            raise InvalidInput("The manifest of the archive is not valid JSON.") from None
        if not isinstance(manifest, dict) or manifest.get("format") != kind:
            raise InvalidInput(f"This is not a {kind} archive.")
        readable = range(oldest, VERSION + 1)
        if type(manifest.get("version")) is not int or manifest["version"] not in readable:
            read = " and ".join(map(str, readable))
            raise InvalidInput(f"The archive has version {manifest.get('version')!r}; this gateway supports {read}.")
        files = manifest.get("files")
        shape = {"size": int, "sha256": str}
        if not isinstance(files, dict) or not all(
            isinstance(file, dict) and all(isinstance(file.get(name), wanted) for name, wanted in shape.items())
            for file in files.values()
        ):
            raise InvalidInput("The manifest of the archive does not give the size and SHA-256 of each file.")
        if missing := sorted(files.keys() - self._members.keys()):
            raise InvalidInput(f"The archive is damaged. Missing files: {', '.join(missing[:20])}.")
        if unknown := sorted(self._members.keys() - files.keys() - {_MANIFEST, _DIGEST}):
            raise InvalidInput(
                f"The archive contains files that its manifest does not list: {', '.join(unknown[:20])}."
            )
        return manifest


def _claim(part: Path) -> int | None:
    """Create or empty a file and lock it; return its descriptor, or None while another process has the lock."""
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    with contextlib.suppress(BlockingIOError, FileNotFoundError):
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # Its former owner may just have renamed or removed it.
        if os.path.samestat(os.fstat(descriptor), part.lstat()):
            os.ftruncate(descriptor, 0)
            return descriptor
    os.close(descriptor)
    return None


def _plaintext(path: Path, file: IO[bytes], key: bytes | None) -> tuple[IO[bytes], int]:
    """Return the tar file in an archive and its size. Raises: `InvalidInput` without the right key."""
    if not is_encrypted(file):
        if key is not None:
            raise InvalidInput(f"{path} is not encrypted. Leave out --key-file if you trust it nevertheless.")
        return file, os.fstat(file.fileno()).st_size
    if key is None:
        raise InvalidInput(f"{path} is encrypted. Name its key file by --key-file.")
    decrypted = Decrypted(path, file, key)
    return cast("IO[bytes]", io.BufferedReader(decrypted, CHUNK_BYTES)), decrypted.size


def _folders(part: Path) -> tuple[Path, Path]:
    """Return the folders for temporary files of an archive: beside it, and in the machine's folder for them."""
    name = hashlib.sha256(os.fsencode(part.absolute())).hexdigest()[:32]
    beside = part.with_name(part.name.removesuffix(_PART) + _FOLDER)
    return beside, Path(tempfile.gettempdir()) / f"memory-gateway-{name}{_FOLDER}"


def _remove(part: Path) -> None:
    """Remove a partial archive and its folders, the folders first: if interrupted, a later run finds the archive."""
    for folder in _folders(part):
        shutil.rmtree(folder, ignore_errors=True)
    part.unlink(missing_ok=True)


def dump(row: Mapping[str, Any]) -> bytes:
    """Return a JSON object as one line; equal content gives equal bytes."""
    return json.dumps(row, ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode()


class _Hashing:
    """Reads a file and computes its digest at the same time."""

    def __init__(self, source: IO[bytes]) -> None:
        self._source = source
        self.digest = hashlib.sha256()

    def read(self, size: int = -1) -> bytes:
        data = self._source.read(size)
        self.digest.update(data)
        return data


def _checked_members(tar: tarfile.TarFile, size: int) -> dict[str, tarfile.TarInfo]:
    """Return the members by name: regular files with safe, unique names. Raises: `InvalidInput`."""
    members: dict[str, tarfile.TarInfo] = {}
    try:
        infos = tar.getmembers()
    except (tarfile.TarError, ValueError) as error:  # tarfile raises ValueError for some invalid headers
        raise InvalidInput(f"The archive is damaged: {str(error)[:200]}.") from error
    for info in infos:
        if info.type != tarfile.REGTYPE or info.sparse is not None:
            raise InvalidInput(f"The archive contains {info.name[:200]!r}, which is not a regular file.")
        if not _NAME.fullmatch(info.name):
            raise InvalidInput(f"The archive contains a file with the invalid name {info.name[:200]!r}.")
        if info.name in members:
            raise InvalidInput(f"The archive contains {info.name} twice.")
        if info.size < 0 or info.offset_data + info.size > size:
            raise InvalidInput(f"The archive is truncated in {info.name}.")
        members[info.name] = info
    return members


def _parse_json(data: bytes, *, is_checked: bool = True) -> Any:
    """Return parsed JSON. Raises: ValueError; if `is_checked`, `NotStorable` for values that no database stores."""
    try:
        found = parse_json(data)
    except NotStorable:
        # Two levels more than a value of a row may have: the check or repair finds that it is too deep.
        found = parse_json(cut_json(data.decode(errors="surrogatepass"), STORED_DEPTH + 2))
    return check_json(found) if is_checked else found
