"""Titles, headings and links become pairs; those that give their passage away are left out and counted."""

from pathlib import Path

from sentloom.data import Shape, read
from sentloom.data.documents.structure import COLUMNS, LEAKED, TOO_LITTLE, is_mined, structure_pairs
from tests.data.reading import put

LONG = "This is what stands below, in words that are long enough to be a passage of {}."
VPN = f"""# Working from home

{LONG.format("the opening")} See [how to get a card](cards.md), [here](cards.md), [the costs](cards.md#what-it-costs).

## Connecting to the network

{LONG.format("the network")}

## Notes

{LONG.format("notes")}

## Cards.md

{LONG.format("files")}
"""
CARDS = f"""# Access cards

Access cards open doors. {LONG.format("cards")}

## What it costs

{LONG.format("costs")}

## Notes

{LONG.format("others")}
"""


def mined(folder: Path):
    put(folder / "vpn.md", VPN)
    put(folder / "cards.md", CARDS)
    return structure_pairs(read(folder, keep=COLUMNS[1:]))


def test_pairs_of_titles_headings_and_links(tmp_path: Path) -> None:
    pairs = mined(tmp_path)
    assert (pairs.shape, is_mined(pairs)) == (Shape.PAIRS, True)
    rows = {(row["mined"], row["anchor"], row["positive"].split()[-1], row["docid"]) for row in pairs}
    assert rows == {
        ("title", "Working from home", "costs.", "vpn.md"),
        ("heading", "Connecting to the network", "network.", "vpn.md"),
        ("link", "how to get a card", "cards.", "cards.md"),
        ("link", "What it costs", "costs.", "cards.md"),
        ("link", "the costs", "costs.", "cards.md"),
        ("heading", "What it costs", "costs.", "cards.md"),
    } - {("link", "What it costs", "costs.", "cards.md")}


def test_what_gives_a_passage_away_or_says_nothing_is_counted(tmp_path: Path) -> None:
    skipped = mined(tmp_path).skipped
    assert skipped[LEAKED] == 2  # "Access cards", with which its passage begins, and "Cards.md"
    assert skipped[TOO_LITTLE] == 1  # "here"; generic headings such as "Notes" are not paired at all


def test_a_heading_that_others_have_too_comes_with_its_title(tmp_path: Path) -> None:
    for name in ("git", "ssh"):
        put(tmp_path / f"{name}.md", f"# The tool {name}\n\n## First steps\n\n{LONG.format(name)}\n")
    pairs = structure_pairs(read(tmp_path, keep=COLUMNS[1:]))
    assert [row["anchor"] for row in pairs if row["mined"] == "heading"] == [
        "The tool git: First steps",
        "The tool ssh: First steps",
    ]


def test_links_lead_to_the_names_that_html_gives_its_places(tmp_path: Path) -> None:
    put(
        tmp_path / "guide.html",
        f"<h1>Guide</h1><p>{LONG.format('the guide')}</p><section id='s-cost'><h2>What it costs</h2>"
        f"<p>{LONG.format('costs') * 6}</p></section><dl><dt><a name='max_size'></a>max_size</dt>"
        f"<dd>{LONG.format('sizes') * 12}</dd></dl>",
    )
    put(
        tmp_path / "index.html",
        "<p>See <a href='guide.html#s-cost'>the price of a card</a>, <a href='guide.html#max_size'>the largest size</a>, "
        "<a href='guide.html#gone'>what is gone</a>.</p>",
    )
    pairs = structure_pairs(read(tmp_path, keep=COLUMNS[1:]))
    links = {row["anchor"]: row["positive"] for row in pairs if row["mined"] == "link"}
    assert links.keys() == {"the price of a card", "the largest size"}
    assert links["the price of a card"] == LONG.format("costs") * 6
    assert links["the largest size"].startswith("max_size\nThis is what stands below")


def test_the_text_that_pages_were_made_from_is_not_read_twice(tmp_path: Path) -> None:
    (tmp_path / "html/_sources").mkdir(parents=True)
    put(tmp_path / "html/guide.html", "<h1>Guide</h1><p>The text.</p>")
    put(tmp_path / "html/_sources/guide.rst.txt", "Guide\n=====\n\nThe text.\n")
    put(tmp_path / "html/_sources/other.rst.txt", "Another text without a page.\n")
    data = read(tmp_path)
    assert data["text"] == ["Another text without a page.", "The text."]
    assert data.unread == ((f"{tmp_path}/html/_sources/guide.rst.txt", "the source of a page that is read"),)
