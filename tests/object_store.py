"""An S3 server for tests: moto behind HTTP, and a server that answers wrongly."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any, ClassVar

import boto3

BUCKET = "files"
PREFIX = "gateway"


@contextmanager
def running() -> Iterator[str]:
    """Run an S3 server and yield its address."""
    from moto.server import ThreadedMotoServer  # noqa: PLC0415  every test run imports this module

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    try:
        yield f"http://{host}:{port}"
    finally:
        server.stop()


class Bucket:
    """The bucket of a test, and the keys of its objects."""

    def __init__(self, endpoint: str, settings: Any) -> None:
        self.endpoint, self._settings = endpoint, settings
        self.client = boto3.client("s3", endpoint_url=endpoint)
        self.client.create_bucket(Bucket=BUCKET)
        self.use(endpoint)

    def use(self, endpoint: str) -> None:
        """Let the gateway call this address instead."""
        self._settings.MEMORY_GATEWAY_STORAGE_URL = f"s3://{BUCKET}/{PREFIX}"
        options = {"bucket_name": BUCKET, "location": PREFIX, "endpoint_url": endpoint}
        static = self._settings.STORAGES["staticfiles"]
        default = {"BACKEND": "core.persistence.object_store.ObjectFiles", "OPTIONS": options}
        self._settings.STORAGES = {"default": default, "staticfiles": static}

    def objects(self, *, with_id: bool = False) -> list[str]:
        """Return the keys below the prefix, without the one of the storage id."""
        found = self.client.list_objects_v2(Bucket=BUCKET).get("Contents", ())
        keys = [item["Key"].removeprefix(f"{PREFIX}/") for item in found]
        return [key for key in keys if with_id or key != "storage_id"]

    def remove(self) -> None:
        for key in self.objects(with_id=True):
            self.client.delete_object(Bucket=BUCKET, Key=f"{PREFIX}/{key}")
        self.client.close()


class WrongAnswers(BaseHTTPRequestHandler):
    """Answers all requests in one wrong way: `slow_down`, `drop`, `short`, `corrupt`, or after a second: `late`."""

    kind: ClassVar[str] = "slow_down"
    calls: ClassVar[list[str]] = []

    def _answer(self) -> None:
        self.calls.append(f"{self.command} {self.path}")
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.close_connection = True
        if self.kind == "drop":
            return
        if self.kind == "late":
            time.sleep(1)
        if self.kind == "slow_down":
            body = b"<Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>"
            self._head(503, len(body))
            self.wfile.write(body if self.command != "HEAD" else b"")
            return
        self._head(200, 20)
        if self.command != "HEAD":
            self.wfile.write(b"x" * (10 if self.kind == "short" else 20))

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = _answer  # noqa: N815  the names that http.server calls

    def _head(self, status: int, length: int) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(length))
        self.send_header("Last-Modified", "Tue, 24 Nov 2026 00:00:00 GMT")
        if status == 200:
            self.send_header("x-amz-checksum-crc32", "AAAAAA==")
        self.end_headers()

    def log_message(self, *_arguments: Any) -> None: ...


@contextmanager
def wrong_answers(kind: str) -> Iterator[str]:
    """Run a server that gives wrong answers and yield its address."""
    handler = type("Handler", (WrongAnswers,), {"kind": kind, "calls": []})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
