"""Extract prose from a docstring: its paragraphs without markup, split into sentences.

Docstrings use reStructuredText, numpydoc, Google style, Markdown or no markup. One pass over the lines keeps
paragraphs, list items and admonitions, and leaves out everything else: parameter lists, code, tables, headings.
"""

import inspect
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

MIN_WORDS, MAX_WORDS = 4, 60
MIN_SUMMARY_WORDS = 3
MIN_LETTERS = 0.85  # share of letters and spaces in a sentence
MAX_CAPITALS = 0.5  # share of capitals among its letters, to exclude licences
NARROW = 45  # a line break is deliberate if the next word had fit within this width

# Sections without prose, in numpydoc ("Parameters", underlined) and in Google style ("Args:").
LIST_SECTION = re.compile(
    r"((keyword|other|call) )?(args|arguments|param(eter)?s?)|kwargs|inputs?|attributes|methods|properties|fields|"
    r"members|returns?( value)?|yields?|receives|outputs?|raises?|exceptions|warns|references?|citations|see also|"
    r"((sample|example) )?usage|shapes?|syntax|signature|todo|credits|authors?|copyright|license",
    re.IGNORECASE,
)
PROSE_DIRECTIVES = frozenset({"note", "warning", "tip", "hint", "important", "caution", "attention", "danger"})

QUOTE = re.compile(r"^( *)> ?(?!>)", re.MULTILINE)  # a Markdown quotation
FENCE = re.compile(r"```|~~~")
RULE = re.compile(r"([-=~^\"'*#+_.`])\1{2,}$")
TABLE = re.compile(r"([=-]{2,}( +[=-]{2,})+|\+[-=+]+\+|\|.*\|)$")
DOCTEST = re.compile(r">>>|In \[\d+\]|\$ |% ")
DIRECTIVE = re.compile(r"\.\. ?([\w:-]+?)::\s*(.*)")
MARKUP = re.compile(r"\.\.(\s|$)|:[^:`]+:(\s|$)|@\w|\[!?\w+\](\s|$)|#|</?\w+>$")  # comments, fields, footnotes, tags
SECTION = re.compile(r"\**([A-Z][\w ]*?):?\**:?$")
ADMONITION = re.compile(r"(?:notes?|warnings?|tip|hint|important|caution):\s*(.*)", re.IGNORECASE)
BULLET = re.compile(r"(?:[-*+•]|\d+[.)]|\(?[a-z\d]\))\s+(?=\S)")
HYPHEN = re.compile(r"(?<=\w)-\n(?=\w)")  # a word broken at its hyphen
SIGNATURE = re.compile(r"\s*[\w.]+\([^\n]*\)(\s*->\s*[^\n]+)?\s*(\n|$)")

