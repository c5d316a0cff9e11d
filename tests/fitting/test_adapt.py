"""Adapted routes: prompts, dimensions, adapters and label columns reach the stages that they are for."""

from dataclasses import replace

import pytest

from sentloom.data.shapes import Shape
from sentloom.encoder import Encoder
from sentloom.encoder.tokens import Prompt
from sentloom.engine.building import stage
from sentloom.errors import InputError
from sentloom.fitting.adapt import Adaptation, adapted, routes_from
from sentloom.fitting.bases import load_bases
from sentloom.fitting.plan import FitPlan
from sentloom.fitting.planning import refuse_no_route
from sentloom.fitting.prepare import prepare_inputs
from sentloom.fitting.routes import Route, TrainsOn
from tests.fitting import small_base
from tests.fitting.test_request import request

RAW, PAIRS, LABELS = (
    stage("simcse", name="raw", data="raw.txt", steps=1),
    stage("contrastive", name="pairs", data="faq.tsv", steps=1),
    stage("supervised", name="labels", data="tickets.csv", steps=1, batch=64),
)
LEARNED = (TrainsOn(Shape.TEXTS, 500), TrainsOn(Shape.PAIRS, 500), TrainsOn(Shape.CLASSIFICATION, 500))
ROUTE = Route("all", "because", (RAW, PAIRS, LABELS), LEARNED)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    bases = tmp_path_factory.mktemp("bases")
    Encoder.load(small_base.build_base(bases), prompts={"query": Prompt("bano ")}).save(bases / "asks")
    return bases


def test_nothing_wanted_changes_nothing():
    assert adapted(ROUTE, Adaptation()) == ROUTE


def test_prompts_are_for_stages_that_learn_from_the_users_pairs():
    route = adapted(ROUTE, Adaptation(searched=(Shape.PAIRS,)))
    assert [getattr(stage.options, "asymmetric", None) for stage in route.stages] == [None, True, None]
    written = replace(ROUTE, trains_on=(LEARNED[0], TrainsOn(Shape.TRIPLETS, 500), LEARNED[2]))
    assert not adapted(written, Adaptation(searched=(Shape.PAIRS,))).stages[1].options.asymmetric
    unknown = replace(ROUTE, trains_on=())  # of an installed package
    assert adapted(unknown, Adaptation(searched=(Shape.PAIRS,))) == unknown


def test_dimensions_and_no_head_that_is_dropped():
    guided = stage("self-guided", name="guided", data="raw.txt", steps=1)
    stages = adapted(
        replace(ROUTE, stages=(guided, *ROUTE.stages), trains_on=()), Adaptation(dimensions=(32, 8))
    ).stages
    assert [train.options.dimensions for train in stages] == [(32, 8)] * 4
    assert stages[0].options.head_width is None
    assert not stages[1].options.head
    for train in stages:
        type(train.options).model_validate(train.options.model_dump())  # as a recipe could write them


def test_a_guide_is_for_stages_with_negatives_to_filter(folder, tmp_path):
    stages = adapted(ROUTE, Adaptation(guide="bge-small")).stages
    assert [getattr(train.options, "guide", None) for train in stages] == [None, "bge-small", None]
    assert stages[1].options.guided
    faq, words = small_base.pairs(tmp_path / "faq.tsv", 60), small_base.translations(tmp_path / "words.tsv", 60)
    for data, guided in ((faq, True), (words, False)):
        asked = request(data=(str(data),), base=(str(folder / "asks"),), guide="bge-small", output=tmp_path / "out")
        bases = load_bases(asked)
        prepared = prepare_inputs(asked, [base.encoder for base in bases], lambda line: None)
        routes, skipped = routes_from(bases, prepared, asked)
        assert all(getattr(route.training[-1].options, "guided", False) for route in routes) == guided
        said = [skip.why for skip in skipped if skip.name == "guided training"]
        assert ["guide filters the negatives of a batch" in why for why in said] == ([] if guided else [True])


def test_adapters_learn_faster():
    stages = adapted(ROUTE, Adaptation(adapters=True)).stages
    assert all(train.settings.lora for train in stages)
    assert stages[1].settings.learning_rate == pytest.approx(10 * PAIRS.settings.learning_rate)


def test_batches_of_one_label_column_that_every_column_can_fill():
    *others, labels = adapted(ROUTE, Adaptation(label_rows=(500, 80))).stages
    assert (labels.settings.mix, labels.settings.batch) == (1.0, 20)  # a quarter of the rows of the smaller one
    assert [stage.settings.mix for stage in others] == [None, None]


def test_every_route_from_every_base(folder, tmp_path, monkeypatch):
    names = (str(folder / "base"), str(folder / "asks"))
    data = small_base.pairs(tmp_path / "faq.tsv", 200)
    asked = request(data=(str(data),), output=tmp_path / "model", base=names, dimensions=(8,))
    bases = load_bases(asked)
    prepared = prepare_inputs(asked, [base.encoder for base in bases], [].append)
    routes, skipped = routes_from(bases, prepared, asked)
    assert not skipped
    alone, _ = routes_from(bases[:1], prepared, asked)
    assert [route.name for route in routes] == [
        f"{route.name} from {base}" for route in alone for base in ("base", "asks")
    ]
    assert [route.base for route in routes] == [name for _ in alone for name in names]
    assert {route.plan((), "other", 1).base for route in routes} == set(names)
    learn = [route.stages[-1].options for route in routes]
    assert [options.asymmetric for options in learn] == [False, True] * len(alone)
    assert {options.dimensions for options in learn} == {(32, 8)}  # whole vectors too
    large = [replace(base, large=1) for base in bases]
    assert all(adapted_route.stages[-1].settings.lora for adapted_route in routes_from(large, prepared, asked)[0])


def test_raw_text_has_contrastive_routes_with_short_vectors(folder, tmp_path):
    data = small_base.prose(tmp_path / "raw.txt", 200)
    asked = request(data=(str(data),), output=tmp_path / "model", base=(str(folder / "base"),), dimensions=(8,))
    bases = load_bases(asked)
    routes, skipped = routes_from(bases, prepare_inputs(asked, [bases[0].encoder], [].append), asked)
    assert {route.name for route in routes} >= {"self-guided", "simcse"}
    assert all(route.stages[-1].options.dimensions == (32, 8) for route in routes)
    assert "bootstrapped" in {skip.name for skip in skipped}


def test_a_route_that_ends_without_short_vectors_is_skipped(folder, tmp_path):
    data = small_base.translations(tmp_path / "en-xx.tsv", 200)
    asked = request(data=(str(data),), output=tmp_path / "model", base=(str(folder / "base"),), dimensions=(8,))
    bases = load_bases(asked)
    routes, skipped = routes_from(bases, prepare_inputs(asked, [bases[0].encoder], [].append), asked)
    assert [route.name for route in routes] == ["cross-lingual"]
    why = {skip.name: skip.why for skip in skipped}["mse-distillation"]
    assert why.startswith("mse-distillation cannot train vectors")
    with pytest.raises(InputError, match="Leave out") as caught:
        refuse_no_route(FitPlan({}, (), tuple(skipped)))
    assert caught.value.fix.endswith("dimensions")
