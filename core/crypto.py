"""Encryption of secrets at rest, and signatures.

Keys are derived from `SECRET_KEY`; `SECRET_KEY_FALLBACKS` are accepted for decryption. Each column of encrypted texts
belongs to a `Purpose`, so that `operations.secret_rotation` finds them all.
"""

import base64
from functools import lru_cache
from typing import Final

from cryptography.exceptions import InvalidSignature
from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from django.conf import settings


class Undecryptable(Exception):
    """The ciphertext is damaged or was encrypted under an unknown secret."""


class Purpose:
    """A purpose of encryption, and the columns `app.Model.field` that hold them. Empty texts stay empty."""

    def __init__(self, name: str, *columns: str) -> None:
        self.name, self.columns = name, columns
        PURPOSES.append(self)

    def encrypt(self, plaintext: str) -> str:
        return encrypt(plaintext, purpose=self.name)

    def decrypt(self, ciphertext: str) -> str:
        """Return the plaintext. Raises: `Undecryptable`."""
        return decrypt(ciphertext, purpose=self.name)


PURPOSES: Final[list[Purpose]] = []
"""Every purpose; each module that encrypts adds its own when it is imported."""


def encrypt(plaintext: str, *, purpose: str) -> str:
    """Return Fernet text (AES-128-CBC with HMAC-SHA256).

    `purpose` separates keys: text encrypted for one purpose cannot be decrypted for another.
    """
    return _cipher(purpose).encrypt(plaintext.encode()).decode("ascii")


def decrypt(ciphertext: str, *, purpose: str) -> str:
    """Return the plaintext.

    Raises: `Undecryptable`.
    """
    try:
        return _cipher(purpose).decrypt(ciphertext.encode()).decode()
    except InvalidToken:
        raise Undecryptable(purpose) from None


def is_current(ciphertext: str, *, purpose: str) -> bool:
    """Return True for a text that the present secret encrypted, False for one of a former secret.

    Raises: `Undecryptable`.
    """
    try:
        _cipher_for((settings.SECRET_KEY,), purpose).decrypt(ciphertext.encode())
    except InvalidToken:
        decrypt(ciphertext, purpose=purpose)
        return False
    return True


def sign(message: bytes, *, purpose: str) -> str:
    """Return the signature of a message by the present secret (Ed25519, RFC 8032), in Base64."""
    return base64.b64encode(_signing_key(settings.SECRET_KEY, purpose).sign(message)).decode()


def is_signed(message: bytes, signature: str, *, public_key: str) -> bool:
    """Return True if a message has this signature by the owner of a public key; both are Base64."""
    try:
        key = Ed25519PublicKey.from_public_bytes(base64.b64decode(public_key, validate=True))
        key.verify(base64.b64decode(signature, validate=True), message)
    except (ValueError, InvalidSignature):
        return False
    return True


def public_keys(purpose: str) -> list[str]:
    """Return the public keys for signatures by the present secret and by former ones, in Base64."""
    keys = [_signing_key(secret, purpose) for secret in (settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS)]
    return [base64.b64encode(key.public_key().public_bytes_raw()).decode() for key in keys]


def _signing_key(secret: str, purpose: str) -> Ed25519PrivateKey:
    return Ed25519PrivateKey.from_private_bytes(base64.urlsafe_b64decode(_derive(secret, purpose)))


def _cipher(purpose: str) -> MultiFernet:
    return _cipher_for((settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS), purpose)


@lru_cache(maxsize=32)
def _cipher_for(secrets: tuple[str, ...], purpose: str) -> MultiFernet:
    """Return a cipher that encrypts with the first secret and decrypts with any."""
    return MultiFernet([Fernet(_derive(secret, purpose)) for secret in secrets])


def _derive(secret: str, purpose: str) -> bytes:
    """Derive an independent 256-bit key per secret and purpose (HKDF, RFC 5869)."""
    kdf = HKDF(algorithm=SHA256(), length=32, salt=None, info=f"memory-gateway {purpose}".encode())
    return base64.urlsafe_b64encode(kdf.derive(secret.encode()))
