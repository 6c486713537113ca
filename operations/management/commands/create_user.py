from typing import Any

from django.core.management.base import CommandParser

from accounts import services
from accounts.audit import Actor
from core.times import isoformat
from operations.commands import Answer, OperationsCommand


class Command(OperationsCommand):
    help = "Create a user, or find an existing one, and print the API key."
    requires_storage = False

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("user_id", help="user ID: 1 to 255 characters")

    def run(self, *args: Any, user_id: str, **options: Any) -> Answer:
        issued = services.create_user(user_id, actor=Actor.command("create_user"))
        user = issued.key.user
        data = {"user_id": user.user_id, "user_key": issued.plaintext, "created_at": isoformat(user.created_at)}
        return Answer(data, issued.plaintext)
