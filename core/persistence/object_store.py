"""Files in a bucket, by django-storages and boto3 (the extra `s3`).

An upload is acknowledged after the bucket has the whole object: the object appears at once or not at all.
"""

import contextlib
import io
import logging
import os
import shutil
from collections.abc import Collection, Iterator
from itertools import groupby
from pathlib import Path
from typing import Any, BinaryIO, Final, cast
from urllib.parse import quote

import boto3
from boto3.exceptions import Boto3Error
from boto3.s3.transfer import TransferConfig
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError
from django.conf import settings
from storages.backends.s3 import S3Storage

from core.errors import StorageUnavailable
from core.messages import Translatable as _
from core.persistence.file_keys import FileKey
from core.persistence.files import Folder, StoredFile, create_temporary, raising_no_space, require_free

logger = logging.getLogger("memory_gateway.storage")

AWAY: Final = _("The object store is unavailable. Try again later.")
RETRY_AFTER_SECONDS: Final = 5
_MISSING: Final = {"404", "NoSuchKey", "NotFound"}
_UNREADABLE: Final = _MISSING | {"403", "AccessDenied", "InvalidObjectState", "NoSuchBucket"}
_EXISTS: Final = {"412", "PreconditionFailed", "ConditionalRequestConflict"}
# Parts of 8 MiB, two at a time, bound the memory of an upload.
_TRANSFER: Final = TransferConfig(max_concurrency=2)
_CALLS: Final = Config(connect_timeout=3, read_timeout=20, retries={"mode": "standard", "total_max_attempts": 3})
# The health check has a second in all.
_PROBE: Final = Config(connect_timeout=0.5, read_timeout=0.5, retries={"mode": "standard", "total_max_attempts": 1})


@contextlib.contextmanager
def _translated(missing: Collection[str] = _MISSING) -> Iterator[None]:
    """Raise `FileNotFoundError` for a missing object, `StorageUnavailable` for every other failure of the store."""
    try:
        yield
    except ClientError as error:
        if error.response.get("Error", {}).get("Code") in missing:
            raise FileNotFoundError("no such object") from None
        raise _unavailable(error) from error
    except (BotoCoreError, Boto3Error, OSError) as error:
        if isinstance(error, OSError) and error.filename is not None:
            raise  # of a local file
        raise _unavailable(error) from error


def _unavailable(error: Exception) -> StorageUnavailable:
    logger.warning("The object store failed: %s", error)
    return StorageUnavailable(AWAY, retry_after_seconds=RETRY_AFTER_SECONDS)


