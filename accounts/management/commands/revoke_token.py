from typing import Any
from uuid import UUID

from django.core.management.base import BaseCommand, CommandError, CommandParser

from accounts import tokens
from accounts.audit import Actor
from core.errors import GatewayError


class Command(BaseCommand):
    help = "Revoke an OpenClaw token. Its connections close within a minute."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("token_id", type=UUID, help="token ID, as printed by issue_token and shown in the panel")

    def handle(self, *args: Any, token_id: UUID, **options: Any) -> None:
        try:
            token = tokens.revoke(token_id, actor=Actor.command("revoke_token"))
        except GatewayError as error:
            raise CommandError(error.detail, returncode=2) from None
        self.stdout.write(f"Revoked {token} of {token.holder}.")
