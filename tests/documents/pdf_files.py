"""Small PDFs that tests write: letters at places, in Helvetica or a Japanese font."""

from __future__ import annotations

from collections.abc import Sequence

Letters = Sequence[tuple[float, float, str]]
"""Distances from the left and the bottom of a page in points, and the text there."""


def pdf(*pages: Letters, size: int = 11, spacing: float = 0, annotations: bytes = b"") -> bytes:
    """Return a PDF with one page for each list of texts, each page with these annotations.

    `spacing` is added after each letter, in points.
    """
    objects = [b"<</Type/Catalog/Pages 2 0 R>>", b""]
    fonts = (
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica/Encoding/WinAnsiEncoding>>",
        b"<</Type/Font/Subtype/Type0/BaseFont/HeiseiMin-W3/Encoding/UniJIS-UCS2-H/DescendantFonts[5 0 R]>>",
        (
            b"<</Type/Font/Subtype/CIDFontType0/BaseFont/HeiseiMin-W3/DW 1000/CIDSystemInfo<</Registry(Adobe)"
            b"/Ordering(Japan1)/Supplement 2>>/FontDescriptor<</Type/FontDescriptor/FontName/HeiseiMin-W3/Flags 4"
            b"/FontBBox[-123 -257 1001 910]/ItalicAngle 0/Ascent 709/Descent -241/CapHeight 709/StemV 69>>>>"
        ),
    )
    objects += fonts
    kids = []
    for letters in pages:
        drawn = b"".join(_drawn(x, y, text, size, spacing) for x, y, text in letters)
        objects.append(b"<</Length %d>>stream\n%b\nendstream" % (len(drawn), drawn))
        objects.append(
            b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 595 842]/Resources<</Font<</H 3 0 R/J 4 0 R>>>>/Contents %d 0 R"
            b"/Annots[%b]>>" % (len(objects), annotations)
        )
        kids.append(b"%d 0 R" % len(objects))
    objects[1] = b"<</Type/Pages/Count %d/Kids[%b]>>" % (len(kids), b" ".join(kids))
    data, places = b"%PDF-1.4\n", []
    for number, one in enumerate(objects, 1):
        places.append(len(data))
        data += b"%d 0 obj%b\nendobj\n" % (number, one)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    end = b"trailer<</Size %d/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF" % (len(objects) + 1, len(data))
    return data + b"xref\n0 %d\n0000000000 65535 f \n%b%b" % (len(objects) + 1, table, end)


def _drawn(x: float, y: float, text: str, size: int, spacing: float) -> bytes:
    font, shown = (b"H", b"(%b)" % text.encode("cp1252")) if text.isascii() else (b"J", _hex(text))
    return b"BT %.1f Tc /%b %d Tf %.2f %.2f Td %b Tj ET\n" % (spacing, font, size, x, y, shown)


def _hex(text: str) -> bytes:
    return b"<" + text.encode("utf-16-be").hex().encode() + b">"
