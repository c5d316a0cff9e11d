"""HTML: the main part of a page without menus, scripts and forms. Markdown and DOCX are read through HTML too."""

import re
from collections.abc import Iterator

from selectolax.lexbor import LexborHTMLParser, LexborNode

from sentloom.data.documents.document import Block, Document, Link, titled

# What is no text of the page, or belongs to the site and not to the page.
DROPPED = (
    "script, style, noscript, template, svg, iframe, object, canvas, form, button, select, nav, aside, footer, dialog, "
    "[hidden], [aria-hidden=true], [role=navigation], [role=search], [role=banner], [role=contentinfo], .headerlink, "
    ".mw-editsection, .navheader, .navfooter, .toc, .sphinxsidebar, .related, .breadcrumb, .breadcrumbs, .navbar"
)
MAIN = ("main", "[role=main]", "article")  # where a page says what its own text is
HEADINGS = {f"h{level}": level for level in range(1, 7)}
BLOCKS = frozenset(  # every other tag, also one that nobody knows, is a part of its line
    "address article aside blockquote body caption center dd details dialog dir div dl dt fieldset figcaption figure "
    "footer form h1 h2 h3 h4 h5 h6 header hgroup hr html li main menu nav ol p pre section summary table tbody tfoot "
    "thead tr ul".split()
)
NAMES = ("id", "name")  # attributes that links lead to
CELLS = ("td", "th")
TEXT, LINK, PREFORMATTED, BREAK = "-text", "a", "pre", "br"
SPACE = re.compile(r"[ \t\r\n\f\v\u00a0\u200b]+")
PILCROW = re.compile(r"\s*[¶#§]\s*$")  # links of a heading to itself


def read_html(text: str) -> Document:
    """Read a page; its title is its only highest heading, or what the browser's tab shows."""
    page = LexborHTMLParser(text)
    title = page.css_first("head title")
    name = SPACE.sub(" ", title.text()).strip() if title else ""
    root = _main(page)
    return titled(name, _blocks(root)) if root else Document(name, ())


def _main(page: LexborHTMLParser) -> LexborNode | None:
    """The node that holds the text of the page, without what belongs to the site."""
    root = page.body or page.root
    for choice in MAIN:
        if len(nodes := page.css(choice)) == 1:
            root = nodes[0]
            break
    for node in root.css(DROPPED) if root else ():
        node.decompose()
    return root


def _blocks(root: LexborNode) -> list[Block]:
    writer = _Writer()
    for node, begins in _walk(root):
        writer.read(node, begins)
    writer.end()
    return writer.blocks


def _walk(root: LexborNode) -> Iterator[tuple[LexborNode, bool]]:
    """Every node below the root twice, as it begins and as it ends; without recursion, since a page may nest deeply."""
    stack = [(root.child, False)]
    while stack:
        node, ends = stack.pop()
        if node is None:
            continue
        yield node, not ends
        if ends:
            stack.append((node.next, False))
        else:
            stack += [(node, True), (node.child, False)]


class _Writer:
    """Collects the text between the borders of blocks."""

    def __init__(self) -> None:
        self.blocks: list[Block] = []
        self._parts: list[str] = []
        self._links: list[Link] = []
        self._anchors: list[str] = []
        self._link_start = self._preformatted = 0

    def read(self, node: LexborNode, begins: bool) -> None:
        """Read the begin or the end of a node."""
        tag = node.tag or ""
        if begins and tag in BLOCKS:
            self._border(tag, begins)
        if begins and tag != TEXT:
            self._anchors += [name for key in NAMES if (name := node.attributes.get(key))]
        if tag == TEXT:
            if begins:
                text = node.text_content or ""
                self._parts.append(text if self._preformatted else SPACE.sub(" ", text))
        elif tag == LINK:
            self._link(node, begins)
        elif tag in CELLS or tag == BREAK:
            if begins and self._parts:
                self._parts.append(" | " if tag in CELLS else "\n" if self._preformatted else " ")
        elif tag in BLOCKS and not begins:
            self._border(tag, begins)

    def _link(self, node: LexborNode, begins: bool) -> None:
        if begins:
            self._link_start = len(self._parts)
        elif target := node.attributes.get("href"):
            text = SPACE.sub(" ", "".join(self._parts[self._link_start :])).strip()
            self._links += [Link(text, target)] if text else []

    def _border(self, tag: str, begins: bool) -> None:
        self.end(0 if begins else HEADINGS.get(tag, 0))
        if tag == PREFORMATTED:
            self._preformatted += 1 if begins else -1

    def end(self, level: int = 0) -> None:
        """End the block; as a heading if it has a level."""
        text = "".join(self._parts)
        text = text.strip("\r\n").rstrip() if self._preformatted else SPACE.sub(" ", text).strip(" |")
        if level:
            text = PILCROW.sub("", text)
        if text.strip():
            self.blocks.append(Block(text, level, 0, tuple(self._links), tuple(self._anchors)))
            self._anchors = []
        self._parts, self._links, self._link_start = [], [], 0
