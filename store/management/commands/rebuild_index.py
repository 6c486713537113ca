from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand

from store.index import rebuild, words


class Command(BaseCommand):
    help = (
        "Rebuild the keyword index if another version built it, write pages of another layout again, and index memories"
        " pending there or in the word index. Can be stopped and started again. The gateway can keep running."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--force", action="store_true", help="rebuild even if this version built the index")
        parser.add_argument("--quiet", action="store_true", help="print nothing if there is nothing to do")

    def handle(self, *args: Any, force: bool, quiet: bool, **options: Any) -> None:
        if force or rebuild.is_needed():
            rebuild.empty()
        if updated := rebuild.update_pages():
            self.stderr.write(f"pages: {updated:,} users and scopes were written again")
        steps = (("memories", rebuild.pending_count, rebuild.fill), ("words", words.pending_count, rebuild.fill_words))
        indexed = 0
        for name, pending_count, fill in steps:
            total, done = pending_count(), 0
            for count in fill():
                done += count
                total = max(total, done)
                self.stderr.write(f"{name}: {done:,} of {total:,} memories ({100 * done // total} %)")
            indexed = max(indexed, done)
        if indexed or not quiet:
            self.stdout.write(f"Indexed {indexed:,} memories." if indexed else "The index is up to date.")
