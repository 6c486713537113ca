"""Secrets at rest: encrypted under keys derived from `SECRET_KEY`, readable under `SECRET_KEY_FALLBACKS` too."""

from __future__ import annotations

import base64
from functools import lru_cache

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from django.conf import settings


class Undecryptable(Exception):
    """The ciphertext was made under a secret that is no longer known, or is damaged."""


def encrypt(plaintext: str, *, purpose: str) -> str:
    """Fernet text (AES-128-CBC with HMAC-SHA256). `purpose` separates keys: what one use wrote, no other can read."""
    return _box(purpose).encrypt(plaintext.encode()).decode("ascii")


def decrypt(ciphertext: str, *, purpose: str) -> str:
    """Errors: `Undecryptable`."""
    try:
        return _box(purpose).decrypt(ciphertext.encode()).decode()
    except InvalidToken:
        raise Undecryptable(purpose) from None


def _box(purpose: str) -> MultiFernet:
    return _box_of((settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS), purpose)


@lru_cache(maxsize=16)
def _box_of(secrets: tuple[str, ...], purpose: str) -> MultiFernet:
    """The first secret encrypts, every one decrypts."""
    return MultiFernet([Fernet(_derive(secret, purpose)) for secret in secrets])


def _derive(secret: str, purpose: str) -> bytes:
    """RFC 5869: one independent 256-bit key per secret and purpose."""
    kdf = HKDF(algorithm=SHA256(), length=32, salt=None, info=f"memory-gateway {purpose}".encode())
    return base64.urlsafe_b64encode(kdf.derive(secret.encode()))
