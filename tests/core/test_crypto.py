from __future__ import annotations

from typing import Any

import pytest

from core import crypto

OLD, NEW = "the old secret of the gateway", "the new secret of the gateway"


@pytest.fixture(autouse=True)
def old_secret(settings: Any) -> None:
    settings.SECRET_KEY, settings.SECRET_KEY_FALLBACKS = OLD, []


def test_what_was_encrypted_is_read_again() -> None:
    assert crypto.decrypt(crypto.encrypt("uk_秘密", purpose="a"), purpose="a") == "uk_秘密"


def test_the_same_text_never_looks_the_same() -> None:
    assert crypto.encrypt("x", purpose="a") != crypto.encrypt("x", purpose="a")


def test_an_old_secret_still_decrypts_as_a_fallback_and_encrypts_no_more(settings: Any) -> None:
    before = crypto.encrypt("x", purpose="a")
    settings.SECRET_KEY, settings.SECRET_KEY_FALLBACKS = NEW, [OLD]
    assert crypto.decrypt(before, purpose="a") == "x"
    after = crypto.encrypt("y", purpose="a")
    settings.SECRET_KEY_FALLBACKS = []
    assert crypto.decrypt(after, purpose="a") == "y"
    with pytest.raises(crypto.Undecryptable):
        crypto.decrypt(before, purpose="a")


@pytest.mark.parametrize("ciphertext", ["", "abc", "gAAAAA==", "é"])
def test_damage_is_told_as_such(ciphertext: str) -> None:
    with pytest.raises(crypto.Undecryptable):
        crypto.decrypt(ciphertext, purpose="a")


def test_one_purpose_cannot_read_another() -> None:
    with pytest.raises(crypto.Undecryptable):
        crypto.decrypt(crypto.encrypt("x", purpose="a"), purpose="b")