class ObjectFiles(S3Storage):  # type: ignore[misc]  # django-storages has no types
    """Implements `core.persistence.files.Files`. Settings of the AWS SDK come from its usual environment variables."""

    def get_default_settings(self) -> dict[str, Any]:
        return {**super().get_default_settings(), "file_overwrite": True, "client_config": _CALLS}

    @property
    def client(self) -> Any:
        return self.bucket.meta.client

    def put(self, temporary: Path, key: FileKey) -> None:
        with _translated():
            self.client.upload_file(str(temporary), self.bucket_name, self._name(key), Config=_TRANSFER)

    def undo_put(self, temporary: Path, key: FileKey) -> None:
        del temporary
        self.remove(key)

    def open_key(self, key: FileKey) -> BinaryIO:
        return cast("BinaryIO", io.BufferedReader(_Object(self, key), 1024 * 1024))

    @contextlib.contextmanager
    def open_whole(self, key: FileKey) -> Iterator[BinaryIO]:
        with self.local_copy(key) as path, path.open("rb") as file:
            yield file

    def exists(self, name: FileKey) -> bool:
        try:
            self.size_of(name)
        except FileNotFoundError:
            return False
        return True

    def size_of(self, key: FileKey) -> int:
        with _translated():
            return int(self.client.head_object(Bucket=self.bucket_name, Key=self._name(key))["ContentLength"])

    def read(self, key: FileKey, first: int, last: int) -> bytes:
        """Return the bytes from `first` to `last`."""
        with _translated():
            answer = self.client.get_object(Bucket=self.bucket_name, Key=self._name(key), Range=f"bytes={first}-{last}")
            return bytes(answer["Body"].read())

    def remove(self, key: FileKey) -> None:
        with _translated():
            self.client.delete_object(Bucket=self.bucket_name, Key=self._name(key))

    def walk(self, prefix: str) -> Iterator[StoredFile]:
        start = f"{self.location}/" if self.location else ""
        with _translated():
            pages = self.client.get_paginator("list_objects_v2").paginate(
                Bucket=self.bucket_name, Prefix=f"{start}{prefix}"
            )
            for page in pages:
                for item in page.get("Contents", ()):
                    key, modified_at = FileKey(item["Key"].removeprefix(start)), item["LastModified"].timestamp()
                    yield StoredFile(key, item["Size"], modified_at)

    def folders(self, prefix: str) -> Iterator[Folder]:
        for folder, found in groupby(self.walk(prefix), key=lambda file: file.key.rpartition("/")[0]):
            yield Folder(f"{folder}/", max(file.modified_at for file in found), has_files=True)

    def move_folder(self, prefix: str, new_prefix: str) -> None:
        for file in self.walk(prefix):
            name = self._name(new_prefix + file.key.removeprefix(prefix))
            with _translated():
                source = {"Bucket": self.bucket_name, "Key": self._name(file.key)}
                self.client.copy_object(Bucket=self.bucket_name, Key=name, CopySource=source)
            self.remove(file.key)

    def remove_folder(self, prefix: str) -> list[int]:
        sizes = []
        for file in self.walk(prefix):
            self.remove(file.key)
            sizes.append(file.size_bytes)
        return sizes

    @contextlib.contextmanager
    def local_copy(self, key: FileKey) -> Iterator[Path]:
        with raising_no_space():
            descriptor, path = create_temporary()
        try:
            try:
                with os.fdopen(descriptor, "wb") as copy, raising_no_space(), _translated():
                    # One call for the whole object: boto3 then verifies its checksum.
                    name = self._name(key)
                    answer = self.client.get_object(Bucket=self.bucket_name, Key=name, ChecksumMode="ENABLED")
                    require_free(answer["ContentLength"])
                    shutil.copyfileobj(answer["Body"], copy)
            except FileNotFoundError:
                path.unlink()
            yield path
        finally:
            path.unlink(missing_ok=True)

    def url(self, name: str, *_arguments: Any, **_named: Any) -> str:
        return f"s3://{self.bucket_name}/{quote(self._name(name))}"

    def place_name(self) -> str:
        return str(settings.MEMORY_GATEWAY_STORAGE_URL)

    def read_small(self, key: FileKey, *, is_quick: bool = False) -> bytes | None:
        try:
            with _translated():
                client = self._prober if is_quick else self.client
                answer = client.get_object(Bucket=self.bucket_name, Key=self._name(key))
                return bytes(answer["Body"].read(100))
        except FileNotFoundError:
            return None

    def write_small(self, key: FileKey, data: bytes, *, replace: bool) -> None:
        condition = {} if replace else {"IfNoneMatch": "*"}
        with _translated():
            try:
                self.client.put_object(Bucket=self.bucket_name, Key=self._name(key), Body=data, **condition)
            except ClientError as error:
                if error.response.get("Error", {}).get("Code") not in _EXISTS:
                    raise

    @property
    def _prober(self) -> Any:
        if "_probe_client" not in self.__dict__:
            self._probe_client = self._create_session().client(
                "s3", region_name=self.region_name, endpoint_url=self.endpoint_url, config=_PROBE
            )
        return self._probe_client

    def _name(self, key: str) -> str:
        return f"{self.location}/{key}" if self.location else key


@contextlib.contextmanager
def opened(bucket: str, key: str) -> Iterator[BinaryIO]:
    """Open an object of another bucket for one pass. Raises: `FileNotFoundError`, `StorageUnavailable`.

    An object that may not be read does not exist for the caller.
    """
    client = boto3.client("s3", config=_CALLS)
    try:
        with _translated(_UNREADABLE), contextlib.closing(client.get_object(Bucket=bucket, Key=key)["Body"]) as body:
            yield body
    finally:
        client.close()


class _Object(io.RawIOBase):
    """An object as a file that can seek. Each read is a call for a range of bytes."""

    def __init__(self, files: ObjectFiles, key: FileKey) -> None:
        self._files, self._key, self._position = files, key, 0
        self._size = files.size_of(key)

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}[whence]
        self._position = max(start + offset, 0)
        return self._position

    def readinto(self, buffer: Any) -> int:
        last = min(self._position + len(buffer), self._size) - 1
        if last < self._position:
            return 0
        data = self._files.read(self._key, self._position, last)
        buffer[: len(data)] = data
        self._position += len(data)
        return len(data)
