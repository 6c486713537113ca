"""Small office files that tests write: packages with the parts that matter."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping

_W = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
_TYPES = "http://schemas.openxmlformats.org/package/2006/content-types"
_PACKAGE = "http://schemas.openxmlformats.org/package/2006/relationships"
_OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_OPEN = "urn:oasis:names:tc:opendocument:xmlns:"


def package(parts: Mapping[str, str]) -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in parts.items():
            archive.writestr(name, text)
    return data.getvalue()


def with_related(data: bytes, part: str, parts: Mapping[str, tuple[str, str]]) -> bytes:
    """Return a package with more parts, each with its kind and text, to which a part is related."""
    folder, _, name = part.rpartition("/")
    named = f"{folder}/_rels/{name}.rels"
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        found = {one: archive.read(one).decode("latin-1") for one in archive.namelist()}
    more = "".join(
        f'<Relationship Id="more{number}" Type="{_OFFICE}/{kind}" Target="/{target}"/>'
        for number, (target, (kind, _text)) in enumerate(parts.items())
    )
    whole = found.get(named, f'<Relationships xmlns="{_PACKAGE}"></Relationships>')
    found[named] = whole.replace("</Relationships>", f"{more}</Relationships>")
    output = io.BytesIO()
    with zipfile.ZipFile(output, "w", zipfile.ZIP_DEFLATED) as archive:
        for one, content in {**found, **{target: text for target, (_kind, text) in parts.items()}}.items():
            archive.writestr(one, content.encode("latin-1"))
    return output.getvalue()


def _types(parts: Mapping[str, str]) -> str:
    overrides = "".join(f'<Override PartName="/{name}" ContentType="{kind}"/>' for name, kind in parts.items())
    rels = '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
    return f'<Types xmlns="{_TYPES}">{rels}<Default Extension="xml" ContentType="application/xml"/>{overrides}</Types>'


def relations(targets: Mapping[str, str]) -> str:
    """Return relations of the identifiers r1, r2, …; `targets` maps a target to its kind."""
    found = "".join(
        f'<Relationship Id="r{number}" Type="{_OFFICE}/{kind}" Target="{target}"/>'
        for number, (target, kind) in enumerate(targets.items(), 1)
    )
    return f'<Relationships xmlns="{_PACKAGE}">{found}</Relationships>'


def docx(body: str, numbering: str = "", styles: str = "") -> bytes:
    """Return a Word document. The three parts are XML with the prefix `w`, without their root elements."""
    kind = "application/vnd.openxmlformats-officedocument.wordprocessingml"
    names = {"document": "document.main", "numbering": "numbering", "styles": "styles"}
    return package(
        {
            "[Content_Types].xml": _types({f"word/{name}.xml": f"{kind}.{of}+xml" for name, of in names.items()}),
            "_rels/.rels": relations({"word/document.xml": "officeDocument"}),
            "word/_rels/document.xml.rels": relations({"numbering.xml": "numbering", "styles.xml": "styles"}),
            "word/document.xml": f'<w:document xmlns:w="{_W}"><w:body>{body}</w:body></w:document>',
            "word/numbering.xml": f'<w:numbering xmlns:w="{_W}">{numbering}</w:numbering>',
            "word/styles.xml": f'<w:styles xmlns:w="{_W}">{styles}</w:styles>',
        }
    )


def paragraph(text: str, properties: str = "") -> str:
    """Return a paragraph of Word."""
    return f"<w:p><w:pPr>{properties}</w:pPr><w:r><w:t>{text}</w:t></w:r></w:p>"


def levels(*formats: tuple[str, str]) -> str:
    """Return levels of a numbering of Word: format and template of each."""
    return "".join(
        f'<w:lvl w:ilvl="{at}"><w:start w:val="1"/><w:numFmt w:val="{kind}"/><w:lvlText w:val="{text}"/></w:lvl>'
        for at, (kind, text) in enumerate(formats)
    )


def open_document(content: str, styles: str = "", kind: str = "text") -> bytes:
    """Return an OpenDocument file with these automatic styles and this body."""
    names = ("office", "text", "table", "style")
    spaces = " ".join(f'xmlns:{name}="{_OPEN}{name}:1.0"' for name in names)
    mime = f"application/vnd.oasis.opendocument.{kind}"
    manifest = (
        f'<m:manifest xmlns:m="{_OPEN}manifest:1.0"><m:file-entry m:full-path="/" m:media-type="{mime}"/></m:manifest>'
    )
    return package(
        {
            "mimetype": mime,
            "META-INF/manifest.xml": manifest,
            "content.xml": f"<office:document-content {spaces}><office:automatic-styles>{styles}"
            f"</office:automatic-styles><office:body><office:{kind}>{content}</office:{kind}></office:body>"
            "</office:document-content>",
        }
    )


def workbook(sheets: Mapping[str, str], formats: tuple[str, ...] = (), kinds: Mapping[str, str] | None = None) -> bytes:
    """Return a workbook of Excel: the XML of the rows of each sheet; `s="1"` is the first number format."""
    main = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    kind = "application/vnd.openxmlformats-officedocument.spreadsheetml"
    parts = {f"worksheets/sheet{number}.xml": name for number, name in enumerate(sheets, 1)}
    of = {part: (kinds or {}).get(name, "worksheet") for part, name in parts.items()}
    listed = "".join(
        f'<sheet name="{name}" sheetId="{number}" r:id="r{number}"/>' for number, name in enumerate(sheets, 1)
    )
    codes = "".join(f'<numFmt numFmtId="{200 + at}" formatCode="{code}"/>' for at, code in enumerate(formats))
    cells = "".join(f'<xf numFmtId="{200 + at}"/>' for at in range(len(formats)))
    types = {f"xl/{part}": f"{kind}.worksheet+xml" for part in parts}
    return package(
        {
            "[Content_Types].xml": _types(
                {"xl/workbook.xml": f"{kind}.sheet.main+xml", "xl/styles.xml": f"{kind}.styles+xml", **types}
            ),
            "_rels/.rels": relations({"xl/workbook.xml": "officeDocument"}),
            "xl/_rels/workbook.xml.rels": relations({**of, "styles.xml": "styles"}),
            "xl/workbook.xml": f'<workbook xmlns="{main}" xmlns:r="{_OFFICE}"><sheets>{listed}</sheets></workbook>',
            "xl/styles.xml": f'<styleSheet xmlns="{main}"><numFmts>{codes}</numFmts>'
            f'<cellXfs><xf numFmtId="0"/>{cells}</cellXfs></styleSheet>',
            **{
                f"xl/{part}": f'<worksheet xmlns="{main}"><sheetData>{sheets[name]}</sheetData></worksheet>'
                for part, name in parts.items()
            },
        }
    )
