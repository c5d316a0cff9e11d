"""Which routes there are: by shape, language and resources; stages in the papers' order."""

from dataclasses import replace

import pytest

from sentloom.data import read
from sentloom.data.shapes import Shape
from sentloom.data.writers import write
from sentloom.engine.building import stage
from sentloom.engine.plan import to_yaml
from sentloom.engine.stages import Synthesize, Train
from sentloom.errors import InputError
from sentloom.fitting.bases import Resources, Teacher, WriterResource
from sentloom.fitting.routes import Route, batch_size, find_routes
from sentloom.fitting.training_sets import LanguageFile, TrainingSet
from sentloom.lab.recipe import read_recipe
from tests.fitting import small_base

RESOURCES = Resources(
    "embedded", pooling="mean", dropout=0.1, translator=None, writer=WriterResource("", "there is none", named=False)
)


def training_set(shape, rows=1000, language="en"):
    return TrainingSet(shape, rows, (f"{shape}.parquet",), language)


def names(training_sets, resources=RESOURCES):
    routes, skipped = find_routes(training_sets, resources)
    return [route.name for route in routes], [skip.name for skip in skipped]


def test_raw_english_text():
    expected = ["simcse", "self-guided", "bootstrapped"]
    unused = ["teacher", "teacher of sentences", "spans", "queries", "queries with a teacher", "synthetic"]
    assert names([training_set(Shape.TEXTS)]) == (expected, unused)


def test_a_teacher_that_was_shown_to_rank_better_has_a_route():
    pairs = [training_set(Shape.PAIRS)]
    routes, skipped = find_routes(pairs, replace(RESOURCES, teacher=Teacher("reranker")))
    (taught,) = (route for route in routes if route.name == "pairs with a teacher")
    mine, learn = taught.stages
    assert (mine.method, learn.method, learn.options.teacher) == ("mine", "distill", "reranker")
    assert mine.options.negatives == learn.options.negatives == 4
    assert learn.data == ("stage:candidates",)
    assert not skipped
    routes, skipped = find_routes(pairs, replace(RESOURCES, teacher=Teacher("reranker", "it is worse")))
    assert [(skip.name, skip.why) for skip in skipped] == [("pairs with a teacher", "it is worse")]
    assert "pairs with a teacher" not in [route.name for route in routes]
    assert "pairs with a teacher" not in names([training_set(Shape.TRIPLETS)])[0]


WRITING = replace(RESOURCES, writer=WriterResource("writer"))


def route(name, training_sets, resources=WRITING):
    return next(candidate for candidate in find_routes(training_sets, resources)[0] if candidate.name == name)


def test_what_a_writer_writes_comes_first_if_the_user_named_it():
    documents = [replace(training_set(Shape.TEXTS), passages=5000)]
    own, other = ["queries", "synthetic"], ["self-guided", "bootstrapped"]
    assert names(documents, WRITING)[0] == [*own, "spans", "simcse", *other]
    unasked = replace(RESOURCES, writer=WriterResource("smollm2", named=False))
    assert names(documents, unasked)[0] == ["spans", "simcse", *own, *other]
    german, skipped = names([replace(documents[0], language="de")], unasked)
    assert "queries" in german  # which it was asked for in German
    assert "synthetic" in skipped  # which it has learned in English


def test_queries_are_written_for_a_sample_and_learned_like_pairs():
    built = route("queries", [training_set(Shape.TEXTS, rows=40_000)])
    written, learn = built.stages
    assert (written.method, written.model, written.data) == ("synthesize", "writer", ("texts.parquet",))
    assert (written.options.kinds, written.options.encoder, written.options.shots) == (("query",), "embedded", None)
    assert (written.options.shuffle, written.data_share) == (True, 0.25)  # a query finds its text among 10,000
    assert (learn.method, learn.options.directions, learn.data) == ("contrastive", "both", ("stage:written-queries",))
    assert built.makers == (written,)
    written, learn = route("synthetic", [training_set(Shape.TEXTS)]).stages
    assert written.options.kinds == ("entailment", "contradiction")
    assert (written.options.shuffle, written.data_share) == (True, 1.0)


