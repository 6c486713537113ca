from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone

from accounts import services, tokens
from accounts.audit import Actor
from core.errors import GatewayError


class Command(BaseCommand):
    help = "Make a token for OpenClaw clients, of an operator or of one user, and print it: it is shown this once."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("label", help="who or what connects with it")
        holder = parser.add_mutually_exclusive_group(required=True)
        holder.add_argument("--operator", help="an operator's name: the token sees all users")
        holder.add_argument("--user", help="a user id: the token sees this user alone")
        parser.add_argument("--scope", action="append", choices=tokens.SCOPES, help="default: operator.admin")
        parser.add_argument("--days", type=int, help="how long it works; without: for ever")

    def handle(self, *args: Any, label: str, operator: str | None, user: str | None, **options: Any) -> None:
        try:
            issued = tokens.issue(
                label,
                operator=tokens.find_operator(operator) if operator else None,
                user=services.find_user(user) if user else None,
                scopes=options["scope"] or (tokens.ADMIN,),
                expires_at=_expiry(options["days"]),
                actor=Actor.command("issue_token"),
            )
        except GatewayError as error:
            raise CommandError(error.detail, returncode=2) from None
        self.stdout.write(issued.plaintext)
        self.stderr.write(f"revoke it with: manage.py revoke_token {issued.token.pk}")


def _expiry(days: int | None) -> datetime | None:
    return None if days is None else timezone.now() + timedelta(days=min(days, 2 * services.MAX_LIFETIME.days))
