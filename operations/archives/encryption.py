"""Encrypted archives: AES-256-GCM in chunks, so that a part can be read, and nothing of a changed file is.

`docs/operate/backup.md` describes the format. Numbers and a mark of the last chunk in the nonces (the STREAM
construction of Hoang, Reyhanitabar, Rogaway and Vizár) show chunks that were moved, left out or cut off. The salt gives
each file a key, so no nonce is used twice.
"""

import io
import os
import re
import secrets
from pathlib import Path
from typing import IO, Any, Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from core.errors import InvalidInput, NotFound

MAGIC: Final = b"memory-gateway encrypted archive 1\n"
CHUNK_BYTES: Final = 64 * 1024
_SALT_BYTES, _KEY_BYTES, _CHECK_BYTES, _TAG_BYTES = 32, 32, 16, 16
_HEADER_BYTES: Final = len(MAGIC) + _SALT_BYTES + _CHECK_BYTES
_KEY: Final = re.compile(rb"[0-9a-fA-F]{64}")


def read_key(path: Path) -> bytes:
    """Return the key of a key file: 64 hexadecimal digits. Raises: `NotFound`, `InvalidInput`."""
    try:
        with path.open("rb") as file:
            text = file.read(1024).strip()
    except OSError as error:
        raise NotFound(f"The key file {path} cannot be read: {error.strerror}.") from None
    if not _KEY.fullmatch(text):
        raise InvalidInput(f"{path} is no key file. Make one: openssl rand -hex 32 > {path}")
    return bytes.fromhex(text.decode("ascii"))


def is_encrypted(file: IO[bytes]) -> bool:
    """Return True if the file, which is at its beginning and stays there, is encrypted."""
    begins = file.read(len(MAGIC)) == MAGIC
    file.seek(0)
    return begins


class Encrypting:
    """A file for `tarfile` to write to. `finish` writes what is left; without it the file cannot be read."""

    def __init__(self, target: IO[bytes], key: bytes) -> None:
        salt = secrets.token_bytes(_SALT_BYTES)
        self._cipher, check = _derived(key, salt)
        self._target, self._rest, self._chunks, self._bytes = target, bytearray(), 0, 0
        target.write(MAGIC + salt + check)

    def tell(self) -> int:
        return self._bytes

    def write(self, data: bytes) -> int:
        self._rest += data
        self._bytes += len(data)
        while len(self._rest) > CHUNK_BYTES:
            self._write_chunk(is_last=False)
        return len(data)

    def finish(self) -> None:
        self._write_chunk(is_last=True)

    def _write_chunk(self, *, is_last: bool) -> None:
        chunk = bytes(self._rest[:CHUNK_BYTES])
        del self._rest[:CHUNK_BYTES]
        self._target.write(self._cipher.encrypt(_nonce(self._chunks, is_last=is_last), chunk, None))
        self._chunks += 1


class Decrypted(io.RawIOBase):
    """The plaintext of an encrypted file, at any place. `size` is its length.

    Raises: `InvalidInput` for a wrong key and a file that is cut off; also while reading, for a chunk that was changed.
    """

    def __init__(self, path: Path, source: IO[bytes], key: bytes) -> None:
        self._path, self._source = path, source
        header = source.read(_HEADER_BYTES)
        salt, check = header[len(MAGIC) :][:_SALT_BYTES], header[len(MAGIC) + _SALT_BYTES :]
        body = os.fstat(source.fileno()).st_size - _HEADER_BYTES
        if body < _TAG_BYTES:
            raise self._damaged()
        self._cipher, wanted = _derived(key, salt)
        if not secrets.compare_digest(check, wanted):
            raise InvalidInput(f"The key file does not belong to {path}.")
        self._chunks = -(-body // (CHUNK_BYTES + _TAG_BYTES))
        self.size = body - self._chunks * _TAG_BYTES
        self._place, self._number, self._chunk = 0, -1, b""
        self._load(self._chunks - 1)

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._place

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        self._place = offset + {os.SEEK_SET: 0, os.SEEK_CUR: self._place, os.SEEK_END: self.size}[whence]
        return self._place

    def readinto(self, buffer: Any) -> int:
        if self._place >= self.size:
            return 0
        self._load(self._place // CHUNK_BYTES)
        begin = self._place % CHUNK_BYTES
        data = self._chunk[begin : begin + len(buffer)]
        buffer[: len(data)] = data
        self._place += len(data)
        return len(data)

    def _load(self, number: int) -> None:
        if number == self._number:
            return
        self._source.seek(_HEADER_BYTES + number * (CHUNK_BYTES + _TAG_BYTES))
        data = self._source.read(CHUNK_BYTES + _TAG_BYTES)
        try:
            self._chunk = self._cipher.decrypt(_nonce(number, is_last=number == self._chunks - 1), data, None)
        except InvalidTag:
            raise self._damaged() from None
        self._number = number

    def _damaged(self) -> InvalidInput:
        return InvalidInput(f"{self._path} was changed or cut off, so nothing was read from it.")


def _derived(key: bytes, salt: bytes) -> tuple[AESGCM, bytes]:
    """Return the cipher of a file and the check of its key."""
    derived = HKDF(SHA256(), _KEY_BYTES + _CHECK_BYTES, salt, MAGIC).derive(key)
    return AESGCM(derived[:_KEY_BYTES]), derived[_KEY_BYTES:]


def _nonce(number: int, *, is_last: bool) -> bytes:
    return number.to_bytes(11, "big") + bytes([is_last])
