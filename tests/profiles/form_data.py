"""Form data that a browser without scripts sends when the first button is pressed."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import Any


def form_data_of(page: str) -> dict[str, Any]:
    """Return the values of the first form of a page; several controls of one name give a list."""
    reader = _Reader()
    reader.feed(page.partition('id="content-main"')[2].partition("<form")[2].partition("</form>")[0])
    return {name: values if len(values) > 1 else values[0] for name, values in reader.controls.items()}


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.controls: dict[str, list[str]] = {}
        self._select = ""
        self._area = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = dict(attrs)
        name, value = attributes.get("name") or "", attributes.get("value") or ""
        if tag == "input" and attributes.get("type") != "submit":
            if attributes.get("type") != "checkbox" or "checked" in attributes:
                self._send(name, value.replace("\n", "").replace("\r", ""))
        elif tag == "textarea":
            self._area = name
            self._send(name, "")
        elif tag == "select":
            self._select = name
        elif tag == "option" and "selected" in attributes:
            self._send(self._select, value)

    def handle_data(self, data: str) -> None:
        if self._area:
            self.controls[self._area][-1] += data

    def handle_endtag(self, tag: str) -> None:
        if tag == "textarea":
            self.controls[self._area] = [
                text.removeprefix("\n").replace("\n", "\r\n") for text in self.controls[self._area]
            ]
            self._area = ""

    def _send(self, name: str, value: str) -> None:
        self.controls.setdefault(name, []).append(value)