def test_few_pairs_show_the_writer_what_to_write_and_are_learned_last():
    raw, few = training_set(Shape.TEXTS), training_set(Shape.PAIRS, rows=999)
    built = route("queries, then pairs", [raw, few])
    assert [part.method for part in built.stages] == ["synthesize", "contrastive", "contrastive"]
    assert built.stages[0].options.shots == "pairs.parquet"
    assert route("synthetic, then pairs", [raw, few]).stages[0].options.shots is None  # they are no entailments
    many = training_set(Shape.PAIRS, rows=1000)
    routes, skipped = find_routes([raw, many], WRITING)
    assert not any(isinstance(part, Synthesize) for built in routes for part in built.stages)
    why = "there are 1,000 training pairs, and something is written only beside fewer than 1,000"
    assert {skip.name for skip in skipped if skip.why == why} == {"queries", "queries with a teacher", "synthetic"}


def test_for_pairs_alone_a_writer_that_the_user_named_writes_for_their_answers(tmp_path):
    rows = read(small_base.pairs(tmp_path / "faq.tsv", 40))
    write(rows, tmp_path / "pairs.parquet")
    pairs = [replace(training_set(Shape.PAIRS, rows=40), files=(str(tmp_path / "pairs.parquet"),))]
    written, *_ = route("queries, then pairs", pairs).stages
    texts, _ = written.read([])
    assert sorted(texts["text"]) == sorted(rows["positive"])
    unasked = replace(RESOURCES, writer=WriterResource("smollm2", named=False))
    assert names(pairs, unasked) == (["pairs"], ["pairs with mined negatives"])


def test_a_teacher_of_queries_needs_a_writer_and_to_be_shown_to_rank_better():
    raw = [training_set(Shape.TEXTS)]
    built = route("queries with a teacher", raw, replace(WRITING, teacher=Teacher("reranker")))
    written, mine, learn = built.stages
    assert built.makers == (written, mine)
    assert (mine.data, mine.options.corpus, mine.model) == (("stage:written-queries",), ("texts.parquet",), "embedded")
    assert (learn.method, learn.options.teacher, learn.data) == ("distill", "reranker", ("stage:candidates",))
    for teacher, why in ((None, "name one with --teacher"), (Teacher("reranker", "it is worse"), "it is worse")):
        _, skipped = find_routes(raw, replace(WRITING, teacher=teacher))
        assert [skip.why.endswith(why) for skip in skipped if skip.name == "queries with a teacher"] == [True]
    _, skipped = find_routes(raw, replace(RESOURCES, teacher=Teacher("reranker")))
    said = "it learns from what a writer writes: there is none"
    assert [skip.why for skip in skipped if skip.name == "queries with a teacher"] == [said]


def test_only_what_needs_no_trained_model_is_made_before_the_race():
    learn = stage("contrastive", name="learn", data="faq.tsv", batch=8)
    views = stage("views", name="views", kind="neighbours", data="raw.txt")
    later = stage("mine", name="later", data="faq.tsv")  # by the encoder of the stage before
    of_views = stage("mine", name="of-views", model="embedded", data="stage:views")
    ready = stage("mine", name="ready", model="embedded", data="faq.tsv")
    assert Route("all", "", (views, learn, later, of_views, ready, learn)).makers == (views, of_views, ready)


def test_documents_have_routes_on_their_passages():
    documents = TrainingSet(Shape.TEXTS, 1000, ("raw.parquet",), "en", length=128, tokens=100.0, passages=5000)
    spans = route("spans", [documents])
    views, learn = spans.stages
    assert (views.method, views.options.kind, spans.trains_on[0].rows) == ("views", "spans", 1000)
    assert (learn.data, learn.max_length) == (("stage:spans-pairs",), 128)


def test_encoders_that_teach_have_the_first_routes():
    taught = replace(RESOURCES, sources=("bge-small", "models/own"))
    documents = [replace(training_set(Shape.TEXTS), passages=5000)]
    long, skipped = names(documents, taught)
    assert (long[0], skipped[0]) == ("teacher of sentences", "teacher")
    short, skipped = names([training_set(Shape.TEXTS)], taught)
    assert (short[0], skipped[0]) == ("teacher", "teacher of sentences")
    (learn,) = route("teacher", [training_set(Shape.TEXTS)], taught).stages
    assert (learn.method, learn.options.sources, learn.data) == ("teacher", taught.sources, ("texts.parquet",))
    views, mine, learn = route("teacher of sentences", documents, taught).stages
    assert (views.options.kind, mine.data, mine.model) == ("sentences", ("stage:sentences",), "embedded")
    assert (learn.method, learn.preset, learn.data) == ("teacher", "ranking", ("stage:ranked",))
    assert (mine.options.negatives, learn.settings.batch) == (40, 24)
    assert "bge-small and own" in route("teacher of sentences", documents, taught).why
    first, *_ = names([*documents, training_set(Shape.PAIRS)], taught)
    assert first[:2] == ["pairs", "teacher of sentences, then pairs"]
    assert names([training_set(Shape.PAIRS)], taught)[0][:2] == ["pairs", "teacher, then pairs"]