# Inline markup in the order of removal: characters that it always contains, its pattern, and the replacement.
INLINE: tuple[tuple[str, re.Pattern[str], str], ...] = (
    # Citations, [1]_, at the end of a clause; after "see" or "in" they are part of the sentence and stay.
    (
        "]_",
        re.compile(r"(?<=\S)(?<!\b[Ss]ee|\band)(?<!\bin|\bof|\bby|\bto)(?<!\bfrom)\s*\[[\w#*.:-]+\]_(?=[.,;)]|$)"),
        "",
    ),
    ("](", re.compile(r"!?\[([^][]+)\]\([^()\s]+\)"), r"\1"),  # Markdown links
    (":`", re.compile(r"(?<!\w):[a-z][\w:+.-]*:(?=`)"), ""),  # roles: :func:`x`
    (">`", re.compile(r"`+([^`<]+?)\s*<[^`<>]+>`+_*"), r"\1"),  # links and roles with a title
    ("`", re.compile(r"\[?`+[~!]?(?:(?<=~)[\w.]*\.)?([^`]+?)`+_{0,2}\]?"), r"\1"),  # literals; ~a.b.c shows c
    ("`", re.compile(r"`([^`']+)'"), r"\1"),  # old-style `quotes'
    ("$", re.compile(r"\$(\w)\$"), r"\1"),  # a formula of one letter
    ("*", re.compile(r"(?<![\w*])\*{1,3}([^*\s](?:[^*]*[^*\s])?)\*{1,3}(?![\w*])"), r"\1"),  # emphasis
    ("<", re.compile(r"</?[a-zA-Z]+/?>"), " "),  # HTML tags
)
# A sentence ends at . ? or ! and closing marks, followed by white space and a capital, a digit or an opening mark.
END = re.compile(r"[.?!][\"')\]]*\s+(?=[\"'(\[]?[A-Z0-9])")
ABBREVIATION = re.compile(
    r"\b(?:e\.?g|i\.?e|etc|vs|cf|viz|al|resp|approx|figs?|eqs?|sec|pp?|vol|dr|mrs?|prof|refs?|incl|inc|ltd|jr|"
    r"a\.k\.a|w\.r\.t|[a-z])\.$",
    re.IGNORECASE,
)
# What prose does not contain: code, formulas, templates, URLs, leftover markup.
NOT_PROSE = re.compile(
    r"[\\{}|`$^~\u2500-\u257f\x00-\x1f\x7f-\x9f\ud800-\udfff]|\s\(\s*\)|::|->|=>|<-|\.\.\.|>>|==|=.*=|\*\*|%\(|\w\(.*\w\(|"
    r"https?:|www\.|\]_|sphx_|\b(?:def|TODO|FIXME|XXX)\b"
)


class _Scanner:
    """The state of one pass over a docstring's lines."""

    def __init__(self) -> None:
        self.paragraphs: list[tuple[bool, str]] = []  # whether it opens the docstring, text
        self.open: list[str] = []  # the lines of the paragraph being read
        self.indent = 0  # of its first line
        self.is_opening = False
        self.skipped: int | None = None  # lines indented deeper than this are code or a list's content
        self.body: int | None = None  # lines indented deeper than this are an admonition's prose
        self.in_list_section = self.in_fence = self.until_blank = False

    def read(self, number: int, line: str, following: str) -> None:
        """Process one line; `following` is the next line, which may underline it."""
        text, indent = line.strip(), _indent(line)
        if FENCE.match(text):
            self.close()
            self.in_fence = not self.in_fence
        elif not text:
            self.close()
            self.until_blank = False
        elif RULE.match(following.strip()) and not RULE.match(text):
            self.close()
            self.in_list_section = LIST_SECTION.fullmatch(text.rstrip(":")) is not None
            self.skipped = self.body = None
        elif not (self.in_fence or self.in_list_section or self.until_blank or self._is_skipped(indent)):
            self._read_visible(number, text, indent, following)

    def close(self) -> None:
        """End the open paragraph. If it ends in "::", a literal block follows."""
        if self.open:
            text = HYPHEN.sub("-", "\n".join(self.open)).replace("\n", " ")
            self.paragraphs.append((self.is_opening, text))
            if text.endswith("::"):
                self.skipped = self.indent
        self.open = []

    def _begin(self, text: str, indent: int, is_opening: bool = False) -> None:
        self.close()
        self.open, self.indent, self.is_opening = ([text] if text else []), indent, is_opening

    def _skip_deeper(self, indent: int) -> None:
        self.close()
        self.skipped = indent

    def _is_skipped(self, indent: int) -> bool:
        """Whether a line belongs to a skipped block; a line outside the block ends it."""
        if self.skipped is not None and indent <= self.skipped:
            self.skipped = None
        if self.body is not None and indent <= self.body:
            self.body = None
        return self.skipped is not None

    def _read_visible(self, number: int, text: str, indent: int, following: str) -> None:
        directive, section = DIRECTIVE.match(text), SECTION.match(text)
        if DOCTEST.match(text) or TABLE.match(text):
            self.open = []
            self.until_blank = True
        elif RULE.match(text):
            self.close()
        elif directive and directive[1].lower() in PROSE_DIRECTIVES:
            self._begin(directive[2], indent)
            self.body = indent
        elif directive or MARKUP.match(text) or (section and LIST_SECTION.fullmatch(section[1])):
            self._skip_deeper(indent)
        elif admonition := ADMONITION.match(text):
            self._begin(admonition[1], indent)
            self.body = indent
        elif bullet := BULLET.match(text):
            self._begin(text[bullet.end() :], indent + bullet.end())
        else:
            self._read_plain(number, text, indent, following)

    def _read_plain(self, number: int, text: str, indent: int, following: str) -> None:
        """Process a line of text: part of a paragraph, code if only it is indented, or a term if the next is deeper."""
        if self.open and indent > self.indent and self.open[-1].endswith(":"):
            self._skip_deeper(self.indent)
        elif self.open and not _broken_on_purpose(self.open[-1], text):
            self.open.append(text)
        elif following.strip() and _indent(following) > indent:
            self._skip_deeper(indent)
        elif self.open or indent == 0 or self.body is not None:
            self._begin(text, indent, is_opening=number == 0)


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _broken_on_purpose(line: str, following: str) -> bool:
    """Whether `following` starts a new unit: it begins with a capital, and its first word had fit on `line`."""
    has_room = len(line) + 1 + len(following.split(maxsplit=1)[0]) <= NARROW
    return has_room and following[0].isupper() and line[-1] not in ",;:(-/"


