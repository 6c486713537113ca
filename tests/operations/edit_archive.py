"""Modify archives, with or without updating the manifest."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import tarfile
from pathlib import Path
from typing import Any

MANIFEST, DIGEST = "manifest.json", "manifest.sha256"
SPECIAL = {
    "symlink": tarfile.SYMTYPE,
    "hardlink": tarfile.LNKTYPE,
    "fifo": tarfile.FIFOTYPE,
    "device": tarfile.CHRTYPE,
    "folder": tarfile.DIRTYPE,
}


def contents(path: Path) -> dict[str, bytes]:
    with tarfile.open(path) as tar:
        return {info.name: (tar.extractfile(info) or io.BytesIO()).read() for info in tar}


def content(path: Path, name: str) -> bytes:
    return contents(path)[name]


def write(path: Path, files: dict[str, bytes], *, in_manifest: bool = True) -> None:
    """Write an archive of the files; with `in_manifest`, update the manifest and its digest."""
    manifest = json.loads(files.pop(MANIFEST))
    digest = files.pop(DIGEST)
    if in_manifest:
        manifest["files"] = {
            name: {"size": len(data), "sha256": hashlib.sha256(data).hexdigest()} for name, data in files.items()
        }
    data = json.dumps(manifest, ensure_ascii=False, indent=1, sort_keys=True).encode()
    digest = hashlib.sha256(data).hexdigest().encode() if in_manifest else digest
    with tarfile.open(path, "w") as tar:
        for name, content in {**files, MANIFEST: data, DIGEST: digest}.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))


def add(path: Path, name: str, data: bytes, *, in_manifest: bool = True) -> None:
    write(path, {**contents(path), name: data}, in_manifest=in_manifest)


def add_special(path: Path, kind: str) -> None:
    with tarfile.open(path, "a") as tar:
        info = tarfile.TarInfo("users/special")
        info.type, info.linkname = SPECIAL[kind], "/etc/passwd"
        tar.addfile(info)


def change_first_line(path: Path, name: str, change: dict[str, Any]) -> None:
    files = contents(path)
    first, rest = files[name].split(b"\n", 1)
    files[name] = json.dumps({**json.loads(first), **change}).encode() + b"\n" + rest
    write(path, files)


def change_manifest(path: Path, change: dict[str, Any]) -> None:
    """Change fields of the manifest, and update its digest."""
    files = contents(path)
    manifest = {**json.loads(files[MANIFEST]), **change}
    files[MANIFEST] = json.dumps(manifest, ensure_ascii=False, indent=1, sort_keys=True).encode()
    files[DIGEST] = hashlib.sha256(files[MANIFEST]).hexdigest().encode()
    write(path, files, in_manifest=False)


def compress(path: Path) -> None:
    path.write_bytes(gzip.compress(path.read_bytes()))
