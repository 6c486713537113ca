"""Sandboxed process that recognizes the text of page images: `python -m documents.ocr_child JOB`.

The file comes on standard input; JOB is JSON `{"mime": …, "engine": "rapidocr" or tesseract's path, "models": files
or languages, "pages": numbers from 1 or null for all, "parent": pid, "limits": {…}}`. There is one answer per page:
`{"page": n, "of": page count, "lines": [[text, [left, top, right, bottom]], …], "turn": degrees, "score": certainty}`,
boxes as fractions of the page when it is turned upright, against the clock, by 0, 90, 180 or 270 degrees.
"""

import csv
import io
import subprocess  # tesseract, a program that the operator chose
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
from PIL import Image

from documents import mime_types as mt
from documents.decoding import clean
from documents.document import Box
from documents.page_images import MAX_SIDE, frames, pdf_pages
from documents.sandbox import discard_warnings, run

Line = tuple[str, Box]
Scored = tuple[str, Box, float]
"""A line with the certainty of its recognition, from 0 to 1."""
Recognize = Callable[[Image.Image], Iterator[Scored]]

_MIN_CONTRAST: Final = 24
"""The smallest difference of brightness between text and paper, of 255."""
_CERTAIN: Final = 0.9
"""A page with a lower score may be turned."""
_SPANNING: Final = 0.6
_GUTTER: Final = 0.015
_COLUMN_LINES: Final = 3
_COLUMN_WIDTH: Final = 0.2
_LANGUAGES: Final = "eng+chi_sim"


def recognize(
    data: bytes, mime: str, wanted: list[int] | None, engine: str, models: list[str]
) -> Iterator[dict[str, Any]]:
    """Yield the text lines of the wanted pages. Raises: `Refused`."""
    readers = _Readers(engine, models)
    for number, count, image in (pdf_pages if mime == mt.PDF else frames)(data, wanted):
        lines: list[Scored] = []
        turn = 0
        if np.ptp(np.asarray(image.convert("L"))) >= _MIN_CONTRAST:
            turn, lines = _best(image, readers)
            lines = in_reading_order(lines)
        read: list[Line] = [(text, box) for text, box, _score in lines]
        yield {"page": number, "of": count, "lines": read, "turn": turn, "score": _mean(lines)}


class _Readers:
    """The readers of pages: the usual one, then those of other scripts' models. Each is loaded when it is needed."""

    def __init__(self, engine: str, models: list[str]) -> None:
        if engine == "rapidocr":
            self._makers = [partial(_rapidocr, model) for model in (None, *models)]
        else:
            self._makers = [partial(_tesseract, engine, "+".join(models) or _LANGUAGES)]
        self._loaded: list[Recognize] = []

    def __iter__(self) -> Iterator[Recognize]:
        for number, maker in enumerate(self._makers):
            if number == len(self._loaded):
                self._loaded.append(maker())
            yield self._loaded[number]


def _best(image: Image.Image, readers: Iterable[Recognize]) -> tuple[int, list[Scored]]:
    """Return the turn and the lines of a page that are recognized best. A model reads what those before it cannot."""
    best: tuple[int, list[Scored]] = 0, []
    for reader in readers:
        found = _upright(image, reader)
        if (_mean(found[1]) or 0) > (_mean(best[1]) or 0):
            best = found
        if (_mean(best[1]) or 0) >= _CERTAIN:
            break
    return best


def _upright(image: Image.Image, reader: Recognize) -> tuple[int, list[Scored]]:
    """Return the lines of a page and the turn that makes them upright, the one that is recognized best."""
    best = 0, _read(image, reader)
    if not best[1]:
        return best
    score = _mean(best[1]) or 0
    width, height = image.size
    tall = sum(1 for _text, box, _score in best[1] if (box[3] - box[1]) * height > (box[2] - box[0]) * width)
    if score >= _CERTAIN and tall * 2 < len(best[1]):
        return best
    for turn in (90, 180, 270):
        lines = _read(image.rotate(turn, expand=True), reader)
        turned_score = _mean(lines) or 0
        if turned_score > score:
            best, score = (turn, lines), turned_score
    return best


def _read(image: Image.Image, reader: Recognize) -> list[Scored]:
    return [(text, box, score) for found, box, score in reader(image) if (text := clean(found).strip())]


