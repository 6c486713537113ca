from datetime import datetime, timedelta
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone

from accounts import services, tokens
from accounts.audit import Actor
from core.errors import GatewayError
from core.messages import MANAGE


class Command(BaseCommand):
    help = "Issue an OpenClaw token for an operator or a user, and print it. The token is shown only once."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("label", help="name of the client that uses the token")
        holder = parser.add_mutually_exclusive_group(required=True)
        holder.add_argument("--operator", help="operator's user name; the token can access all users")
        holder.add_argument("--user", help="user ID; the token can access only this user")
        parser.add_argument(
            "--scope", action="append", choices=tokens.SCOPES, help="token scope, repeatable (default: operator.admin)"
        )
        parser.add_argument("--days", type=int, help="days until the token expires (default: never)")

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
        self.stderr.write(f"To revoke the token, run: {MANAGE} revoke_token {issued.token.pk}")


def _expiry(days: int | None) -> datetime | None:
    if days is None:
        return None
    if not 1 <= days <= services.MAX_LIFETIME.days:
        raise CommandError(f"--days must be 1 to {services.MAX_LIFETIME.days}.", returncode=2)
    return timezone.now() + timedelta(days=days)