def test_encoders_that_teach_rank_texts_for_what_a_writer_wrote():
    taught = replace(WRITING, sources=("bge-small",), teacher=Teacher("reranker"))
    written, mine, learn = route("queries with a teacher", [training_set(Shape.TEXTS)], taught).stages
    assert (written.options.kinds, mine.data) == (("query",), ("stage:written-queries",))
    assert (learn.method, learn.options.sources) == ("teacher", ("bge-small",))


def test_the_vector_that_self_guided_learning_trains_is_the_bases_own():
    for pooling, vector in (("mean", "pooled"), ("first", "first"), (None, "first")):
        routes, _ = find_routes([training_set(Shape.TEXTS)], replace(RESOURCES, pooling=pooling))
        (self_guided,) = (route for route in routes if route.name == "self-guided")
        assert self_guided.stages[0].options.vector == vector


def test_a_base_that_projects_is_a_reason():
    _, skipped = find_routes([training_set(Shape.TEXTS)], replace(RESOURCES, projection=True))
    assert "self-guided" in {skip.name for skip in skipped}


def test_raw_text_that_cannot_be_translated_of_a_base_without_dropout():
    routes, skipped = find_routes(
        [training_set(Shape.TEXTS, language="de")],
        Resources("embedded", "first", 0.0, "no translator", WriterResource("writer")),
    )
    assert [route.name for route in routes] == ["queries", "synthetic", "self-guided"]
    lacking = {"teacher", "teacher of sentences", "queries with a teacher", "spans", "simcse", "bootstrapped"}
    assert {skip.name for skip in skipped} == lacking
    assert "English" in next(skip.why for skip in skipped if skip.name == "bootstrapped")


def test_the_translator_that_is_missing_is_said():
    _, skipped = find_routes(
        [training_set(Shape.TEXTS)], Resources("embedded", "mean", 0.1, "it is missing", RESOURCES.writer)
    )
    assert "it is missing" in [skip.why for skip in skipped]


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        (Shape.PAIRS, ["pairs", "pairs with mined negatives"]),
        (Shape.CLASSIFICATION, ["labels"]),
        (Shape.SCORED_PAIRS, ["scores", "scores with angles"]),
        (Shape.TRIPLETS, ["triplets", "triplets as pairs"]),
        (Shape.NLI, ["nli", "nli classification"]),
        (Shape.PARALLEL, ["cross-lingual", "mse-distillation"]),
    ],
)
def test_one_labelled_shape(shape, expected):
    assert names([training_set(shape)])[0] == expected


@pytest.mark.parametrize(
    ("shape", "main", "method", "batch"),
    [
        (Shape.PAIRS, "pairs", "contrastive", 32),
        (Shape.CLASSIFICATION, "labels", "supervised", 64),
        (Shape.SCORED_PAIRS, "scores", "cosent", 16),
        (Shape.TRIPLETS, "triplets", "contrastive", 32),
        (Shape.NLI, "nli", "contrastive", 32),
    ],
)
def test_several_languages_have_a_route_with_batches_of_one_each(shape, main, method, batch):
    files = tuple(LanguageFile(code, rows, f"{code}.parquet") for code, rows in (("de", 600), ("en", 200)))
    whole = replace(training_set(shape), language_files=files)
    routes = find_routes([whole], RESOURCES)[0]
    plain, last = routes[0], routes[-1]
    assert (plain.name, last.name) == (main, f"{main} by language")
    (learn,) = last.stages
    assert (learn.method, learn.data, learn.settings.mix) == (method, ("de.parquet", "en.parquet"), 1.0)
    assert (plain.stages[0].settings.batch, learn.settings.batch) == (
        batch,
        min(batch, 50),
    )  # a quarter of the smaller language
    assert last.trains_on == plain.trains_on
    first = find_routes([training_set(Shape.PARALLEL), whole], RESOURCES)[0]
    assert f"cross-lingual, then {main} by language" in [route.name for route in first]


