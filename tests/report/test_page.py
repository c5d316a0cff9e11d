"""The page: well formed, fetching nothing, escaped, and with the result's own numbers."""

import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest
from hypothesis import given, settings

from sentloom.fitting.examples import LONGEST, SHOWN
from sentloom.fitting.figures import MOST_POINTS, NEAREST, SAMPLES
from sentloom.fitting.result import Curve, Example, Histogram, NearestTexts
from sentloom.report import fit_plots
from sentloom.report.page import page
from tests.report.results_by_hand import BARE, FULL, STORIES

FEW = settings(max_examples=min(settings.default.max_examples, 40), deadline=None)
TAGS = set(
    "html head meta title style body header main nav section article div p span h1 h2 h3 h4 a small i ul ol li dl dt dd "
    "table thead tbody tr th td details summary pre code figure svg g defs use clippath rect path text".split()
)


class Reader(HTMLParser):
    """The contents of a page; it fails on tags that are not closed in order."""

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.attributes, self.words, self.titles, self.classes = [], [], [], [], [], []
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs
        self.classes += (dict(attrs).get("class") or "").split()
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] != "style":
            self.words.append(data)
        if self.open and self.open[-1] == "h2":
            self.titles.append(data)


def drawn(result):
    """The page with its figures; drawing takes a second."""
    return page(result, fit_plots.figures(result))


def read(result):
    return Reader(page(result, {}))


@FEW
@given(result=STORIES)
def test_any_text_stays_text(result):
    found = read(result)
    assert set(found.tags) <= TAGS
    names = {name for name, _ in found.attributes}
    assert not {name for name in names if name.startswith("on")}
    assert not names & {"src", "srcset", "action", "data"}
    said = "".join(found.words)
    for text in (result.title, result.reason, *result.warnings, *(one.sentence for one in result.neighbours)):
        assert text.replace("\r\n", "\n").replace("\r", "\n") in said.replace("\r\n", "\n").replace("\r", "\n")


@pytest.mark.parametrize("result", [FULL, BARE])
def test_nothing_is_fetched(result):
    text = drawn(result)
    found = Reader(text)
    assert not re.search(r"""(?:src|href)\s*=\s*["'](?!#)""", text)
    assert not re.search(r"url\((?!#)", text)
    assert "@import" not in text
    assert "http:" not in text
    assert "https:" not in text
    assert ("content", "default-src 'none'; style-src 'unsafe-inline'") in found.attributes
    ids = [value for name, value in found.attributes if name == "id"]
    assert len(ids) == len(set(ids))
    targets = {value for name, value in found.attributes if name in ("href", "clip-path")}
    assert targets == {f"#{one}" for one in ids if one.startswith(("part", "m"))} | {
        f"url(#{one})" for one in ids if one.startswith("p") and not one.startswith("part")
    }


def test_a_large_result_stays_below_a_megabyte():
    """As much of everything as a fit shows: long texts, all of them escaped, and a curve for each stage of ten routes."""
    text = "<" * LONGEST
    example = Example("notes.txt", text, text, 0.0, 100.0, text, text)
    near = NearestTexts(text, ((0.9, text),) * NEAREST, ((0.9, text),) * NEAREST)
    curve = Curve("simcse", "learn", tuple(range(MOST_POINTS)), tuple(range(MOST_POINTS)))
    large = replace(
        FULL,
        won=(example,) * SHOWN,
        lost=(example,) * SHOWN,
        neighbours=(near,) * SAMPLES,
        curves=(curve,) * 10,
        runs=FULL.runs * 10,
        measures=FULL.measures * 5,
    )
    assert len(drawn(large).encode()) < 10**6


def said(value, sign=""):
    """Two digits behind the point, a true minus: an oracle apart from formatting.py."""
    return f"{value:{sign}.2f}".replace("-", "−")


def test_numbers_are_the_results():
    words = [word.strip() for word in read(FULL).words]
    for one in (*FULL.measures, FULL.total):
        assert one.label in words
        for value in (one.before, one.after):
            assert said(value) in words
        assert said(one.difference, "+") in words
        assert f"{said(one.low)} to {said(one.high)}" in words
    for one in FULL.runs:
        assert one.difference is None or said(one.difference, "+") in words
    for count in ("18,422", "16,890", "401", "411", "720"):
        assert count in words
    assert any("left out: 258 rows that share" in word for word in words)


