"""Documents made to hurt: small to send, large or endless to read. Each says how it hurts."""

from __future__ import annotations

import io
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

from documents import mime_types as mt

Bomb = tuple[str, str, bytes]
"""File name, MIME type, content."""

MIB = 2**20

_W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
_S = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
_R = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_TYPES = "http://schemas.openxmlformats.org/package/2006/content-types"
_RELATIONS = "http://schemas.openxmlformats.org/package/2006/relationships"
_XML = '<?xml version="1.0" encoding="UTF-8"?>'


def bombs() -> dict[str, Bomb]:
    """All of them by name. Making them takes about two seconds."""
    return {name: make() for name, make in MAKERS.items()}


MAKERS: dict[str, Callable[[], Bomb]] = {}


def _bomb(make: Callable[[], Bomb]) -> Callable[[], Bomb]:
    MAKERS[make.__name__] = make
    return make


# --- archives --------------------------------------------------------------------------------------------------------


@dataclass
class Member:
    """A zip entry written byte by byte, so that its headers can lie."""

    name: str
    content: bytes = b""
    packed: bytes | None = None  # already deflated
    size: int | None = None  # what the headers claim
    flags: int = 0
    is_stored: bool = False
    offset: int = field(default=-1, init=False)

    def __post_init__(self) -> None:
        if self.packed is None:
            self.packed = self.content if self.is_stored else deflated(self.content)
            self.size = len(self.content) if self.size is None else self.size

    def header(self, *, is_central: bool) -> bytes:
        name, crc = self.name.encode(), zlib.crc32(self.content)
        method, packed_size = 0 if self.is_stored else 8, len(self.packed or b"")
        common = struct.pack(
            "<HHHHHLLLHH", 20, self.flags, method, 0, 33, crc, packed_size, self.size or 0, len(name), 0
        )
        if is_central:
            return b"PK\x01\x02\x14\x00" + common + struct.pack("<HHHLL", 0, 0, 0, 0, self.offset) + name
        return b"PK\x03\x04" + common + name


def deflated(content: bytes) -> bytes:
    packer = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    return packer.compress(content) + packer.flush()


