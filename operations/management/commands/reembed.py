from __future__ import annotations

from dataclasses import asdict
from typing import Any

from django.core.management.base import CommandParser

from core.errors import InvalidInput
from operations.commands import Answer, LifecycleCommand
from store.vectors import reembed
from store.vectors.client import client, wanted_model


class Command(LifecycleCommand):
    help = (
        "Makes the vectors of all memories with the model that the settings name, and says before what that takes. "
        "The old vectors serve until the new ones are complete. May be stopped and started again."
    )

    requires_storage = False

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("--plan", action="store_true", help="say what it takes and do nothing")
        parser.add_argument("--price", type=float, default=0.0, help="what a million tokens cost, for the plan")

    def run(self, *, plan: bool, price: float, **options: Any) -> Answer:
        wanted = wanted_model()
        if wanted is None:
            raise InvalidInput("No embedding endpoint is set: MEMORY_GATEWAY_EMBEDDING_BASE_URL names one.")
        planned = reembed.plan(wanted)
        text = _told(planned, price)
        if plan:
            return Answer({**asdict(planned), "cost": planned.cost(price)}, text)
        self.stderr.write(text)
        done = 0
        for count in reembed.run(wanted, client()):
            done += count
            self.report("Vectors", done, max(planned.lacking, done))
            self.stop.check()
        return Answer({"made": done}, f"{done:,} memories have new vectors, which searches use now.")


def _told(planned: reembed.Plan, price: float) -> str:
    cost = f", about {planned.cost(price):,.2f} at {price:g} a million tokens" if price else ""
    return (
        f"{planned.lacking:,} of {planned.memories:,} memories need a vector of {planned.wanted} "
        f"(now: {planned.current or 'none'}): about {planned.tokens:,} tokens in {planned.calls:,} calls{cost}."
    )