def test_bars_end_where_their_scores_are():
    one = replace(
        FULL.measures[0], before=25.0, before_low=20.0, before_high=30.0, after=75.0, after_low=50.0, after_high=100.0
    )
    text = page(replace(FULL, measures=(one,), total=one), {})
    fills = re.findall(r'class="fill" style="left:([\d.]+)%;width:([\d.]+)%"', text)
    errors = re.findall(r'class="error" style="left:([\d.]+)%;width:([\d.]+)%"', text)
    assert fills == [("0.00", "25.00"), ("0.00", "75.00")]
    assert errors == [("20.00", "10.00"), ("50.00", "50.00")]


def test_a_full_result_has_all_sections():
    text = drawn(FULL)
    found = Reader(text)
    assert len(text.encode()) < 200_000
    assert found.titles == [
        "Better than the best base", "1 warning", "What to do next", "Before and after", "All measures", "Languages", "Dimensions",
        "What the verdict rests on", "Won and lost", "Bases", "Routes", "Training", "Alignment and uniformity", "Similarity", "Neighbours", "Data", "How it was made",
    ]  # fmt: skip
    described = [value for name, value in found.attributes if name == "aria-label" and value in found.words]
    assert described == [
        "simcse, simcse on notes.txt: from 1.222 to 0.069",
        "Alignment and uniformity of every route",
        "Before: overlap 50%",  # 0 5 5 against 5 5 0, in tenths
        "After: overlap 10%",  # 0 1 9 against 9 1 0
    ]
    assert found.tags.count("svg") == len(described)
    assert FULL.recipe in found.words
    assert FULL.command in found.words
    for text in (
        "gone",
        "new",
        "✓ won",
        "✕ dropped",
        "failed: the loss is no number",
        "no labels",
        "4.5 min",
        "77" * 32,
        "9f" * 32,
    ):
        assert text in " ".join(found.words)


def test_a_result_without_runs_has_no_pictures():
    found = read(BARE)
    assert found.titles == ["No difference shown: no model was written", "How it was made"]
    assert "svg" not in found.tags
    assert "whisker" not in found.classes
    assert "not written" in found.words


def test_a_refusal_says_by_how_much():
    total = replace(FULL.total, after=73.0, difference=-0.36, low=-1.26, high=0.54)
    found = read(replace(FULL, verdict="no difference shown", model=None, total=total))
    assert found.titles[0] == "No difference shown: no model was written"
    assert "−0.36" in found.words
    assert "95% interval −1.26 to 0.54" in found.words
    assert {"verdict", "unsure"} <= set(found.classes)


def test_force_is_named():
    forced = replace(FULL, verdict="worse", forced=True)
    assert read(forced).titles[0] == "Worse than the best base: written anyway (--force)"


def test_examples_show_what_both_models_found():
    words = read(FULL).words
    for text in ("How do I open it?", "Turn the lid.", "Shut it.", "Where is it?", "On the roof.", "100 → 39"):
        assert any(text in one for one in words)


@pytest.mark.parametrize(
    "change",
    [
        {
            "curves": (
                Curve("a", "b", (1, 2, 3), (float("nan"),) * 3),
                Curve("a", "b", (1,), (0.5,)),
                Curve("a", "b", (), ()),
            )
        },
        {"histogram": Histogram((), (), (), (), ())},
        {"histogram": Histogram((0.0, 1.0), (0,), (0,), (0,), (0,))},
        {"trails": (replace(FULL.trails[0], points=()),)},
    ],
)
def test_what_has_no_points_has_no_picture(change):
    assert fit_plots.figures(replace(BARE, **change)) == {}


def test_a_flat_curve_can_be_drawn():
    assert drawn(replace(BARE, curves=(Curve("a", "b", (5, 5, 5), (0.25,) * 3),))).count("<svg") == 1


def test_of_many_neighbours_some_are_folded_away():
    text = page(replace(FULL, neighbours=FULL.neighbours * 9), {})
    assert "<summary>3 more</summary>" in text


def test_languages_dimensions_and_bases_have_sections_of_their_own():
    found = read(FULL)
    assert {"Languages", "Dimensions", "Bases"} <= set(found.titles)
    said = "".join(found.words)
    for text in (
        "German: halves",
        "57.66",
        "64 dimensions",
        "55.32",
        "568,000,000",
        "the winner started from this one",
    ):
        assert text in said
    plain = read(replace(FULL, by_language=(), by_dimension=(), bases=FULL.bases[:1]))
    assert not {"Languages", "Dimensions", "Bases"} & set(plain.titles)
