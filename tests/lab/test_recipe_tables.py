"""Recipes for the terminal: the cost of each stage, and what is missing."""

from pathlib import Path

from sentloom.data.shapes import Shape
from sentloom.engine.building import stage
from sentloom.engine.needs import Need
from sentloom.engine.plan import Plan, Recipe
from sentloom.engine.stages import Forecast
from sentloom.lab.recipe_tables import forecasts, outline, recipe
from tests.report.printing import printed


def test_a_forecast_has_a_row_per_stage_and_notes_below():
    stages = [
        Forecast("first", "simcse", 12_345, Shape.TEXTS, 90.0, batch=64, steps=1_000, leaked=2),
        Forecast("clean", "mine", 10, Shape.PAIRS, 1.0, note="a note"),
    ]
    lines = [line.split() for line in printed(forecasts("plan", stages)).splitlines()]
    assert ["first", "simcse", "texts", "12,345", "64", "1,000"] in [line[:6] for line in lines]
    assert ["clean", "mine", "pairs", "10"] in [line[:4] for line in lines]
    assert "clean: a note".split() in lines
    assert "first: transductive, trains on 2 sentences of the evaluation sets".split() in lines


def test_a_revision_is_named_by_its_first_digits():
    plan = Plan("mine", base=f"owner/model@{'0123456789' * 4}", stages=())
    read = Recipe(Path("mine.yaml"), (), {None: plan}, {}, {})
    for whole in (True, False):
        text = printed(recipe("mine", read, whole=whole))
        assert "owner/model@0123456" in text
        assert "owner/model@01234567" not in text


def test_an_outline_separates_what_is_missing_from_what_is_downloaded():
    plan = Plan("mine", base="embedded", stages=(stage("simcse", name="s", data="a.txt", steps=100),))
    text = printed(outline(plan, [Need("data of s", "a.txt", on_hub=False), Need("base", "owner/model", on_hub=True)]))
    assert ["s", "simcse", "a.txt"] in [line.split() for line in text.splitlines()]
    assert "missing: data of s, a.txt\n" in text
    assert "to be downloaded from the hub: base owner/model\n" in text