def paragraphs(lines: Sequence[str]) -> list[tuple[bool, str]]:
    """Return the prose paragraphs, each on one line with its inline markup, and whether it opens the docstring."""
    scanner = _Scanner()
    for number, (line, following) in enumerate(zip(lines, [*lines[1:], ""], strict=False)):
        scanner.read(number, line, following)
    scanner.close()
    return scanner.paragraphs


def plain(text: str) -> str:
    """Remove inline markup and repeated spaces from a paragraph."""
    for mark, pattern, kept in INLINE:
        if mark in text:
            text = pattern.sub(kept, text)
    return " ".join(text.split())


def split_sentences(text: str) -> Iterator[str]:
    """Split a paragraph into sentences; an abbreviation or an initial does not end a sentence."""
    start = 0
    for end in END.finditer(text):
        if not ABBREVIATION.search(text, start, end.start() + 1):
            yield text[start : end.end()].rstrip()
            start = end.end()
    yield text[start:]


def is_prose(sentence: str, min_words: int) -> bool:
    """Whether a text is a sentence: enough words, mostly letters, no code, brackets closed."""
    words, letters = sentence.count(" ") + 1, sum(map(str.isalpha, sentence))
    return (
        min_words <= words <= MAX_WORDS
        and letters + words - 1 >= MIN_LETTERS * len(sentence)
        and sum(map(str.isupper, sentence)) <= MAX_CAPITALS * letters
        and sentence[-1] not in ":,;"
        and NOT_PROSE.search(sentence) is None
        and sentence.count("(") == sentence.count(")")
        and sentence.count("[") == sentence.count("]")
        and sentence.count('"') % 2 == 0
    )


@dataclass(frozen=True)
class Prose:
    """The sentences of a docstring."""

    summary: str | None  # the first sentence, or None if the docstring does not begin with one
    sentences: tuple[str, ...]  # start with a capital and, except for the summary, end with a full stop


def read_docstring(docstring: str) -> Prose:
    """Extract the prose of a docstring, skipping a signature before the summary."""
    signature = SIGNATURE.match(docstring)
    text = QUOTE.sub(r"\1", inspect.cleandoc(docstring[signature.end() if signature else 0 :]))
    summary, kept = None, []
    for is_opening, paragraph in paragraphs(text.splitlines()):
        for place, sentence in enumerate(split_sentences(plain(paragraph))):
            is_first = is_opening and place == 0
            if is_first and is_prose(sentence, MIN_SUMMARY_WORDS):
                summary = sentence
            if sentence[:1].isupper() and (is_first or sentence[-1] in ".?!") and is_prose(sentence, MIN_WORDS):
                kept.append(sentence)
    return Prose(summary, tuple(kept))