def in_reading_order(lines: list[Scored]) -> list[Scored]:
    """Return lines in the order in which they are read: columns between lines that span the page, from the left."""
    ordered: list[Scored] = []
    section: list[Scored] = []
    for line in lines:
        if line[1][2] - line[1][0] > _SPANNING:
            ordered += [*_columns(section), line]
            section = []
        else:
            section.append(line)
    return ordered + _columns(section)


def _columns(lines: list[Scored]) -> list[Scored]:
    """Return the lines of a part of a page by columns. Short lines on a side are cells of a table, not a column."""
    right = 0.0
    by_left = sorted(lines, key=lambda line: line[1][0])
    for at, (_text, box, _score) in enumerate(by_left):
        sides = by_left[:at], by_left[at:]
        if box[0] - right >= _GUTTER and all(_is_column(side) for side in sides):
            first, rest = ([line for line in lines if line in side] for side in sides)
            return first + _columns(rest)
        right = max(right, box[2])
    return lines


def _is_column(lines: list[Scored]) -> bool:
    widths = sorted(box[2] - box[0] for _text, box, _score in lines)
    return len(lines) >= _COLUMN_LINES and widths[len(widths) // 2] >= _COLUMN_WIDTH


def _mean(lines: list[Scored]) -> float | None:
    """Return the average score of a page's characters; None for a page without text."""
    length = sum(len(text) for text, _box, _score in lines)
    return round(sum(score * len(text) for text, _box, score in lines) / length, 3) if length else None


def _rapidocr(model: str | None) -> Recognize:
    """Return a reader with the model of a script, or with the one that the package has: Latin, Chinese, Japanese."""
    import rapidocr  # noqa: PLC0415  slow to load: not for tesseract or blank pages

    models = Path(rapidocr.__file__).parent / "models"
    # Named files are never downloaded: without them the engine does not start.
    engine = rapidocr.RapidOCR(
        params={
            "Global.log_level": "critical",
            "Global.use_cls": False,
            "Global.max_side_len": MAX_SIDE,
            "EngineConfig.onnxruntime.intra_op_num_threads": 2,
            "EngineConfig.onnxruntime.inter_op_num_threads": 1,
            "Det.model_path": str(next(models.glob("*_det_*.onnx"))),
            "Rec.model_path": model or str(next(models.glob("*_rec_*.onnx"))),
        }
    )

    def read(image: Image.Image) -> Iterator[Scored]:
        found: Any = engine(np.asarray(image)[:, :, ::-1])
        if found.txts is None or found.boxes is None:
            return
        for text, corners, score in zip(found.txts, found.boxes, found.scores, strict=True):
            (left, top), (right, bottom) = corners.min(axis=0), corners.max(axis=0)
            yield text, _fractions(image, left, top, right, bottom), float(score)

    return read


def _tesseract(program: str, languages: str) -> Recognize:
    def read(image: Image.Image) -> Iterator[Scored]:
        picture = io.BytesIO()
        image.save(picture, "PNG")
        output = subprocess.run(  # noqa: S603 - the operator's program, constant arguments
            [program, "stdin", "stdout", "-l", languages, "--dpi", "200", "tsv"],
            input=picture.getvalue(),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            check=True,
        ).stdout.decode()
        lines: dict[tuple[str, ...], list[dict[str, str]]] = {}
        for word in csv.DictReader(io.StringIO(output), delimiter="\t", quoting=csv.QUOTE_NONE):
            if (word["text"] or "").strip():
                lines.setdefault((word["block_num"], word["par_num"], word["line_num"]), []).append(word)
        for words in lines.values():
            boxes = [[int(word[name]) for name in ("left", "top", "width", "height")] for word in words]
            yield (
                " ".join(word["text"] for word in words),
                _fractions(
                    image,
                    min(left for left, _, _, _ in boxes),
                    min(top for _, top, _, _ in boxes),
                    max(left + width for left, _, width, _ in boxes),
                    max(top + height for _, top, _, height in boxes),
                ),
                sum(float(word["conf"]) for word in words) / len(words) / 100,
            )

    return read


def _fractions(image: Image.Image, left: float, top: float, right: float, bottom: float) -> Box:
    width, height = image.size
    return (
        *(round(min(max(float(left / width), 0), 1), 4), round(min(max(float(top / height), 0), 1), 4)),
        *(round(min(max(float(right / width), 0), 1), 4), round(min(max(float(bottom / height), 0), 1), 4)),
    )


if __name__ == "__main__":
    discard_warnings()
    run(lambda data, job, _limits: recognize(data, job["mime"], job["pages"], job["engine"], job["models"]))
