"""Run Python in processes forked from one that has imported the libraries.

The libraries take half of the time that a process needs to start, and the suite starts hundreds. Those of the gateway's
own modules that read settings are imported in each process. This module imports little: the forking process does too.
"""

from __future__ import annotations

import ctypes
import gc
import os
import runpy
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from multiprocessing import get_context
from multiprocessing.context import ForkServerProcess
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent
# `manage.py` sets it too late for a numpy that is imported already.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

HOST_NAME = "TEST_HOST_NAME"
"""The variable of the environment that gives a process its own host name, as on another machine (Linux)."""
_CLONE_NEWUTS, _CLONE_NEWUSER = 0x04000000, 0x10000000

_FORKS = get_context("forkserver")
_LIBRARIES = """
    charset_normalizer cryptography.fernet django.contrib.admin django.db.models django.test
    drf_spectacular environ filetype jinja2 mcp.server.streamable_http_manager numpy orjson prometheus_client psycopg
    pydantic pygments.formatters requests rest_framework snowballstemmer uvicorn.protocols.http.httptools_impl
    uvicorn.protocols.websockets.websockets_sansio_impl whitenoise yaml
"""
_OWN = """
    console.text core.logs core.redaction documents.document documents.reading engines.embedded.extraction_prompts
    engines.embedded.media_models memories.api.schemas.dialects memories.services.hygiene remote.client.client
    remote.client.wire store.filters store.search.question store.text.succession store.text.word_forms store.types
    store.vectors.local_model
"""
_FORKS.set_forkserver_preload([*_LIBRARIES.split(), *_OWN.split(), __name__])


def start(arguments: Sequence[str], env: Mapping[str, str], stdout: Path, stderr: Path) -> ForkServerProcess:
    """Start `python manage.py …` or `python -m module …` in a separate process group.

    It appends its output to the files.
    """
    process = _FORKS.Process(target=_run, args=(list(arguments), dict(env), stdout, stderr))
    process.start()
    return process


def run(
    arguments: Sequence[str], env: Mapping[str, str], *, timeout_seconds: float = 120.0
) -> subprocess.CompletedProcess[str]:
    """Return exit code and output of what `start` starts, as `subprocess.run` would."""
    with tempfile.TemporaryDirectory() as folder:
        stdout, stderr = Path(folder, "stdout"), Path(folder, "stderr")
        process = start(arguments, env, stdout, stderr)
        process.join(timeout_seconds)
        if process.exitcode is None:
            process.kill()
            raise subprocess.TimeoutExpired(list(arguments), timeout_seconds)
        said = [path.read_text(encoding="utf-8") if path.exists() else "" for path in (stdout, stderr)]
        return subprocess.CompletedProcess(list(arguments), process.exitcode, *said)


def _run(arguments: list[str], env: dict[str, str], stdout: Path, stderr: Path) -> None:
    os.setsid()
    gc.freeze()  # the libraries stay: collecting them takes a third of the start
    for number, path in ((1, stdout), (2, stderr)):
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.dup2(file, number)
        os.close(file)
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115 - open until the process ends
    sys.stdout = open(1, "w", encoding="utf-8", closefd=False, buffering=1)  # noqa: SIM115
    sys.stderr = open(2, "w", encoding="utf-8", closefd=False, buffering=1)  # noqa: SIM115
    os.environ.clear()
    os.environ.update(env)
    if name := os.environ.pop(HOST_NAME, ""):
        if ctypes.CDLL(None, use_errno=True).unshare(_CLONE_NEWUTS | (_CLONE_NEWUSER if os.geteuid() else 0)):
            raise OSError(ctypes.get_errno(), "cannot have its own host name")
        socket.sethostname(name)
    os.chdir(PROJECT)
    if arguments[0] == "-m":
        sys.argv = arguments[1:]
        runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
    else:
        sys.argv = arguments
        runpy.run_path(arguments[0], run_name="__main__")
