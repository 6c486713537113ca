"""`manage.py demo_data`: a user with something to look at."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from django.core.management.base import CommandParser

from operations.commands import Answer, LifecycleCommand
from operations.demo import make


class Command(LifecycleCommand):
    help = "Fill a user with a few conversations, files and notes to look at, and print the key. Again adds nothing."

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("--user", metavar="USER_ID", default="demo", help="who (demo)")

    def run(self, *, user: str, **options: Any) -> Answer:
        demo = make(user, report=self.report, stop=self.stop)
        return Answer(asdict(demo), f"{demo.user_id} has {demo.memories} memories and the key {demo.user_key}")
