"""`manage.py seed_memories`: generate synthetic memories for load tests and demos."""

from __future__ import annotations

import time
from typing import Any

from django.core.management.base import CommandParser

from operations.commands import Answer, LifecycleCommand, whole_number
from operations.synthetic_memories import Plan, make


class Command(LifecycleCommand):
    help = (
        "Make up memories of users many-00000, many-00001 …, to measure or show the gateway with many. "
        "Never in a database that people use: they stay until their users are erased."
    )

    requires_storage = False

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("number", type=whole_number(1, 10**9), help="how many memories")
        parser.add_argument("--users", type=whole_number(1, 99_999), default=100, help="of how many users (100)")
        parser.add_argument(
            "--days", type=whole_number(1, 18_250), default=730, help="within how many days before now (730)"
        )
        parser.add_argument("--seed", type=int, default=0, help="another number makes other texts (0)")
        parser.add_argument(
            "--no-index", action="store_true", help="leave them out of the keyword index: faster, but nothing is found"
        )

    def run(self, *, number: int, users: int, days: int, seed: int, no_index: bool, **options: Any) -> Answer:
        began = time.monotonic()
        plan = Plan(number, users, days=days, seed=seed, is_indexed=not no_index)
        done = make(plan, report=self.report, stop=self.stop)
        seconds = round(time.monotonic() - began, 1)
        data = {"memories": done, "users": users, "seconds": seconds}
        return Answer(data, f"{done:,} memories of {users:,} users in {seconds:,} s.")
