"""Draw the plots of the documentation from its tables of results, as SVG."""

import re
from html import escape
from pathlib import Path
from typing import NamedTuple

DOCS = Path(__file__).resolve().parent.parent / "docs"
PAGE = DOCS / "understand" / "benchmarks.md"

WIDTH, LABEL, BAR, GAP, TOP = 760, 320, 20, 8, 40


class Plot(NamedTuple):
    """Bars of one column of the first table below a heading. `target` is a line; more or less of it is better."""

    name: str
    heading: str
    column: int
    title: str
    target: float | None = None


PLOTS = (
    Plot("plot-retrieval", "Retrieval quality", 1, "English R@10 (more is better)", 0.71),
    Plot("plot-engine", "Embedded engine", 3, "Time, × the system compared with (less is better)", 1.0),
)


def draw() -> None:
    """Write every plot into docs/_static."""
    page = PAGE.read_text(encoding="utf-8")
    for plot in PLOTS:
        (DOCS / "_static" / f"{plot.name}.svg").write_text(drawn(plot, page), encoding="utf-8")


def drawn(plot: Plot, page: str) -> str:
    """Return the plot as SVG."""
    bars = values(page, plot.heading, plot.column)
    scale = (WIDTH - LABEL - 70) / max([value for _, value in bars] + [plot.target or 0])
    height = TOP + len(bars) * (BAR + GAP) + GAP
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img"',
        f' font-family="system-ui, sans-serif" font-size="13" aria-label="{escape(plot.title)}">',
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
        f'<text x="{GAP}" y="22" font-weight="600" fill="#111827">{escape(plot.title)}</text>',
    ]
    for number, (label, value) in enumerate(bars):
        y = TOP + number * (BAR + GAP)
        lines += [
            f'<text x="{LABEL - 10}" y="{y + 15}" text-anchor="end" fill="#111827">{escape(label)}</text>',
            f'<rect x="{LABEL}" y="{y}" width="{value * scale:.1f}" height="{BAR}" fill="#0b6b58"/>',
            f'<text x="{LABEL + value * scale + 8:.1f}" y="{y + 15}" fill="#374151">{value:g}</text>',
        ]
    if plot.target is not None:
        x = LABEL + plot.target * scale
        lines.append(f'<path d="M{x:.1f} {TOP - 6} V{height - GAP}" stroke="#b45309" stroke-dasharray="4 3"/>')
    return "\n".join([*lines, "</svg>"]) + "\n"


def values(page: str, heading: str, column: int) -> list[tuple[str, float]]:
    """Return label and number of each row with a number in the column."""
    section = page.split(f"\n## {heading}\n")[1].split("\n## ", maxsplit=1)[0]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in section.splitlines() if line[:1] == "|"]
    found = [(row[0].replace("`", ""), re.match(r"\d+(\.\d+)?", row[column])) for row in rows[2:]]
    return [(label, float(number[0])) for label, number in found if number]
