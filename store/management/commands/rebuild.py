from argparse import ArgumentParser
from collections.abc import Iterator
from typing import Any, Final

from django.core.management.base import BaseCommand, CommandError

from store import derived
from store.models import Memory
from store.types import Owner

_NAMES: Final = ", ".join(derived.BY_NAME)


class Command(BaseCommand):
    help = (
        "Make derived stores again from the memories: those that are named; without a name, those that another version "
        "wrote. Then index memories that wait. Can be stopped and started again. The gateway can keep running."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("names", nargs="*", metavar="NAME", help=_NAMES)
        parser.add_argument("--quiet", action="store_true", help="print nothing if there is nothing to do")

    def handle(self, *args: Any, names: list[str], quiet: bool, **options: Any) -> None:
        if unknown := ", ".join(name for name in names if name not in derived.BY_NAME):
            raise CommandError(f"There is no store {unknown}. There are {_NAMES}.")
        chosen = dict.fromkeys(names) if names else _outdated()
        done = {name: self._follow(name, derived.BY_NAME[name].rebuild(owners)) for name, owners in chosen.items()}
        done["keywords"] = done.get("keywords", 0) + self._follow("keywords", derived.fill())
        if any(done.values()) or names:
            self.stdout.write(", ".join(f"{name}: {number:,}" for name, number in done.items() if number) or "0")
        elif not quiet:
            self.stdout.write("Everything is up to date.")

    def _follow(self, name: str, steps: Iterator[int]) -> int:
        """Report each step; return the number of memories."""
        total, done = Memory.objects.count(), 0
        for count in steps:
            done += count
            self.stderr.write(f"{name}: {done:,} of {max(total, done):,} memories")
        return done


def _outdated() -> dict[str, list[Owner]]:
    """Return the stores that another version wrote a part of, with the owners of whom it did."""
    return {store.name: owners for store in derived.STORES if (owners := store.outdated())}
