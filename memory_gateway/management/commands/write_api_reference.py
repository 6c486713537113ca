from __future__ import annotations

from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandParser
from drf_spectacular.generators import SchemaGenerator

from memory_gateway.api_reference import render

REFERENCE = Path("skill/memory-gateway-agent/references/api.md")


class Command(BaseCommand):
    help = f"Writes the REST API's reference ({REFERENCE}) from the OpenAPI document"

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--output", type=Path, default=settings.BASE_DIR / REFERENCE, help="another file (default: %(default)s)"
        )

    def handle(self, *args: Any, output: Path, **options: Any) -> None:
        output.write_text(current_reference(), encoding="utf-8")
        self.stdout.write(f"{output} is written.")


def current_reference() -> str:
    """Return the page generated from the current code."""
    return render(SchemaGenerator().get_schema(request=None, public=True))  # type: ignore[no-untyped-call]