def test_several_shapes_become_stages_in_the_papers_order():
    training_sets = [training_set(shape) for shape in (Shape.NLI, Shape.PAIRS, Shape.TEXTS, Shape.PARALLEL)]
    routes, skipped = find_routes(training_sets, RESOURCES)
    assert routes[0].name == "cross-lingual, then pairs, then nli"
    assert routes[1].name == "simcse, then cross-lingual, then pairs, then nli"
    assert [stage.method for stage in routes[1].stages] == ["simcse", "cross-lingual", "contrastive", "contrastive"]
    assert routes[2].name.startswith("self-guided, then")
    assert {"bootstrapped", "teacher"} <= {skip.name for skip in skipped}  # two before the labels, and no more
    assert [learned.shape for learned in routes[1].trains_on] == [Shape.TEXTS, Shape.PARALLEL, Shape.PAIRS, Shape.NLI]
    assert [route.name for route in routes[-3:]] == ["cross-lingual", "pairs", "nli"]


def test_what_a_route_needs_first_is_an_earlier_stage():
    _, mined = find_routes([training_set(Shape.PAIRS)], RESOURCES)[0]
    mine, learn = mined.stages
    assert (mine.method, mine.model, mine.data) == ("mine", "embedded", ("pairs.parquet",))
    assert (mine.options.at_most, mine.options.margin, mine.options.guide) == (0.95, 0.0, None)
    assert (learn.options.guided, learn.options.guide) == (False, None)
    assert (learn.method, learn.data) == ("contrastive", (f"stage:{mine.name}",))
    *_, bootstrapped = find_routes([training_set(Shape.TEXTS)], RESOURCES)[0]
    views, learn = bootstrapped.stages
    assert (views.method, views.options.kind, learn.data) == ("views", "back-translation", (f"stage:{views.name}",))


def test_names_are_different_and_every_training_stage_knows_its_data():
    training_sets = [
        training_set(shape) for shape in (Shape.TEXTS, Shape.PARALLEL, Shape.PAIRS, Shape.TRIPLETS, Shape.NLI)
    ]
    routes, _ = find_routes(training_sets, Resources("embedded", "first", 0.1, None, WriterResource("writer")))
    assert len({route.name for route in routes}) == len(routes)
    for route in routes:
        assert len({part.name for part in route.stages}) == len(route.stages)
        assert len(route.plan([], "embedded", 1).training) == len(route.trains_on)
        assert isinstance(route.stages[-1], Train)


def test_every_run_is_a_recipe(tmp_path):
    training_sets = [training_set(shape) for shape in (Shape.TEXTS, Shape.PARALLEL, Shape.PAIRS, Shape.TRIPLETS)]
    for route in find_routes(training_sets, RESOURCES)[0]:
        steps = [40 + number for number in range(len(route.trains_on))]
        plan = route.plan(steps, "embedded", 7)
        assert [train.settings.steps for train in plan.training] == steps
        assert (plan.base, plan.seeds) == ("embedded", (7,))
        assert plan.training[0].settings.log_every == 2
        (tmp_path / "run.yaml").write_text(to_yaml(plan), "utf-8")
        assert read_recipe(tmp_path / "run.yaml").resolve() == plan


class Installed:
    """An entry point of an installed package."""

    name, value, dist = "mine", "package:routes", None

    def __init__(self, loaded):
        self.loaded = loaded

    def load(self):
        return self.loaded


def test_installed_packages_add_routes(monkeypatch):
    def more(training_sets, resources):
        assert resources is RESOURCES
        for data in training_sets:
            learn = stage("contrastive", name="own", data=list(data.files), batch=8)
            yield Route("own", "because it can", (learn,))

    monkeypatch.setattr(
        "sentloom.fitting.routes.entry_points", lambda group: [Installed(more)] if group == "sentloom.routes" else []
    )
    assert names([training_set(Shape.TRIPLETS)])[0] == ["triplets", "triplets as pairs", "own"]
    monkeypatch.setattr("sentloom.fitting.routes.entry_points", lambda group: [Installed(more), Installed(more)])
    with pytest.raises(InputError, match="two routes are named 'own'"):
        find_routes([training_set(Shape.TRIPLETS)], RESOURCES)
    monkeypatch.setattr(
        "sentloom.fitting.routes.entry_points", lambda group: [Installed(lambda sets, resources: 1 / 0)]
    )
    with pytest.raises(InputError, match="entry point mine of package:routes: ZeroDivisionError"):
        find_routes([training_set(Shape.TRIPLETS)], RESOURCES)


