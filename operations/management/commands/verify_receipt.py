import json
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError, CommandParser

from core.errors import InvalidInput
from operations import receipts
from operations.commands import Answer, OperationsCommand


class Command(OperationsCommand):
    help = (
        "Check the signature of an erasure receipt, without the database. Without a file, print the public key with "
        "which others can check receipts of this gateway. Exit code 1 for a receipt that is not genuine."
    )
    requires_system_checks = ()
    requires_storage = False

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", nargs="?", type=Path, help="the receipt, a JSON file")
        parser.add_argument("--public-key", metavar="KEY", help="the key of another gateway that made the receipt")

    def run(self, *args: Any, file: Path | None, public_key: str | None, **options: Any) -> Answer:
        trusted = [public_key] if public_key else receipts.public_keys()
        if file is None:
            return Answer({"public_key": trusted[0]}, trusted[0])
        try:
            receipt = json.loads(file.read_bytes())
        except (OSError, ValueError) as error:
            raise CommandError(f"{file} cannot be read as JSON: {error}") from None
        try:
            receipts.check(receipt, trusted)
        except InvalidInput as error:
            return Answer({"is_genuine": False, "reason": str(error.detail)}, str(error.detail), is_ok=False)
        text = f"Genuine: {receipt['receipt_id']} of {receipt['user_id']}, erased at {receipt['erased_at']}."
        return Answer({"is_genuine": True, "receipt_id": receipt["receipt_id"]}, text)
