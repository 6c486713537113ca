"""Values that the settings mask in texts before they are stored."""

from __future__ import annotations

import hashlib
import random
import uuid
from typing import Any

import pytest

from core.redaction import KINDS, redact
from store.models import Memory
from tests.conftest import Person
from tests.memories.calls import call, upload
from tests.memories.test_hygiene import add, messages, use

CARDS = ["4111 1111 1111 1111", "4111111111111111", "5555-5555-5555-4444", "378282246310005", "3782 822463 10005"]
CARDS += ["6011000990139424", "3530111333300000", "30569309025904", "2223003122003222"]
SECRETS = [
    "sk-proj-abcdefghij0123456789",
    "AKIAIOSFODNN7EXAMPLE",
    "ghp_abcdefghijklmnopqrstuvwxyz0123456789",
    "-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEA\n-----END RSA PRIVATE KEY-----",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJl",
]
NAMED = ["password=hunter2secret", "api_key: 0123456789abcdef", 'PASSWORD = "correct horse"', "密码：abc12345"]
NAMED += ["Bearer abcdefghij0123456789"]
EMAILS = ["ana.lee+x@example.com", "info@mail.example.co.uk"]
PHONES = ["+49 30 1234567", "(030) 123 4567", "555-010-0199", "13800138000", "030/1234567", "+86 138 0013 8000"]


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        *(("cards", value) for value in CARDS),
        *(("secrets", value) for value in SECRETS),
        *(("emails", value) for value in EMAILS),
        *(("phones", value) for value in PHONES),
    ],
)
def test_a_value_is_masked_and_counted(kind: str, value: str) -> None:
    name = kind.removesuffix("s")
    assert redact(f"It is {value}, thanks", {kind}) == (f"It is [redacted: {name}], thanks", {name: 1})
    assert redact(f"（{value}）", {kind})[1] == {name: 1}
    assert redact(f"It is {value}", set(KINDS) - {kind})[1].get(name) is None


@pytest.mark.parametrize("text", NAMED)
def test_the_value_of_a_named_secret_is_masked(text: str) -> None:
    masked, found = redact(f"The {text}.", {"secrets"})
    assert found == {"secret": 1}
    assert "[redacted: secret]" in masked
    for value in ("hunter2", "0123456789", "correct", "abc12345"):
        assert value not in masked


def test_order_numbers_phones_and_hashes_are_no_cards_and_secrets() -> None:
    chosen = random.Random(1)
    texts = []
    for number in range(100):
        digits = "".join(chosen.choices("0123456789", k=16))
        texts += [
            f"Your order number {digits} has shipped",
            f"订单号：{digits}",
            f"Call +49 {chosen.randrange(10**9, 10**10)} today",
            f"The commit is {hashlib.sha1(str(number).encode(), usedforsecurity=False).hexdigest()}",
            f"It has the id {uuid.UUID(int=chosen.getrandbits(128))} and {1781172177000 + number}",
        ]
    assert len(texts) == 500
    assert [text for text in texts if redact(text, {"cards", "secrets"})[1]] == []


def test_long_texts_are_read_in_linear_time() -> None:
    for text in (
        "1 " * 200_000,
        "a@" * 200_000,
        "password" * 50_000,
        "-----BEGIN PRIVATE KEY-----" * 20_000,
        "x" * 400_000,
    ):
        redact(text, KINDS)


@pytest.mark.django_db
def test_nothing_is_masked_by_default(alice: Person) -> None:
    answer = add(alice, messages(f"My card is {CARDS[0]}"))
    assert "redacted" not in answer
    assert Memory.objects.get().text == f"My card is {CARDS[0]}"


@pytest.mark.django_db(transaction=True)
def test_every_entrance_masks(alice: Person, settings: Any, storage: object) -> None:
    settings.MEMORY_GATEWAY_REDACT = frozenset({"cards", "secrets"})
    answer = add(
        alice,
        [
            *messages(f"My card is {CARDS[0]}", f"And {CARDS[1]}, {SECRETS[0]}"),
            {
                "role": "assistant", "sender_id": "helper", "timestamp": 1781172179000,
                "tool_calls": [{"id": "c", "function": {"name": "pay", "arguments": f'{{"card": "{CARDS[1]}"}}'}}],
            },
        ],
    )  # fmt: skip
    assert answer["redacted"] == {"card": 3, "secret": 1}
    assert use(alice, "memory_store", text=f"The card is {CARDS[2]}")["redacted"] == {"card": 1}
    memory_id = use(alice, "memory_store", text="The boat is blue")["id"]
    call(alice, "patch", f"/memories/{memory_id}", override_text=f"The boat costs {CARDS[3]}")
    upload(alice, text=f"The contract names the card {CARDS[4]} for the payment.")
    for memory in Memory.objects.all():
        stored = f"{memory.text} {memory.original_text} {memory.payload}"
        assert not any(value in stored for value in (*CARDS, *SECRETS)), stored
    assert Memory.objects.filter(text__contains="[redacted: card]").count() >= 5
