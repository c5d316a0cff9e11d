"""Small PDF, DOCX and XLSX files, written part by part as their formats say."""

import zipfile
from pathlib import Path

TYPES = "http://schemas.openxmlformats.org/package/2006/content-types"
LINKS = "http://schemas.openxmlformats.org/package/2006/relationships"
OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
SHEETS = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"


def package(path: Path, main: str, parts: dict[str, str]) -> Path:
    """A zip file with the parts that every Office file has."""
    kinds = (("rels", "application/vnd.openxmlformats-package.relationships+xml"), ("xml", "application/xml"))
    types = "".join(f'<Default Extension="{ending}" ContentType="{kind}"/>' for ending, kind in kinds)
    first = f'<Relationship Id="rId1" Type="{OFFICE}/officeDocument" Target="{main}"/>'
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("[Content_Types].xml", f'<Types xmlns="{TYPES}">{types}</Types>')
        file.writestr("_rels/.rels", f'<Relationships xmlns="{LINKS}">{first}</Relationships>')
        for name, content in parts.items():
            file.writestr(name, content)
    return path


def docx(path: Path, paragraphs: list[tuple[str, str]]) -> Path:
    """A document of (style, text); the style "" is a plain paragraph."""
    styles = {style for style, _ in paragraphs if style}
    named = "".join(
        f'<w:style w:type="paragraph" w:styleId="{style.replace(" ", "")}"><w:name w:val="{style}"/></w:style>'
        for style in styles
    )

    def paragraph(style: str, text: str) -> str:
        own = f'<w:pPr><w:pStyle w:val="{style.replace(" ", "")}"/></w:pPr>' if style else ""
        return f"<w:p>{own}<w:r><w:t>{text}</w:t></w:r></w:p>"

    body = "".join(paragraph(style, text) for style, text in paragraphs)
    relation = f'<Relationship Id="rId1" Type="{OFFICE}/styles" Target="styles.xml"/>'
    parts = {
        "word/document.xml": f'<w:document xmlns:w="{WORD}"><w:body>{body}</w:body></w:document>',
        "word/styles.xml": f'<w:styles xmlns:w="{WORD}">{named}</w:styles>',
        "word/_rels/document.xml.rels": f'<Relationships xmlns="{LINKS}">{relation}</Relationships>',
    }
    return package(path, "word/document.xml", parts)


def xlsx(path: Path, **sheets: list[list[object]]) -> Path:
    """A workbook; a cell "=FORMULA|VALUE" is a formula and the value that was last computed."""

    def cell(value: object, name: str) -> str:
        if isinstance(value, str) and value.startswith("="):
            formula, _, shown = value[1:].partition("|")
            return f'<c r="{name}" t="str"><f>{formula}</f><v>{shown}</v></c>'
        if isinstance(value, str):
            return f'<c r="{name}" t="inlineStr"><is><t>{value}</t></is></c>'
        return f'<c r="{name}"><v>{value}</v></c>'

    def sheet(rows: list[list[object]]) -> str:
        lines = [
            "".join(cell(value, f"{chr(65 + at)}{number}") for at, value in enumerate(row) if value != "")
            for number, row in enumerate(rows, 1)
        ]
        body = "".join(f'<row r="{number}">{line}</row>' for number, line in enumerate(lines, 1) if line)
        return f'<worksheet xmlns="{SHEETS}"><sheetData>{body}</sheetData></worksheet>'

    numbers = range(1, len(sheets) + 1)
    listed = "".join(
        f'<sheet name="{name}" sheetId="{n}" r:id="rId{n}"/>' for n, name in zip(numbers, sheets, strict=True)
    )
    book = f'<workbook xmlns="{SHEETS}" xmlns:r="{OFFICE}"><sheets>{listed}</sheets></workbook>'
    links = "".join(
        f'<Relationship Id="rId{n}" Type="{OFFICE}/worksheet" Target="worksheets/sheet{n}.xml"/>' for n in numbers
    )
    parts = {
        "xl/workbook.xml": book,
        "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{LINKS}">{links}</Relationships>',
    }
    parts |= {f"xl/worksheets/sheet{n}.xml": sheet(rows) for n, rows in zip(numbers, sheets.values(), strict=True)}
    return package(path, "xl/workbook.xml", parts)


def pdf(path: Path, pages: list[list[tuple[int, str]]], title: str = "") -> Path:
    """A document whose pages are lines of (size of the letters, text)."""
    objects = ["<< /Type /Catalog /Pages 2 0 R >>", ""]
    objects.append("<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>")
    objects.append(f"<< /Title ({title}) >>")
    kids = []
    for lines in pages:
        height, drawn = 780, []
        for size, text in lines:
            drawn.append(f"BT /F1 {size} Tf 50 {height} Td ({text}) Tj ET")
            height -= 2 * size
        stream = "\n".join(drawn)
        objects.append(f"<< /Length {len(stream)} >>\nstream\n{stream}\nendstream")
        resources = "<< /Font << /F1 3 0 R >> >>"
        content = len(objects)
        objects.append(
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 600 800] /Resources {resources} /Contents {content} 0 R >>"
        )
        kids.append(f"{len(objects)} 0 R")
    objects[1] = f"<< /Type /Pages /Kids [{' '.join(kids)}] /Count {len(kids)} >>"
    out, places = "%PDF-1.4\n", []
    for number, content in enumerate(objects, 1):
        places.append(len(out))
        out += f"{number} 0 obj\n{content}\nendobj\n"
    start = len(out)
    table = "".join(f"{place:010} 00000 n \n" for place in places)
    size = len(objects) + 1
    out += f"xref\n0 {size}\n0000000000 65535 f \n{table}"
    out += f"trailer\n<< /Size {size} /Root 1 0 R /Info 4 0 R >>\nstartxref\n{start}\n%%EOF\n"
    path.write_bytes(out.encode("latin-1"))
    return path
