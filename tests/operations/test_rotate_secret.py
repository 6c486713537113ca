"""`manage.py rotate_secret`: a former secret can be given up."""

from __future__ import annotations

import ast
import io
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import requests
from django.apps import apps
from django.contrib.auth.models import User
from django.core.management import call_command
from django.db import models

from accounts import oidc, second_factor, services
from accounts.audit import Actor
from accounts.models import AuditEvent, OperatorIdentity, Principal, UserKey
from core.crypto import PURPOSES
from operations import secret_rotation
from operations.commands import Stopped
from operations.doctor import Doctor
from resources.models import Resource
from resources.services import claims
from tests.server import RunningServer, running_server
from webhooks.models import Webhook
from webhooks.services import configuration, signing

OLD, NEW = "o" * 30 + "ld secret of the gateway", "n" * 30 + "ew secret of the gateway"
ROOT = Path(__file__).resolve().parents[2]
ACTOR = Actor.command("tests")
SECRET = second_factor.new_secret()
USED_OF_CRYPTO = {"Purpose", "Undecryptable", "PURPOSES", "is_current", "sign", "is_signed", "public_keys"}


@pytest.fixture
def sealed(db: Any, settings: Any) -> dict[str, str]:
    """Encrypt a text in each column with the former secret, and return the plain texts."""
    settings.SECRET_KEY, settings.SECRET_KEY_FALLBACKS = OLD, []
    issued = services.create_user("alice", actor=ACTOR)
    principal = Principal(issued.key.user.pk, "alice", issued.key.pk)
    first = configuration.create(principal, "http://127.0.0.1:9/hook")
    second = configuration.rotate_secret(principal, first.webhook.pk)
    Resource.objects.create(
        user=issued.key.user, session_id="s", filename="f", sealed_ingest_uri=claims.seal("https://example.org/f?sig=1")
    )
    operator = User.objects.create_user("olga", is_staff=True)
    OperatorIdentity.objects.create(
        operator=operator, issuer="i", subject="s", sealed_refresh_token=oidc._REFRESH.encrypt("rt_1")
    )
    second_factor.turn_on(operator, SECRET, 1, actor=ACTOR)
    settings.SECRET_KEY, settings.SECRET_KEY_FALLBACKS = NEW, [OLD]
    return {
        "accounts.UserKey.ciphertext": issued.plaintext,
        "webhooks.Webhook.secret": second.plaintext,
        "webhooks.Webhook.previous_secret": first.plaintext,
        "resources.Resource.sealed_ingest_uri": "https://example.org/f?sig=1",
        "accounts.OperatorIdentity.sealed_refresh_token": "rt_1",
        "accounts.SecondFactor.sealed_secret": SECRET,
    }


def opened() -> dict[str, str]:
    """Decrypt every column with the secrets of the settings."""
    return {
        name: purpose.decrypt(
            apps.get_model(name.rpartition(".")[0]).objects.values_list(name.rpartition(".")[2], flat=True).get()
        )
        for purpose in PURPOSES
        for name in purpose.columns
    }


def run(*arguments: str) -> tuple[dict[str, Any], str, int]:
    output, errors = io.StringIO(), io.StringIO()
    code = 0
    try:
        call_command("rotate_secret", "--json", *arguments, stdout=output, stderr=errors)
    except SystemExit as stop:
        code = int(stop.code or 0)
    return json.loads(output.getvalue()), errors.getvalue(), code


def test_a_former_secret_can_be_given_up(sealed: dict[str, str], settings: Any) -> None:
    assert secret_rotation.left() == secret_rotation.Left(former=6)
    answer, errors, code = run()
    assert (answer, code) == ({"rotated": 6, "left": {"former": 0, "undecryptable": 0}}, 0)
    assert "Encrypting accounts.UserKey.ciphertext: 1 of 1" in errors
    assert AuditEvent.objects.get(action="secret.rotate").detail == {"count": 6}
    settings.SECRET_KEY_FALLBACKS = []
    assert opened() == sealed
    assert services.create_user("alice", actor=ACTOR).plaintext == sealed["accounts.UserKey.ciphertext"]
    webhook = Webhook.objects.get()
    assert [signing.opened(webhook.secret), signing.opened(webhook.previous_secret)] == [
        sealed["webhooks.Webhook.secret"],
        sealed["webhooks.Webhook.previous_secret"],
    ]


def test_what_the_present_secret_encrypted_is_left_alone(sealed: dict[str, str]) -> None:
    run()
    before = list(UserKey.objects.values_list("ciphertext", flat=True))
    assert run()[0]["rotated"] == 0
    assert list(UserKey.objects.values_list("ciphertext", flat=True)) == before


def test_doctor_counts_what_is_left(sealed: dict[str, str], settings: Any) -> None:
    def warnings() -> list[str]:
        return [found.text for found in Doctor().examine() if found.check == "settings" and found.status == "warning"]

    assert any(text.startswith("6 values are encrypted with a former secret") for text in warnings())
    settings.SECRET_KEY_FALLBACKS = []
    assert any(text.startswith("6 values cannot be decrypted") for text in warnings())
    settings.SECRET_KEY_FALLBACKS = [OLD]
    run()
    assert not any("secret" in text for text in warnings())


