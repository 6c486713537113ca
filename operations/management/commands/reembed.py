from dataclasses import asdict
from typing import Any

from django.core.management.base import CommandParser

from core.errors import InvalidInput
from operations.commands import Answer, OperationsCommand
from store.vectors import reembed
from store.vectors.client import client, wanted_model


class Command(OperationsCommand):
    help = (
        "Compute the vectors of all memories with the configured model, after printing an estimate. Searches use the "
        "old vectors until the new ones are complete. Can be stopped and started again."
    )
    requires_storage = False

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--plan", action="store_true", help="print the estimate and exit")
        parser.add_argument("--price", type=float, default=0.0, help="price per million tokens, for the estimate")

    def run(self, *, plan: bool, price: float, **options: Any) -> Answer:
        wanted = wanted_model()
        if wanted is None:
            raise InvalidInput("No embedding endpoint is configured. Add embedding=… to MEMORY_GATEWAY_MODELS.")
        planned = reembed.plan(wanted)
        cost = f", cost {planned.cost(price):,.2f} at {price:g} per million tokens" if price else ""
        text = (
            f"{planned.lacking:,} of {planned.memories:,} memories need a vector from {planned.wanted} (current model: "
            f"{planned.current or 'none'}): about {planned.tokens:,} tokens in {planned.calls:,} calls{cost}."
        )
        if plan:
            return Answer({**asdict(planned), "cost": planned.cost(price)}, text)
        self.stderr.write(text)
        done = 0
        for count in reembed.run(wanted, client()):
            done += count
            self.report("Computing vectors", done, max(planned.lacking, done))
        return Answer({"made": done}, f"Computed the vectors of {done:,} memories. Searches now use them.")
