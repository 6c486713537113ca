"""Screenshots of every page, in both languages and themes, wide and narrow.

`python -m tests.console.screenshots FOLDER [PAGE …]`, and `--docs FOLDER` for the screenshots of the documentation.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

from tests.console.pages import pages
from tests.console.panel import NARROW, WIDE, Panel, running_panel

LOOKS = [(lang, theme, size) for lang in ("en", "zh") for theme in ("light", "dark") for size in (WIDE, NARROW)]

FOR_DOCS = {
    "panel-dashboard": ("dashboard", "en"),
    "panel-memories": ("memories", "en"),
    "panel-memories-zh": ("memories", "zh"),
    "panel-search-lab": ("lab-hidden", "en"),
}


def take_for_docs(panel: Panel, folder: Path) -> None:
    """Write screenshots of the top of those pages that the documentation shows."""
    paths = pages(panel)
    for picture, (name, lang) in FOR_DOCS.items():
        with panel.open(paths[name], lang=lang, size={"width": 1280, "height": 800}) as (page, _observed):
            page.screenshot(path=folder / f"{picture}.png")


def take(panel: Panel, folder: Path, names: list[str]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    chosen = {name: path for name, path in pages(panel).items() if not names or name in names}
    for lang, theme, size in LOOKS:
        with panel.open("", lang=lang, theme=theme, size=size) as (page, _observed):
            for name, path in chosen.items():
                page.goto(panel.address(path))
                picture = folder / f"{name}-{lang}-{theme}-{size['width']}.png"
                page.screenshot(path=picture, full_page=True)
                sys.stdout.write(f"{picture}\n")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as data:
        os.environ.setdefault("TESTS_FOLDER", data)  # as of a run of pytest: the migrated database is kept there
        with running_panel(Path(data)) as running:
            if sys.argv[1] == "--docs":
                take_for_docs(running, Path(sys.argv[2]))
            else:
                take(running, Path(sys.argv[1]), sys.argv[2:])
