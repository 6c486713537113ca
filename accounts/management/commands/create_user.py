from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from accounts import services
from accounts.audit import Actor
from core.errors import GatewayError


class Command(BaseCommand):
    help = "Create a user, or find an existing one, and print the API key."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("user_id", help="user ID: 1 to 255 characters")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            issued = services.create_user(options["user_id"], actor=Actor.command("create_user"))
        except GatewayError as error:
            raise CommandError(error.detail, returncode=2) from None
        self.stdout.write(issued.plaintext)
