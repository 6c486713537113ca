from dataclasses import asdict
from typing import Any

from accounts.audit import Actor
from operations import secret_rotation
from operations.commands import Answer, OperationsCommand


class Command(OperationsCommand):
    help = (
        "Encrypt again, with MEMORY_GATEWAY_SECRET_KEY, what the secrets in MEMORY_GATEWAY_SECRET_KEY_FALLBACKS "
        "encrypted. Servers with the same settings can keep running. Exit code 1 if something is left."
    )
    requires_storage = False

    def run(self, *args: Any, **options: Any) -> Answer:
        count = secret_rotation.rotate(actor=Actor.command("rotate_secret"), report=self.report)
        left = secret_rotation.left()
        words = f"Encrypted {count:,} values again."
        if left.former:
            words += f" {left.former:,} of a former secret are left: a server with former settings is running."
        if left.undecryptable:
            words += f" {left.undecryptable:,} cannot be decrypted: their secret is missing in the fallbacks."
        return Answer({"rotated": count, "left": asdict(left)}, words, is_ok=left == secret_rotation.Left())
