"""Which routes there are: by shape, language and resources; stages in the papers' order."""

import pytest

from sentloom.data.shapes import Shape
from sentloom.errors import InputError
from sentloom.fitting import routes as room
from sentloom.fitting.resources import Resources
from sentloom.fitting.routes import Route, find_routes
from sentloom.fitting.training_sets import TrainingSet
from sentloom.pipeline.building import stage
from sentloom.pipeline.plan import to_yaml
from sentloom.pipeline.recipe import read_recipe
from sentloom.pipeline.stages import Train

RESOURCES = Resources("embedded", pooling="mean", dropout=0.1, translator=None, synthesizer=None)


def training_set(shape, rows=1000, language="en"):
    return TrainingSet(shape, rows, (f"{shape}.parquet",), language)


def names(training_sets, resources=RESOURCES):
    routes, skipped = find_routes(training_sets, resources)
    return [route.name for route in routes], [one.name for one in skipped]


def test_raw_english_text():
    assert names([training_set(Shape.TEXTS)]) == (["simcse", "bootstrapped"], ["self-guided", "synthetic"])


def test_raw_text_that_cannot_be_translated_of_a_base_without_dropout():
    routes, skipped = find_routes(
        [training_set(Shape.TEXTS, language="de")], Resources("embedded", "first", 0.0, "no translator", "writer")
    )
    assert [route.name for route in routes] == ["self-guided", "synthetic"]
    assert {one.name: one.why for one in skipped}.keys() == {"simcse", "bootstrapped"}
    assert "English" in next(one.why for one in skipped if one.name == "bootstrapped")


def test_the_translator_that_is_missing_is_said():
    _, skipped = find_routes([training_set(Shape.TEXTS)], Resources("embedded", "mean", 0.1, "it is missing", None))
    assert "it is missing" in [one.why for one in skipped]


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
    assert names([training_set(shape)])[0] == expected


def test_several_shapes_become_stages_in_the_papers_order():
    training_sets = [training_set(shape) for shape in (Shape.NLI, Shape.PAIRS, Shape.TEXTS, Shape.PARALLEL)]
    routes, _ = find_routes(training_sets, RESOURCES)
    assert routes[0].name == "cross-lingual, then pairs, then nli"
    assert routes[1].name == "simcse, then cross-lingual, then pairs, then nli"
    assert [stage.method for stage in routes[1].stages] == ["simcse", "cross-lingual", "contrastive", "contrastive"]
    assert [one.shape for one in routes[1].trains_on] == [Shape.TEXTS, Shape.PARALLEL, Shape.PAIRS, Shape.NLI]
    assert [route.name for route in routes[-3:]] == ["cross-lingual", "pairs", "nli"]


def test_what_a_route_needs_first_is_an_earlier_stage():
    _, mined = find_routes([training_set(Shape.PAIRS)], RESOURCES)[0]
    mine, learn = mined.stages
    assert (mine.method, mine.model, mine.data) == ("mine", "embedded", ("pairs.parquet",))
    assert (learn.method, learn.data) == ("contrastive", (f"stage:{mine.name}",))
    _, bootstrapped = find_routes([training_set(Shape.TEXTS)], RESOURCES)[0]
    views, learn = bootstrapped.stages
    assert (views.method, views.options.kind, learn.data) == ("views", "back-translation", (f"stage:{views.name}",))


def test_names_are_different_and_every_training_stage_knows_its_data():
    training_sets = [
        training_set(shape) for shape in (Shape.TEXTS, Shape.PARALLEL, Shape.PAIRS, Shape.TRIPLETS, Shape.NLI)
    ]
    routes, _ = find_routes(training_sets, Resources("embedded", "first", 0.1, None, "writer"))
    assert len({route.name for route in routes}) == len(routes)
    for route in routes:
        assert len({one.name for one in route.stages}) == len(route.stages)
        assert len(route.plan([], "embedded", 1).training) == len(route.trains_on)
        assert isinstance(route.stages[-1], Train)


def test_every_run_is_a_recipe(tmp_path):
    training_sets = [training_set(shape) for shape in (Shape.TEXTS, Shape.PARALLEL, Shape.PAIRS, Shape.TRIPLETS)]
    for route in find_routes(training_sets, RESOURCES)[0]:
        steps = [40 + number for number in range(len(route.trains_on))]
        plan = route.plan(steps, "embedded", 7)
        assert [one.settings.steps for one in plan.training] == steps
        assert (plan.base, plan.seeds) == ("embedded", (7,))
        assert plan.training[0].settings.log_every == 2
        (tmp_path / "run.yaml").write_text(to_yaml(plan), "utf-8")
        assert read_recipe(tmp_path / "run.yaml").resolve() == plan


class Installed:
    """An entry point of an installed package."""

    name, value, dist = "mine", "package:routes", None

    def __init__(self, found):
        self.found = found

    def load(self):
        return self.found


def test_installed_packages_add_routes(monkeypatch):
    def more(training_sets, resources):
        assert resources is RESOURCES
        for one in training_sets:
            learn = stage("contrastive", name="own", data=list(one.files), batch=8)
            yield Route("own", "because it can", (learn,))

    monkeypatch.setattr(room, "entry_points", lambda group: [Installed(more)] if group == "sentloom.routes" else [])
    assert names([training_set(Shape.TRIPLETS)])[0] == ["triplets", "own"]
    monkeypatch.setattr(room, "entry_points", lambda group: [Installed(more), Installed(more)])
    with pytest.raises(InputError, match="two routes are named 'own'"):
        find_routes([training_set(Shape.TRIPLETS)], RESOURCES)
    monkeypatch.setattr(room, "entry_points", lambda group: [Installed(lambda sets, resources: 1 / 0)])
    with pytest.raises(InputError, match="entry point mine of package:routes: ZeroDivisionError"):
        find_routes([training_set(Shape.TRIPLETS)], RESOURCES)


def test_few_rows_have_small_batches():
    (route,) = find_routes([training_set(Shape.TRIPLETS, rows=120)], RESOURCES)[0]
    assert route.stages[0].settings.batch == 30
