from typing import Any

from django.core.management.base import CommandParser

from operations.commands import Answer
from operations.management.commands import import_from


class Command(import_from.Command):
    help = (
        "Import the LanceDB of the original OpenClaw plugin, by default in ~/.openclaw/memory/lancedb, for one user: "
        "`import_from openclaw`. It needs the extra `lancedb`."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        self.add_options(parser)

    def run(self, *, undo: str | None, apply: bool, **options: Any) -> Answer:
        return super().run(undo=undo, apply=apply, source="openclaw", **options)
