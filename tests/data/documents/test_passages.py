"""Documents are divided at headings and paragraphs; nothing is lost."""

from hypothesis import given
from hypothesis import strategies as st

from sentloom.data.documents.document import Block, Document, Link
from sentloom.data.documents.passages import LONGEST, divided, passages, size


def test_paragraphs_of_a_section_share_a_passage_while_they_fit() -> None:
    long = "word " * 150
    blocks = (
        Block("Intro."),
        Block("A", 1),
        Block("a1."),
        Block("B", 2),
        Block("b1."),
        Block(long.strip()),
        Block("b2."),
    )
    assert [
        (passage.section, passage.text) for passage in passages(Document("T", (*blocks, Block("C", 1), Block("c."))))
    ] == [
        ("", "Intro."),
        ("A", "a1."),
        ("A > B", f"b1.\n{long.strip()}\nb2."),
        ("C", "c."),
    ]


def test_a_passage_does_not_go_over_a_page_and_keeps_its_links() -> None:
    blocks = (Block("See x.", 0, 1, (Link("x", "x.md"),)), Block("Next.", 0, 2))
    first, second = passages(Document("T", blocks))
    assert (first.page, first.links, second.page, second.links) == (1, (Link("x", "x.md"),), 2, ())


def test_lines_of_sentences_are_passages_of_their_own() -> None:
    document = Document("", (Block("One."), Block("Two.")), apart=True)
    assert [passage.text for passage in passages(document)] == ["One.", "Two."]


def test_long_paragraphs_are_divided_after_sentences() -> None:
    sentence = "This is the sentence that comes again and again in the text."
    parts = list(divided(" ".join([sentence] * 40)))
    assert all(part.endswith("text.") and size(part) <= LONGEST for part in parts)
    assert sum(part.count(sentence) for part in parts) == 40


@given(st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=3000))
def test_no_character_is_lost_and_no_part_is_too_long(text: str) -> None:
    parts = list(divided(text))
    assert "".join("".join(parts).split()) == "".join(text.split())
    assert all(size(part) <= LONGEST for part in parts)
