"""Create demo content."""

from typing import Any

from django.core.management.base import CommandParser

from accounts.audit import Actor
from operations import demo
from operations.commands import Answer, OperationsCommand


class Command(OperationsCommand):
    help = "Create a user with sample data, and print the API key. Can be repeated; nothing is added twice."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--user", metavar="USER_ID", default="demo", help="user ID (default: %(default)s)")

    def run(self, *, user: str, **options: Any) -> Answer:
        memories, user_key = demo.make(user, actor=Actor.command("demo_data"), report=self.report)
        data = {"user_id": user, "user_key": user_key, "memories": memories}
        return Answer(data, f"User {user} has {memories} memories. API key: {user_key}")
