from __future__ import annotations

from typing import Any

import pytest

from core import crypto

OLD, NEW = "the old secret of the gateway", "the new secret of the gateway"


@pytest.fixture(autouse=True)
def old_secret(settings: Any) -> None:
    settings.SECRET_KEY, settings.SECRET_KEY_FALLBACKS = OLD, []


def test_decrypt_returns_the_encrypted_text() -> None:
    assert crypto.decrypt(crypto.encrypt("uk_秘密", purpose="a"), purpose="a") == "uk_秘密"


def test_encrypting_a_text_twice_gives_different_ciphertexts() -> None:
    assert crypto.encrypt("x", purpose="a") != crypto.encrypt("x", purpose="a")


def test_a_fallback_secret_decrypts_but_does_not_encrypt(settings: Any) -> None:
    before = crypto.encrypt("x", purpose="a")
    settings.SECRET_KEY, settings.SECRET_KEY_FALLBACKS = NEW, [OLD]
    assert crypto.decrypt(before, purpose="a") == "x"
    after = crypto.encrypt("y", purpose="a")
    settings.SECRET_KEY_FALLBACKS = []
    assert crypto.decrypt(after, purpose="a") == "y"
    with pytest.raises(crypto.Undecryptable):
        crypto.decrypt(before, purpose="a")


@pytest.mark.parametrize("ciphertext", ["", "abc", "gAAAAA==", "é"])
def test_a_damaged_ciphertext_is_undecryptable(ciphertext: str) -> None:
    with pytest.raises(crypto.Undecryptable):
        crypto.decrypt(ciphertext, purpose="a")


def test_a_ciphertext_of_another_purpose_is_undecryptable() -> None:
    with pytest.raises(crypto.Undecryptable):
        crypto.decrypt(crypto.encrypt("x", purpose="a"), purpose="b")