def deflated_repeats(before: bytes, repeated: bytes, times: int, after: bytes) -> bytes:
    """A deflate stream of gigabytes, without packing gigabytes: one flushed block again and again."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    start = packer.compress(before) + packer.flush(zlib.Z_FULL_FLUSH)
    block = packer.compress(repeated) + packer.flush(zlib.Z_FULL_FLUSH)
    return start + block * times + packer.compress(after) + packer.flush()


def archive(members: Iterable[Member]) -> bytes:
    body, directory, count = bytearray(), bytearray(), 0
    for member in members:
        if member.offset < 0:
            member.offset = len(body)
            body += member.header(is_central=False) + (member.packed or b"")
        directory += member.header(is_central=True)
        count += 1
    end = struct.pack("<4sHHHHLLH", b"PK\x05\x06", 0, 0, count & 0xFFFF, count & 0xFFFF, len(directory), len(body), 0)
    return bytes(body + directory) + end


def docx_members(document: bytes | Member) -> list[Member]:
    types = (
        f'{_XML}<Types xmlns="{_TYPES}"><Default Extension="rels" ContentType="application/vnd.openxmlformats-package.'
        'relationships+xml"/><Default Extension="xml" ContentType="application/xml"/><Override PartName="/word/document'
        f'.xml" ContentType="{mt.DOCX}.main+xml"/></Types>'
    )
    relations = (
        f'{_XML}<Relationships xmlns="{_RELATIONS}"><Relationship Id="r1" Type="{_R}/officeDocument" '
        'Target="word/document.xml"/></Relationships>'
    )
    main = document if isinstance(document, Member) else Member("word/document.xml", document)
    return [Member("[Content_Types].xml", types.encode()), Member("_rels/.rels", relations.encode()), main]


def docx(body: str, *, prolog: str = "") -> bytes:
    document = f"{_XML}{prolog}<w:document {_W}><w:body>{body}</w:body></w:document>"
    return archive(docx_members(document.encode()))


def paragraph(text: str) -> str:
    return f"<w:p><w:r><w:t>{text}</w:t></w:r></w:p>"


def xlsx_members(sheet: str | Member, shared: str = "") -> list[Member]:
    types = (
        f'{_XML}<Types xmlns="{_TYPES}"><Default Extension="rels" ContentType="application/vnd.openxmlformats-package.'
        'relationships+xml"/><Default Extension="xml" ContentType="application/xml"/><Override PartName="/xl/workbook'
        f'.xml" ContentType="{mt.XLSX}.main+xml"/></Types>'
    )
    relations = (
        f'{_XML}<Relationships xmlns="{_RELATIONS}"><Relationship Id="r1" Type="{_R}/officeDocument" '
        'Target="xl/workbook.xml"/></Relationships>'
    )
    parts = (
        f'{_XML}<Relationships xmlns="{_RELATIONS}"><Relationship Id="r1" Type="{_R}/worksheet" Target="worksheets/'
        f'sheet1.xml"/><Relationship Id="r2" Type="{_R}/sharedStrings" Target="sharedStrings.xml"/></Relationships>'
    )
    book = (
        f'{_XML}<workbook {_S} xmlns:r="{_R}"><sheets><sheet name="Sheet" sheetId="1" r:id="r1"/></sheets></workbook>'
    )
    if isinstance(sheet, str):
        xml = f"{_XML}<worksheet {_S}><sheetData>{sheet}</sheetData></worksheet>"
        sheet = Member("xl/worksheets/sheet1.xml", xml.encode())
    strings = f"{_XML}<sst {_S}>{shared}</sst>"
    return [
        Member("[Content_Types].xml", types.encode()),
        Member("_rels/.rels", relations.encode()),
        Member("xl/workbook.xml", book.encode()),
        Member("xl/_rels/workbook.xml.rels", parts.encode()),
        Member("xl/sharedStrings.xml", strings.encode()),
        sheet,
    ]


def odf(mime: str, body: str | bytes, *, packed: bytes | None = None) -> bytes:
    names = "urn:oasis:names:tc:opendocument:xmlns:"
    start = (
        f'{_XML}<office:document-content xmlns:office="{names}office:1.0" xmlns:text="{names}text:1.0" '
        f'xmlns:table="{names}table:1.0" office:version="1.2"><office:body>'
    )
    manifest = (
        f'{_XML}<m:manifest xmlns:m="{names}manifest:1.0"><m:file-entry m:full-path="/" m:media-type="{mime}"/>'
        '<m:file-entry m:full-path="content.xml" m:media-type="text/xml"/></m:manifest>'
    )
    content = Member("content.xml", f"{start}{body!s}</office:body></office:document-content>".encode(), packed)
    return archive(
        [Member("mimetype", mime.encode(), is_stored=True), Member("META-INF/manifest.xml", manifest.encode()), content]
    )


@_bomb
def zip_bomb_docx() -> Bomb:
    """Two gigabytes of one word, and headers that tell the truth."""
    start = f"{_XML}<w:document {_W}><w:body><w:p><w:r><w:t>".encode()
    packed = deflated_repeats(start, b"bomb " * 200_000, 2000, b"</w:t></w:r></w:p></w:body></w:document>")
    member = Member("word/document.xml", packed=packed, size=2_000_000_000)
    return "bomb.docx", mt.DOCX, archive(docx_members(member))


@_bomb
def lying_zip_bomb_docx() -> Bomb:
    """The same, and headers that say ten bytes."""
    start = f"{_XML}<w:document {_W}><w:body><w:p><w:r><w:t>".encode()
    packed = deflated_repeats(start, b"bomb " * 200_000, 2000, b"</w:t></w:r></w:p></w:body></w:document>")
    return "liar.docx", mt.DOCX, archive(docx_members(Member("word/document.xml", packed=packed, size=10)))


@_bomb
def zip_bomb_xlsx() -> Bomb:
    start = f"{_XML}<worksheet {_S}><sheetData>".encode()
    row = b'<row><c t="inlineStr"><is><t>bomb</t></is></c></row>' * 20_000
    packed = deflated_repeats(start, row, 1000, b"</sheetData></worksheet>")
    sheet = Member("xl/worksheets/sheet1.xml", packed=packed, size=len(row) * 1000)
    return "bomb.xlsx", mt.XLSX, archive(xlsx_members(sheet))


@_bomb
def zip_bomb_odt() -> Bomb:
    packed = deflated_repeats(b"<office:document-content>", b"<text:p>bomb</text:p>" * 50_000, 1000, b"")
    return "bomb.odt", mt.ODT, odf(mt.ODT, "", packed=packed)


def epub(page: Member) -> bytes:
    container = (
        f'{_XML}<container version="1.0" xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles><rootfile '
        'full-path="c.opf" media-type="application/oebps-package+xml"/></rootfiles></container>'
    )
    package = (
        f'{_XML}<package xmlns="http://www.idpf.org/2007/opf" version="2.0" unique-identifier="i"><metadata/><manifest>'
        f'<item id="a" href="{page.name}" media-type="application/xhtml+xml"/></manifest><spine><itemref idref="a"/>'
        "</spine></package>"
    )
    members = [
        Member("mimetype", mt.EPUB.encode(), is_stored=True),
        Member("META-INF/container.xml", container.encode()),
        Member("c.opf", package.encode()),
        page,
    ]
    return archive(members)


@_bomb
def zip_bomb_epub() -> Bomb:
    packed = deflated_repeats(b"<html><body>", b"<p>bomb</p>" * 90_000, 1000, b"</body></html>")
    return "bomb.epub", mt.EPUB, epub(Member("a.xhtml", packed=packed, size=100))


@_bomb
def overlapping_members_docx() -> Bomb:
    """A thousand entries that are all the same megabytes."""
    shared = Member("word/a0.xml", b"<a>" + b"x" * 5 * MIB + b"</a>")
    copies = [replace(shared, name=f"word/a{number}.xml", content=b"") for number in range(1, 1000)]
    for copy in copies:
        copy.offset = 0
    return "overlap.docx", mt.DOCX, archive([replace(shared), *docx_members(b"<a/>"), *copies])


@_bomb
def many_members_docx() -> Bomb:
    return "many.docx", mt.DOCX, archive([*docx_members(b"<a/>"), *(Member(f"x/{n}", b"") for n in range(100_000))])


@_bomb
def hostile_names_docx() -> Bomb:
    """A good document among members whose names would write elsewhere, were they ever paths."""
    names = [
        "../../../../var/mg-escaped",
        "/var/mg-escaped",
        "..\\..\\mg-escaped",
        "CON",
        "a" * 60_000,
        "\u202etxt.exe",
    ]
    names += ["word/../../x", "x\x00y", "", ".", "..", "WORD/DOCUMENT.XML", "\U0001f4a3"]
    members = docx_members(f"{_XML}<w:document {_W}><w:body>{paragraph('survivor')}</w:body></w:document>".encode())
    return "names.docx", mt.DOCX, archive([*members, *(Member(name, b"<a/>") for name in names)])


@_bomb
def zip_in_zip_docx() -> Bomb:
    """Twelve archives inside each other, the innermost a bomb."""
    inner = archive([Member("zeros", packed=deflated_repeats(b"", bytes(MIB), 1000, b""), size=1000 * MIB)])
    for depth in range(12):
        inner = archive([*docx_members(f"<a>{depth}</a>".encode()), Member("word/embeddings/inner.docx", inner)])
    return "nested.docx", mt.DOCX, inner


@_bomb
def encrypted_member_docx() -> Bomb:
    members = docx_members(Member("word/document.xml", b"secret", flags=1))
    return "encrypted.docx", mt.DOCX, archive(members)


# --- XML -------------------------------------------------------------------------------------------------------------


@_bomb
def billion_laughs_docx() -> Bomb:
    entities = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 10))
    prolog = f'<!DOCTYPE lolz [<!ENTITY l0 "laugh">{entities}]>'
    return "laughs.docx", mt.DOCX, docx(paragraph("&l9;"), prolog=prolog)


@_bomb
def billion_laughs_utf16_docx() -> Bomb:
    """The same where a search for the bytes of "<!ENTITY" finds nothing."""
    entities = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 10))
    xml = f'<?xml version="1.0" encoding="UTF-16"?><!DOCTYPE a [<!ENTITY l0 "laugh">{entities}]><a>&l9;</a>'
    return "laughs16.docx", mt.DOCX, archive(docx_members(xml.encode("utf-16")))


@_bomb
def billion_laughs_epub() -> Bomb:
    """A page that names a document type, as such pages do, and declares entities, as none needs to."""
    entities = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 10))
    page = f'{_XML}<!DOCTYPE html [<!ENTITY l0 "laugh">{entities}]><html><body><p>&l9;</p></body></html>'
    return "laughs.epub", mt.EPUB, epub(Member("a.xhtml", page.encode()))


@_bomb
def external_entity_docx() -> Bomb:
    prolog = '<!DOCTYPE a [<!ENTITY stolen SYSTEM "file:///etc/passwd">]>'
    return "external.docx", mt.DOCX, docx(paragraph("&stolen;"), prolog=prolog)


@_bomb
def deep_xml_docx() -> Bomb:
    depth = 300_000
    return (
        "deep.docx",
        mt.DOCX,
        docx("<w:tbl><w:tr><w:tc>" * depth + paragraph("deep") + "</w:tc></w:tr></w:tbl>" * depth),
    )


@_bomb
def repeated_cells_ods() -> Bomb:
    """One cell that says it stands a trillion times."""
    cell = '<table:table-cell office:value-type="string" table:number-columns-repeated="1000000"><text:p>b</text:p>'
    row = f'<table:table-row table:number-rows-repeated="1000000">{cell}</table:table-cell></table:table-row>'
    body = f'<office:spreadsheet><table:table table:name="S">{row}</table:table></office:spreadsheet>'
    return "repeated.ods", mt.ODS, odf(mt.ODS, body)


@_bomb
def repeated_spaces_odt() -> Bomb:
    body = '<office:text><text:p>a<text:s text:c="4000000000"/>b</text:p></office:text>'
    return "spaces.odt", mt.ODT, odf(mt.ODT, body)


@_bomb
def shared_string_xlsx() -> Bomb:
    """A hundred thousand cells that show one string of a megabyte."""
    row = '<row><c t="s"><v>0</v></c></row>'
    shared = f"<si><t>{'boom ' * 200_000}</t></si>"
    return "shared.xlsx", mt.XLSX, archive(xlsx_members(row * 100_000, shared))


@_bomb
def far_cell_xlsx() -> Bomb:
    """Two cells at opposite corners of the largest sheet."""
    corner = '<row r="1048576"><c r="XFD1048576" t="inlineStr"><is><t>far</t></is></c></row>'
    near = '<row r="1"><c r="A1" t="inlineStr"><is><t>near</t></is></c></row>'
    return "far.xlsx", mt.XLSX, archive(xlsx_members(near + corner))


# --- HTML, RTF, mail, plain text -------------------------------------------------------------------------------------


@_bomb
def deep_html() -> Bomb:
    return "deep.html", mt.HTML, b"<html><body>" + b"<div>" * 500_000 + b"deep"


@_bomb
def deep_inline_html() -> Bomb:
    return "inline.html", mt.HTML, b"<html><body>" + b"<b><i><a href=x><font>" * 100_000 + b"deep"


@_bomb
def nested_tables_html() -> Bomb:
    return "tables.html", mt.HTML, b"<html><body>" + b"<table><tr><td>x" * 20_000


@_bomb
def wide_cells_html() -> Bomb:
    return "wide.html", mt.HTML, b"<html><table><tr><td colspan=2000000000 rowspan=2000000000>x<td>y</table>"


@_bomb
def unclosed_html() -> Bomb:
    return "unclosed.html", mt.HTML, b"<html><body>" + b"<a " * 1_000_000 + b"<!--" * 100_000 + b"&" * 500_000


@_bomb
def many_attributes_html() -> Bomb:
    return "attributes.html", mt.HTML, b"<html><p " + b" ".join(b"a%d=1" % n for n in range(200_000)) + b">x</p>"


@_bomb
def deep_rtf() -> Bomb:
    return "deep.rtf", mt.RTF, rb"{\rtf1 " + b"{" * 1_000_000 + b"deep" + b"}" * 1_000_001


@_bomb
def binary_rtf() -> Bomb:
    return "binary.rtf", mt.RTF, rb"{\rtf1 \bin999999999999 x \u-99999? {\pict\picw999999999\pich999999999 ff}}"


@_bomb
def deep_mail() -> Bomb:
    parts = (b'Content-Type: multipart/mixed; boundary="b%d"\r\n\r\n--b%d\r\n' % (n, n) for n in range(5_000))
    return "deep.eml", mt.EML, b"From: a@example.org\r\nSubject: deep\r\n" + b"".join(parts) + b"\r\ntext"


@_bomb
def deep_json() -> Bomb:
    return "deep.json", "application/json", b"[" * 2_000_000 + b"]" * 2_000_000


@_bomb
def laughing_svg() -> Bomb:
    entities = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 10))
    svg = f'{_XML}<!DOCTYPE svg [<!ENTITY l0 "ha">{entities}]><svg xmlns="http://www.w3.org/2000/svg">&l9;</svg>'
    return "laughs.svg", mt.SVG, svg.encode()


@_bomb
def one_line_csv() -> Bomb:
    return "line.csv", "text/csv", b"a,b,c," * (20 * MIB // 6)


@_bomb
def utf16_nonsense() -> Bomb:
    return "nonsense.txt", mt.PLAIN, b"\xff\xfe" + b"\x00\xd8a\x00\x00\xdc\xff\xff" * 100_000 + b"\x00"


@_bomb
def combining_marks_txt() -> Bomb:
    return "zalgo.txt", mt.PLAIN, ("a" + "\u0301" * 200_000).encode()


@_bomb
def blank_lines_txt() -> Bomb:
    return "blank.txt", mt.PLAIN, b"a\n \t\n" + b" \n" * 2_000_000 + b"b"


@_bomb
def million_paragraphs_txt() -> Bomb:
    return "paragraphs.txt", mt.PLAIN, b"a\n\n" * 1_600_000


# --- pictures --------------------------------------------------------------------------------------------------------


@_bomb
def gigantic_png() -> Bomb:
    """4 gigapixels in 100 bytes."""

    def chunk(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">L", len(body)) + kind + body + struct.pack(">L", zlib.crc32(kind + body))

    header = struct.pack(">LLBBBBB", 65_535, 65_535, 8, 2, 0, 0, 0)
    body = chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(bytes(1000))) + chunk(b"IEND", b"")
    return "gigantic.png", "image/png", b"\x89PNG\r\n\x1a\n" + body


# --- PDF -------------------------------------------------------------------------------------------------------------


def pdf(objects: list[bytes]) -> bytes:
    """A file of these objects, the first one its catalog."""
    out, offsets = bytearray(b"%PDF-1.5\n"), []
    for number, body in enumerate(objects, 1):
        offsets.append(len(out))
        out += b"%d 0 obj\n%b\nendobj\n" % (number, body)
    table = len(out)
    out += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    out += b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    return bytes(out) + b"trailer<</Size %d/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF\n" % (len(objects) + 1, table)


def stream(content: bytes, entries: bytes = b"") -> bytes:
    return b"<</Length %d%b>>stream\n%b\nendstream" % (len(content), entries, content)


_FONT = b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>"


def one_page(content: bytes, *more: bytes, resources: bytes = b"/Font<</F 3 0 R>>") -> bytes:
    page = b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Resources<<%b>>/Contents 5 0 R>>" % resources
    pages = b"<</Type/Pages/Count 1/Kids[4 0 R]>>"
    return pdf([b"<</Type/Catalog/Pages 2 0 R>>", pages, _FONT, page, content, *more])


def pages_pdf(texts: list[str]) -> bytes:
    """One page for each text."""
    kids = b" ".join(b"%d 0 R" % (4 + 2 * number) for number in range(len(texts)))
    objects = [b"<</Type/Catalog/Pages 2 0 R>>", b"<</Type/Pages/Count %d/Kids[%b]>>" % (len(texts), kids), _FONT]
    for number, text in enumerate(texts):
        page = b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Resources<</Font<</F 3 0 R>>>>/Contents %d 0 R>>"
        objects += [page % (5 + 2 * number), stream(b"BT /F 12 Tf 72 700 Td (%b) Tj ET" % text.encode())]
    return pdf(objects)


@_bomb
def many_pages_pdf() -> Bomb:
    return "pages.pdf", mt.PDF, pages_pdf([f"page {number}" for number in range(3_000)])


@_bomb
def flate_bomb_pdf() -> Bomb:
    """Four gigabytes of drawing instructions."""
    packed = deflated_repeats(b"BT /F 12 Tf ", b"(bomb) Tj " * 100_000, 4000, b"ET")
    zlib_stream = b"\x78\xda" + packed + b"\x00\x00\x00\x01"
    return "flate.pdf", mt.PDF, one_page(stream(zlib_stream, b"/Filter/FlateDecode"))


@_bomb
def twice_packed_pdf() -> Bomb:
    """Sixteen gigabytes packed twice: 16 KB to send."""
    inner = b"\x78\xda" + deflated_repeats(b"BT /F 12 Tf ", b"(bomb) Tj " * 100_000, 16_000, b"ET")
    return "twice.pdf", mt.PDF, one_page(stream(zlib.compress(inner, 9), b"/Filter[/FlateDecode/FlateDecode]"))


@_bomb
def huge_text_pdf() -> Bomb:
    """Two hundred thousand lines on one page."""
    lines = b"".join(b"(line number %d of the page) ' " % number for number in range(200_000))
    packed = zlib.compress(b"BT /F 1 Tf 72 780 Td 0.7 TL " + lines + b"ET")
    return "huge.pdf", mt.PDF, one_page(stream(packed, b"/Filter/FlateDecode"))


@_bomb
def recursive_pages_pdf() -> Bomb:
    pages = b"<</Type/Pages/Count 100000/Kids[2 0 R 2 0 R]/Parent 2 0 R>>"
    return "recursive.pdf", mt.PDF, pdf([b"<</Type/Catalog/Pages 2 0 R>>", pages])


@_bomb
def recursive_form_pdf() -> Bomb:
    """A form that draws itself twice, and so on."""
    form = stream(b"/X Do /X Do", b"/Type/XObject/Subtype/Form/BBox[0 0 9 9]/Resources<</XObject<</X 6 0 R>>>>")
    return "form.pdf", mt.PDF, one_page(stream(b"/X Do /X Do"), form, resources=b"/XObject<</X 6 0 R>>")


@_bomb
def multiplying_forms_pdf() -> Bomb:
    """Thirty forms that each draw the next one ten times: 10^30 words."""
    forms = []
    for number in range(6, 36):
        draws = b"/X Do " * 10 if number < 35 else b"BT /F 12 Tf (bomb) Tj ET"
        entries = b"/Type/XObject/Subtype/Form/BBox[0 0 9 9]/Resources<</Font<</F 3 0 R>>/XObject<</X %d 0 R>>>>"
        forms.append(stream(draws, entries % (number + 1)))
    return "forms.pdf", mt.PDF, one_page(stream(b"/X Do"), *forms, resources=b"/XObject<</X 6 0 R>>")


@_bomb
def self_referring_length_pdf() -> Bomb:
    return "length.pdf", mt.PDF, one_page(b"<</Length 5 0 R/Filter 5 0 R>>stream\nx\nendstream")


@_bomb
def deep_array_pdf() -> Bomb:
    return "deep.pdf", mt.PDF, one_page(stream(b"x"), b"[" * 1_000_000 + b"]" * 1_000_000)


@_bomb
def looping_xref_pdf() -> Bomb:
    content = one_page(stream(b"BT /F 12 Tf (loop) Tj ET"))
    table = content.rindex(b"xref\n0 ")
    return "xref.pdf", mt.PDF, content.replace(b"/Root 1 0 R>>", b"/Root 1 0 R/Prev %d>>" % table)


# --- what is not what it says ----------------------------------------------------------------------------------------


@_bomb
def truncated_docx() -> Bomb:
    whole = io.BytesIO()
    with zipfile.ZipFile(whole, "w") as target:
        for member in docx_members(b"<a/>"):
            target.writestr(member.name, member.content)
    return "cut.docx", mt.DOCX, whole.getvalue()[:-30]
