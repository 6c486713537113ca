from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand

from store.index import rebuild


class Command(BaseCommand):
    help = (
        "Makes the keyword index anew where another version built it, and indexes what is not indexed yet. "
        "May be stopped and started again; the gateway may run meanwhile."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--force", action="store_true", help="Begin anew even if the index is of this version.")
        parser.add_argument("--quiet", action="store_true", help="Say nothing where there is nothing to do.")

    def handle(self, *args: Any, force: bool, quiet: bool, **options: Any) -> None:
        if force or rebuild.is_needed():
            rebuild.empty()
        total, done = rebuild.owed(), 0
        for count in rebuild.fill():
            done += count
            total = max(total, done)
            self.stderr.write(f"{done:,} of {total:,} memories ({100 * done // total} %)")
        if done or not quiet:
            self.stdout.write(f"Indexed {done:,} memories." if done else "The index is up to date.")
