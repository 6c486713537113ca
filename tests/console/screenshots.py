"""Pictures of every page, in both languages and themes, wide and narrow.

`python -m tests.console.screenshots FOLDER [PAGE …]`
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from tests.console.pages import pages
from tests.console.panel import NARROW, WIDE, Panel, running_panel

LOOKS = [(lang, theme, size) for lang in ("en", "zh") for theme in ("light", "dark") for size in (WIDE, NARROW)]


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
    with tempfile.TemporaryDirectory() as data, running_panel(Path(data)) as running:
        take(running, Path(sys.argv[1]), sys.argv[2:])
