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