def test_what_cannot_be_decrypted_is_reported_and_the_rest_encrypted_again(sealed: dict[str, str]) -> None:
    Webhook.objects.update(secret="damaged")
    answer, _errors, code = run()
    assert (answer, code) == ({"rotated": 5, "left": {"former": 0, "undecryptable": 1}}, 1)
    assert Webhook.objects.get().secret == "damaged"


def test_a_run_that_is_stopped_is_continued(sealed: dict[str, str], settings: Any, monkeypatch: Any) -> None:
    for number in range(9):
        settings.SECRET_KEY, settings.SECRET_KEY_FALLBACKS = OLD, []
        services.create_user(f"user-{number}", actor=ACTOR)
    settings.SECRET_KEY, settings.SECRET_KEY_FALLBACKS = NEW, [OLD]
    monkeypatch.setattr(secret_rotation, "BATCH", 3)

    def stop(step: str, done: int, total: int) -> None:
        if done == 6:
            raise Stopped

    with pytest.raises(Stopped):
        secret_rotation.rotate(actor=ACTOR, report=stop)
    assert 0 < secret_rotation.left().former < 14
    secret_rotation.rotate(actor=ACTOR)
    assert secret_rotation.left() == secret_rotation.Left()


def test_a_value_that_changes_meanwhile_is_not_overwritten(sealed: dict[str, str], monkeypatch: Any) -> None:
    newer = signing.sealed(signing.new_secret())
    encrypt: Callable[..., str] = signing._PURPOSE.encrypt

    def overtaken(plaintext: str) -> str:
        Webhook.objects.update(secret=newer, previous_secret="")
        return encrypt(plaintext)

    monkeypatch.setattr(signing._PURPOSE, "encrypt", overtaken)
    secret_rotation.rotate(actor=ACTOR)
    assert Webhook.objects.values_list("secret", "previous_secret").get() == (newer, "")


# --- the registry


def test_every_column_is_registered() -> None:
    assert set(secret_rotation.columns()) == {
        f"{model._meta.label}.{field.name}"
        for model in apps.get_models()
        for field in model._meta.get_fields()
        if isinstance(field, models.TextField | models.CharField)
        and ("sealed" in field.name or "ciphertext" in field.name or field.name.endswith("secret"))
    }


def test_nothing_is_encrypted_beside_the_registry() -> None:
    """Modules get a `Purpose` from `core.crypto`, with columns, and never the functions or the library."""
    made = []
    for path in ROOT.rglob("*.py"):
        parts = path.relative_to(ROOT).parts
        if parts[0] in {"tests", "clients", "benchmarks", "build", "core"} or parts[0].startswith("."):
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module == "core.crypto":
                assert {alias.name for alias in node.names} <= USED_OF_CRYPTO, path
            if isinstance(node, ast.ImportFrom) and node.module == "core":
                assert "crypto" not in {alias.name for alias in node.names}, path
            if isinstance(node, ast.ImportFrom | ast.Import) and "cryptography" in ast.unparse(node):
                # Unfinished readings, with a key of this process; archives, with one that the operator keeps.
                assert path.name in {"ocr.py", "encryption.py"}, path
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "Purpose":
                made.append([ast.literal_eval(argument) for argument in node.args])
    assert sorted(made) == sorted([purpose.name, *purpose.columns] for purpose in PURPOSES)
    assert all(len(arguments) > 1 for arguments in made)


# --- processes

_CREATE = """
from accounts import services
from accounts.audit import Actor

user = services.create_user("alice", actor=Actor.command("tests")).key.user
for number in range(4000):
    services._save_key(user, f"uk_{number:043}", services.Grant(), actor=Actor.command("tests"))
"""


def _post_users(server: RunningServer, user_id: str) -> str:
    return str(requests.post(f"{server.url}/users", json={"user_id": user_id}, timeout=30).json()["user_key"])


def test_a_run_that_is_killed_is_continued_beside_a_server(tmp_path: Path) -> None:
    with running_server(tmp_path, MEMORY_GATEWAY_SECRET_KEY=OLD) as server:
        assert server.manage("shell", "--no-imports", "--command", _CREATE).returncode == 0
        key = _post_users(server, "alice")
        server.kill()
        server.env |= {"MEMORY_GATEWAY_SECRET_KEY": NEW, "MEMORY_GATEWAY_SECRET_KEY_FALLBACKS": OLD}
        server.start()
        command = [sys.executable, str(ROOT / "manage.py"), "rotate_secret"]
        with subprocess.Popen(command, env={**os.environ, **server.env}, stderr=subprocess.PIPE, text=True) as process:
            assert process.stderr is not None
            assert "Encrypting" in process.stderr.readline()
            process.send_signal(signal.SIGKILL)
        assert _post_users(server, "alice") == key
        done = server.manage("rotate_secret", "--json")
        answer = json.loads(done.stdout)
        assert (done.returncode, answer["left"]) == (0, {"former": 0, "undecryptable": 0})
        assert answer["rotated"] > 0
        server.kill()
        server.env["MEMORY_GATEWAY_SECRET_KEY_FALLBACKS"] = ""
        server.start()
        assert _post_users(server, "alice") == key
