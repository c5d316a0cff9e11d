"""Stories go into JSON and come back as they were."""

import json
from dataclasses import replace

import pytest
from hypothesis import given, settings

from sentloom.errors import InputError
from sentloom.fitting.result import FitResult
from tests.report.results_by_hand import BARE, FULL, STORIES, measure

FEW = settings(max_examples=25, deadline=None)


@FEW
@given(result=STORIES)
def test_any_story_comes_back(result, tmp_path_factory):
    path = tmp_path_factory.mktemp("story") / "report.json"
    result.write(path)
    assert FitResult.read(path) == result


@pytest.mark.parametrize("result", [FULL, BARE])
def test_the_same_story_gives_the_same_bytes(result, tmp_path):
    for name in ("one.json", "two.json"):
        result.write(tmp_path / name)
    assert (tmp_path / "one.json").read_bytes() == (tmp_path / "two.json").read_bytes()
    assert FitResult.read(tmp_path / "one.json") == result


def test_a_name_that_is_no_text_stops_nothing(tmp_path):
    replace(FULL, command="sentloom fit \udcff.txt").write(tmp_path / "report.json")
    assert FitResult.read(tmp_path / "report.json").command == "sentloom fit ?.txt"


@pytest.mark.parametrize("change", [{"verdict": "perhaps"}, {"title": None}, {"measures": [{"name": "x"}]}])
def test_what_is_no_story_is_named(change, tmp_path):
    path = tmp_path / "report.json"
    FULL.write(path)
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(InputError, match=r"story\.json"):
        FitResult.read(path)
    with pytest.raises(InputError, match=r"no\.json"):
        FitResult.read(tmp_path / "no.json")


def test_a_measure_is_sure_when_its_interval_leaves_0_out():
    up, down, open_end = (
        measure(before=50, after=52, spread=2),
        measure(before=52, after=50, spread=2),
        measure(before=50, after=51, spread=2),
    )
    assert (up.better, up.worse) == (True, False)  # 1 to 3
    assert (down.better, down.worse) == (False, True)  # -3 to -1
    assert (open_end.better, open_end.worse) == (False, False)  # 0 to 2
