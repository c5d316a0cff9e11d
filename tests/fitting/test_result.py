"""A result: what follows from its numbers, and its JSON, which comes back as it was."""

import json
import re
from dataclasses import asdict, fields, replace
from pathlib import Path

import pytest
from hypothesis import given, settings

from sentloom.errors import InputError
from sentloom.fitting.measures import Measure, Power
from sentloom.fitting.result import SCHEMA, Example, FitResult, Histogram, NearestTexts, Threshold
from tests.report.results_by_hand import BARE, FULL, STORIES, measure

FEW = settings(max_examples=25, deadline=None)


@FEW
@given(result=STORIES)
def test_any_result_comes_back(result, tmp_path_factory):
    path = tmp_path_factory.mktemp("result") / "report.json"
    result.write(path)
    assert FitResult.read(path) == result


@pytest.mark.parametrize("result", [FULL, BARE])
def test_the_same_result_gives_the_same_bytes(result, tmp_path):
    for name in ("one.json", "two.json"):
        result.write(tmp_path / name)
    assert (tmp_path / "one.json").read_bytes() == (tmp_path / "two.json").read_bytes()
    assert FitResult.read(tmp_path / "one.json") == result


def test_a_name_that_is_no_text_stops_nothing(tmp_path):
    replace(FULL, command="sentloom fit \udcff.txt").write(tmp_path / "report.json")
    assert FitResult.read(tmp_path / "report.json").command == "sentloom fit ?.txt"


@pytest.mark.parametrize("change", [{"verdict": "perhaps"}, {"title": None}, {"measures": [{"name": "x"}]}])
def test_a_damaged_result_is_refused(change, tmp_path):
    path = tmp_path / "report.json"
    FULL.write(path)
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(InputError, match=r"report\.json"):
        FitResult.read(path)
    with pytest.raises(InputError, match=r"no\.json"):
        FitResult.read(tmp_path / "no.json")


def test_the_result_of_a_newer_version_is_refused(tmp_path):
    replace(FULL, schema=SCHEMA + 1).write(tmp_path / "report.json")
    with pytest.raises(InputError, match="from a newer sentloom"):
        FitResult.read(tmp_path / "report.json")


def test_a_measure_is_sure_when_its_interval_leaves_0_out():
    up, down, open_end = (
        measure(before=50, after=52, spread=2),
        measure(before=52, after=50, spread=2),
        measure(before=50, after=51, spread=2),
    )
    assert [measured.finding for measured in (up, down, open_end)] == [
        "better",
        "worse",
        "no difference shown",
    ]  # 1 to 3, -3 to -1, 0 to 2
    assert FULL.runs[-1].finding == "no difference shown"  # it failed
    assert replace(up, effective=19.9).finding == "no difference shown"  # too few clusters for an interval


def test_overlap_is_the_share_under_both_histograms():
    # shares (0, 1/2, 1/2) and (1/4, 3/4, 0) have 1/2 in common
    histogram = Histogram((0.0, 1.0, 2.0, 3.0), (0, 5, 5), (1, 3, 0), (1, 2, 3), (2, 4, 6))
    assert histogram.before.overlap == pytest.approx(50)
    assert histogram.after.overlap == pytest.approx(100)
    assert Histogram((0.0, 1.0, 2.0), (0, 0), (1, 0), (0, 0), (1, 0)).before.overlap == 0


def test_neighbours_that_left_and_that_entered():
    nearest = NearestTexts("s", ((0.9, "a"), (0.8, "b")), ((0.95, "c"), (0.7, "a")))
    assert (nearest.gone, nearest.new) == ({"b"}, {"c"})


def test_the_winner_comes_first_and_then_the_route_that_came_furthest():
    assert list(FULL.ladder) == ["simcse", "pairs", "broken"]
    assert FULL.winner == "simcse"
    assert BARE.winner is None
    assert FULL.rounds == {1: [60], 2: [120]}
    assert [route.name for route in FULL.skipped] == ["nli triplets"]


def test_the_mean_follows_the_measures_that_it_averages():
    assert {part: [measured.name for measured in ones] for part, ones in FULL.parts.items()} == {
        "deciding": ["halves", "views", "mean"],
        "general": ["sts-b"],
        "watched": ["own rows"],
    }


def test_a_single_measure_is_not_listed_twice():
    measured = measure()
    assert replace(FULL, measures=(measured,), total=measured).parts == {"deciding": [measured]}
    assert BARE.parts == {}


def test_every_field_of_the_json_is_documented():
    text = (Path(__file__).parents[2] / "docs" / "report.md").read_text("utf-8")
    documented = set(re.findall(r"`(\w+)`", text))
    for kind in (FitResult, Measure, Power, Threshold, Example):
        assert {field.name for field in fields(kind)} <= documented
    assert json.loads(json.dumps(asdict(FULL)))["schema"] == SCHEMA


def test_the_verdict_line_is_one_line_for_programs():
    expected = "VERDICT better +6.6 MRR@10 [5.7, 7.5] level=95% clusters=640 effective=512.3 documents=900 uses=3"
    assert FULL.verdict_line == expected
    assert BARE.verdict_line == "VERDICT no difference shown"


def test_a_bound_near_0_shows_its_side():
    nearly = replace(FULL.total, difference=0.21, low=-0.0312, high=0.45)
    assert "+0.2 MRR@10 [-0.03, 0.5]" in replace(FULL, total=nearly).verdict_line
    assert "[0.002, 0.0]" in replace(FULL, total=replace(nearly, low=0.002, high=0.0)).verdict_line
    assert " effective=19.9 " in replace(FULL, total=replace(nearly, effective=19.98)).verdict_line
