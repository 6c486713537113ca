"""Signatures of the receipts of erasures, which everybody who has the public key can check.

The signature is over the receipt without it, as JSON with sorted keys and without spaces, in UTF-8.
"""

import hashlib
import json
from collections.abc import Collection, Mapping
from typing import Any, Final

from core.crypto import is_signed, sign
from core.crypto import public_keys as keys_of_purpose
from core.errors import InvalidInput
from core.messages import Translatable as _

ALGORITHM: Final = "Ed25519"
_PURPOSE: Final = "erasure receipt"


def signed(receipt: Mapping[str, Any]) -> dict[str, Any]:
    """Return a receipt with its signature."""
    value = sign(_canonical(receipt), purpose=_PURPOSE)
    signature = {"algorithm": ALGORITHM, "public_key": public_keys()[0], "value": value}
    return {**receipt, "signature": signature}


def public_keys() -> list[str]:
    """Return the keys that sign receipts of this gateway: that of the present secret, then those of former ones."""
    return keys_of_purpose(_PURPOSE)


def trace(receipt: Mapping[str, Any]) -> dict[str, str]:
    """Return what the audit trail keeps of a signed receipt: nothing from which the person could be found again."""
    return {"sha256": hashlib.sha256(_canonical(receipt)).hexdigest(), "signature": receipt["signature"]["value"]}


def check(receipt: object, trusted: Collection[str]) -> None:
    """Check that one of the trusted keys signed a receipt. Raises: `InvalidInput`, which says why not."""
    signature = receipt.get("signature") if isinstance(receipt, Mapping) else None
    if not isinstance(receipt, Mapping) or not isinstance(signature, Mapping):
        raise InvalidInput(_("The file is no signed receipt. Give the JSON file as it was downloaded."))
    public_key = signature.get("public_key")
    if public_key not in trusted:
        raise InvalidInput(
            _("Another key signed the receipt. Give the public key of the gateway that made it with --public-key.")
        )
    if not is_signed(_canonical(receipt), str(signature.get("value", "")), public_key=str(public_key)):
        raise InvalidInput(_("The receipt was changed after it was signed. Do not rely on it."))


def _canonical(receipt: Mapping[str, Any]) -> bytes:
    bare = {name: value for name, value in receipt.items() if name != "signature"}
    return json.dumps(bare, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
