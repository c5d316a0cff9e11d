"""The files of a report."""

import re
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sentloom.fitting.result import FitResult
from sentloom.markdown import fenced
from sentloom.report import fit_plots
from sentloom.report.model_card import ModelFacts, model_card
from sentloom.report.page import report_markdown, write_report
from tests.report.results_by_hand import BARE, FULL, STORIES, WORDS

FEW = settings(max_examples=25, deadline=None)
FACTS = ModelFacts(384, 256, "mean", native=True)
PICTURES = ["scores", "routes", "training-1", "trajectory", "similarities-before", "similarities-after"]


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    folder = tmp_path_factory.mktemp("fit")
    return write_report(FULL, folder)


def test_all_files_are_there_and_nothing_else(written):
    names = sorted(str(path.relative_to(written.parent)) for path in written.parent.rglob("*") if path.is_file())
    assert names == sorted(["report.html", "report.md", "report.json", *(f"plots/{name}.png" for name in PICTURES)])
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in written.parent.glob("plots/*"))
    assert FitResult.read(written.parent / "report.json") == FULL


def test_the_same_story_gives_the_same_files(written, tmp_path):
    again = write_report(FULL, tmp_path).parent
    for path in written.parent.rglob("*.*"):
        if path.is_file():
            assert path.read_bytes() == (again / path.relative_to(written.parent)).read_bytes()


def test_markdown_links_to_what_is_there(written):
    links = re.findall(r"\]\((.+?)\)", (written.parent / "report.md").read_text())
    assert links == [f"plots/{name}.png" for name in PICTURES]


def test_nothing_run_gives_no_plots(tmp_path):
    folder = write_report(BARE, tmp_path / "words.fit").parent
    assert sorted(path.name for path in folder.iterdir()) == ["report.html", "report.json", "report.md"]
    assert "plots/" not in (folder / "report.md").read_text()


def test_a_failed_run_alone_has_no_plot():
    assert fit_plots.figures(replace(BARE, runs=FULL.runs[-1:])) == {}


def test_markdown_has_the_storys_numbers():
    text = report_markdown(FULL, [])
    assert (
        "| the label of halves | Decides | MRR@10, 812 items in 640 clusters | 58.31 (56.21 to 60.41) | 69.84 (67.74 to 71.94) | +11.53 (10.48 to 12.58) |"
        in text
    )
    assert "73.36 → **79.99**, +6.63 (95% interval 5.73 to 7.53, p < 0.001)" in text
    assert "> **Warning:** General ability fell by 1.92 points." in text
    assert "halves, other scores: recall@10 81.50 → 84.25." in text
    assert "| 0.71 Shut it. (gone) | 0.77 Undo the lid. (new) |" in text
    assert "overlap by 50% before and by 10% after" in text
    assert "```yaml\nencoder: embedded\nseed: 1\n```" in text


@pytest.mark.parametrize("text", [report_markdown(FULL, PICTURES), report_markdown(BARE, []), model_card(FULL, FACTS)])
def test_blocks_of_markdown_are_separated_by_one_empty_line(text):
    assert "\n\n\n" not in text
    for before, after in pairwise(text.removeprefix("---\n").split("\n---\n", 1)[-1].splitlines()):
        if after.startswith(("#", "```sh", "```python", "```yaml", "![")):
            assert before == ""
        if after.startswith("|"):
            assert before == "" or before.startswith("|")


@FEW
@given(result=STORIES)
def test_any_story_can_be_markdown_whose_tables_are_whole(result):
    text = report_markdown(result, [])
    outside = re.sub(r"(?ms)^(`{3,})\w*\n.*?^\1$", "", text)
    assert not re.search(r"<(?! 0\.001)", outside)  # but for "p < 0.001"
    for table in re.findall(r"(?m)(?:^\|.*\n?)+", outside):
        bars = [len(re.findall(r"(?<!\\)\|", line.replace("\\\\", ""))) for line in table.splitlines()]
        assert len(set(bars)) == 1


@FEW
@given(text=st.text() | st.lists(st.sampled_from(["`", "``", "````", "a", "\n"])).map("".join) | WORDS)
def test_no_text_breaks_out_of_its_fence(text):
    first, *lines = fenced(text).split("\n")
    assert set(first) == {"`"}
    assert lines[-1] == first
    assert first not in "\n".join(lines[:-1])
