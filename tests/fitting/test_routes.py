"""Which ways data permit: by shape, language and what is at hand; stages in the papers' order."""

import pytest

from sentloom.data.shapes import Shape
from sentloom.fitting.routes import Resources, TrainingSet, find_routes
from sentloom.methods import METHODS

MEANS = Resources(pooling="mean", dropout=0.1, translator=None, synthesizer=None, mined="mined.parquet")


def body(shape, rows=1000, language="en"):
    return TrainingSet(shape, rows, (f"{shape}.parquet",), language)


def names(bodies, means=MEANS):
    routes, closed = find_routes(bodies, means)
    return [route.name for route in routes], [one.name for one in closed]


def test_raw_english_text():
    assert names([body(Shape.TEXTS)]) == (["simcse", "bootstrapped"], ["self-guided", "synthetic"])


def test_raw_text_that_cannot_be_translated_of_a_base_without_dropout():
    routes, closed = find_routes(
        [body(Shape.TEXTS, language="de")], Resources("first", 0.0, "no translator", "writer", "mined.parquet")
    )
    assert [route.name for route in routes] == ["self-guided", "synthetic"]
    assert {one.name: one.why for one in closed}.keys() == {"simcse", "bootstrapped"}
    assert "English" in next(one.why for one in closed if one.name == "bootstrapped")


def test_the_translator_that_is_missing_is_said():
    _, closed = find_routes([body(Shape.TEXTS)], Resources("mean", 0.1, "it is missing", None, ""))
    assert "it is missing" in [one.why for one in closed]


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        (Shape.PAIRS, ["pairs", "pairs with mined negatives"]),
        (Shape.TRIPLETS, ["triplets"]),
        (Shape.NLI, ["nli", "nli classification"]),
        (Shape.PARALLEL, ["cross-lingual", "mse-distillation"]),
    ],
)
def test_one_labelled_shape(shape, expected):
    assert names([body(shape)])[0] == expected


def test_several_shapes_become_stages_in_the_papers_order():
    bodies = [body(shape) for shape in (Shape.NLI, Shape.PAIRS, Shape.TEXTS, Shape.PARALLEL)]
    routes, _ = find_routes(bodies, MEANS)
    assert routes[0].name == "cross-lingual, then pairs, then nli"
    assert routes[1].name == "simcse, then cross-lingual, then pairs, then nli"
    assert [stage["method"] for stage in routes[1].stages] == ["simcse", "cross-lingual", "contrastive", "contrastive"]
    assert routes[1].shapes == (Shape.TEXTS, Shape.PARALLEL, Shape.PAIRS, Shape.NLI)
    assert [route.name for route in routes[-3:]] == ["cross-lingual", "pairs", "nli"]


def test_a_mined_route_learns_from_the_mined_file():
    _, mined = find_routes([body(Shape.PAIRS)], MEANS)[0]
    assert mined.mined == 1000
    assert mined.stages[0]["data"] == ["mined.parquet"]


def test_every_stage_is_one_that_its_method_takes_and_names_are_unlike():
    bodies = [body(shape) for shape in (Shape.TEXTS, Shape.PARALLEL, Shape.PAIRS, Shape.TRIPLETS, Shape.NLI)]
    routes, _ = find_routes(bodies, Resources("first", 0.1, None, "writer", "mined.parquet"))
    assert len({route.name for route in routes}) == len(routes)
    for route in routes:
        stages = [stage for stage in route.stages if stage["method"] != "synthesize"]
        assert len({stage["name"] for stage in route.stages}) == len(route.stages)
        assert len(stages) == len(route.shapes) == len(route.rows)
        assert all(stage["method"] in METHODS for stage in stages)


def test_few_rows_have_small_batches():
    (route,) = find_routes([body(Shape.TRIPLETS, rows=120)], MEANS)[0]
    assert route.stages[0]["batch"] == 30