def test_few_pairs_have_no_route_with_mined_negatives():
    routes, skipped = find_routes([training_set(Shape.PAIRS, rows=99)], RESOURCES)
    assert [route.name for route in routes] == ["pairs"]
    why = "there are 99 training pairs, and it needs 100"
    assert [(skip.name, skip.why) for skip in skipped] == [("pairs with mined negatives", why)]


def test_mined_negatives_are_trained_with_the_settings_of_pairs():
    plain, mined = find_routes([training_set(Shape.PAIRS)], RESOURCES)[0]
    (own,), (taught,) = plain.training, mined.training
    assert own.settings == taught.settings
    assert (own.options.directions, taught.options.directions) == ("both", "both")


def test_a_guide_filters_mined_negatives_and_pairs_without_any_are_kept():
    _, mined = find_routes([training_set(Shape.PAIRS)], replace(RESOURCES, guide="bge-small"))[0]
    assert mined.stages[0].options.guide == "bge-small"
    assert mined.stages[0].options.keep_all


def test_triplets_are_trained_like_pairs_with_and_without_their_negatives():
    data = TrainingSet(Shape.TRIPLETS, 1000, ("faq.parquet",), "en", tokens=1000.0, negatives=3)
    (pairs,) = find_routes([training_set(Shape.PAIRS)], RESOURCES)[0][0].training
    (own,), (without,) = (route.training for route in find_routes([data], RESOURCES)[0])
    assert (own.options.negatives, without.options.negatives) == (3, 0)
    assert [train.settings.learning_rate for train in (own, without)] == [pairs.settings.learning_rate] * 2
    assert [train.options.directions for train in (own, without)] == ["both", "both"]
    assert (own.settings.batch, without.settings.batch) == (16, 32)  # 400 tokens of a row are left
    assert own.data == without.data


def test_long_rows_have_small_batches():
    assert [batch_size(1000, tokens) for tokens in (10.0, 256.0, 512.0, 5000.0)] == [64, 64, 32, 8]
    assert batch_size(20, 5000.0) == 5  # few rows
    long = TrainingSet(Shape.PAIRS, 1000, ("faq.parquet",), "en", length=512, tokens=512.0)
    assert find_routes([long], RESOURCES)[0][0].stages[0].settings.batch == 32
    texts = TrainingSet(Shape.TEXTS, 1000, ("raw.parquet",), "en", length=128, tokens=128.0)
    assert route("simcse", [texts], RESOURCES).stages[0].settings.batch == 64


def test_a_step_that_does_not_fit_into_memory_runs_in_chunks():
    data = TrainingSet(Shape.PAIRS, 1000, ("faq.parquet",), "en", length=512, tokens=500.0, fitting=6000)
    settings = find_routes([data], RESOURCES)[0][0].stages[0].settings
    assert (settings.batch, settings.chunk) == (32, 12)
    assert find_routes([replace(data, fitting=16_000)], RESOURCES)[0][0].stages[0].settings.chunk is None


@pytest.mark.parametrize(("fitting", "checkpointed"), [(400, True), (500, False)])
def test_activations_of_rows_that_do_not_fit_into_memory_are_computed_twice(fitting, checkpointed):
    data = TrainingSet(Shape.PAIRS, 1000, ("faq.parquet",), "en", length=512, tokens=500.0, fitting=fitting)
    settings = find_routes([data], RESOURCES)[0][0].stages[0].settings
    assert (settings.chunk, settings.activation_checkpointing) == (1, checkpointed)


def test_all_hard_negatives_of_a_row_are_used_up_to_four():
    for most, used in ((1, 1), (3, 3), (9, 4)):
        data = TrainingSet(Shape.TRIPLETS, 1000, ("triplets.parquet",), "en", negatives=most)
        route, _ = find_routes([data], RESOURCES)[0]
        assert route.stages[0].options.negatives == used


def test_few_rows_have_small_batches():
    (route,) = find_routes([training_set(Shape.CLASSIFICATION, rows=120)], RESOURCES)[0]
    assert route.stages[0].settings.batch == 30
