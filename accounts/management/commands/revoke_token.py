from __future__ import annotations

from typing import Any
from uuid import UUID

from django.core.management.base import BaseCommand, CommandError, CommandParser

from accounts import tokens
from accounts.audit import Actor
from core.errors import GatewayError


class Command(BaseCommand):
    help = "Revoke a token for OpenClaw clients. Connected clients are disconnected within a minute."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("token_id", type=UUID, help="as issue_token and the panel name it")

    def handle(self, *args: Any, token_id: UUID, **options: Any) -> None:
        try:
            token = tokens.revoke(token_id, actor=Actor.command("revoke_token"))
        except GatewayError as error:
            raise CommandError(error.detail, returncode=2) from None
        self.stdout.write(f"{token} of {token.holder} works no more.")
