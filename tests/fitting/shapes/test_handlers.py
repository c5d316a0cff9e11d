"""Every shape has an answer to everything that `fit` asks of it: a shape that is added is tested here too."""

from dataclasses import replace

import pytest

from sentloom.data.cells import Chunk, make_batch
from sentloom.data.findings import Findings
from sentloom.data.hygiene.inspection import inspect
from sentloom.data.layout import ShapeRequest, layout_of
from sentloom.data.shapes import COLUMNS, Kind, Shape, form_of
from sentloom.engine.building import stage
from sentloom.evaluation.user_tasks import data_task
from sentloom.fitting.routes import find_routes
from sentloom.fitting.shapes import handler, handler_of
from sentloom.fitting.shapes.graded import GRADED
from sentloom.fitting.split import Split
from sentloom.fitting.tasks import held_out, held_out_part, refuse_one_value, task_label
from sentloom.fitting.training_sets import TrainingSet
from sentloom.methods import METHODS
from tests.fitting.test_routes import RESOURCES
from tests.small_data import build_dataset

WORDS = "one two three four five six seven eight nine ten eleven twelve".split()


def cell(kind, row, place):
    """A cell of a made-up row; every value of labels and scores occurs several times."""
    text = f"{WORDS[row % 12]} {WORDS[(row + place) % 12]} in the {WORDS[row // 12]} house of the {WORDS[place]} street"
    values = {Kind.TEXT: text, Kind.NEGATIVES: [f"not {text}"], Kind.SCORE: float(row % 3), Kind.LABEL: WORDS[row % 4]}
    return values.get(kind, "contradiction" if row % 2 else "entailment")


def rows_of(shape, count=48, start=0):
    """Rows of a shape, from what its form says about its columns."""
    kinds = form_of(shape).columns.values()
    rows = range(start, start + count)
    if Kind.NLI_LABEL in kinds:  # a premise has an entailment and a contradiction
        return build_dataset(
            shape, [(cell(Kind.TEXT, row // 2, 0), cell(Kind.TEXT, row, 1), cell(None, row, 2)) for row in rows]
        )
    return build_dataset(shape, [tuple(cell(kind, row, at) for at, kind in enumerate(kinds)) for row in rows])


def split_of(shape):
    parts = [rows_of(shape, count, start) for count, start in ((48, 0), (16, 48), (16, 64), (4, 80))]
    return Split(*parts)


@pytest.mark.parametrize("shape", Shape)
def test_a_file_with_its_canonical_columns_has_this_shape(shape):
    names = tuple(COLUMNS[shape])
    layout = layout_of("a.csv", names, lambda at: False, ShapeRequest())
    assert (layout.shape, layout.used) == (shape, dict(zip(names, names, strict=True)))
    cells = {at: [cell(kind, row, at) for row in range(3)] for at, kind in enumerate(form_of(shape).columns.values())}
    batch = make_batch(layout, Chunk((2, 3, 4), cells), 0, Findings())
    assert batch.num_rows == 3


@pytest.mark.parametrize("shape", Shape)
def test_its_rows_are_good_for_something(shape):
    data, own = rows_of(shape), handler_of(shape)
    assert own is handler(data)
    assert own.shape is shape
    assert own.joined(data) is data
    assert own.usable(data, inspect(data)).shape in (shape, Shape.PAIRS)
    assert own.lack(inspect(data)) is None


@pytest.mark.parametrize("shape", Shape)
def test_what_methods_take_of_it_can_be_trained_by_its_routes(shape):
    form = handler_of(shape).training_form(rows_of(shape))
    own = handler(form)
    assert [part.shape for part in own.training_parts(form)] == [form.shape]
    for training in (own.main(data := TrainingSet(shape, 48, ("rows.parquet",), "en")), *own.others(data)):
        assert training.name
        assert training.why
        made = stage(name="train", data=["rows.parquet"], **training.settings)
        assert made.fit(form).shape in METHODS[made.method].SHAPES
    routes, _ = find_routes([data], RESOURCES)
    assert routes[0].name == own.main(data).name
    assert routes[0].trains_on[0].shape is shape


@pytest.mark.parametrize("side", ["validation", "test"])
@pytest.mark.parametrize("shape", Shape)
def test_its_held_out_rows_ask_something_and_the_report_has_words_for_it(shape, side):
    own, split = handler_of(shape), split_of(shape)
    refuse_one_value("rows.csv", split.test)
    part = held_out_part("rows.csv", split, side, [], 1000)
    assert part.labelled is own.labelled
    assert part.tasks
    assert all(task.item_count > 0 for task in part.tasks)
    assert all(task_label(task) != task.main for task in part.tasks)
    assert {*own.shown_columns, own.searched_column} <= {*COLUMNS[shape]}
    assert bool(own.candidates(split.test)) is own.searches
    if (matching := own.matching(part, split, 1000)) is not None:
        right = [
            any(matching.is_right(query, at) for at in range(len(matching.documents)))
            for query in range(len(matching.queries))
        ]
        assert all(right)


def test_the_order_of_training_is_the_papers():
    order = sorted(Shape, key=lambda shape: handler_of(shape).place)
    assert [str(shape) for shape in order] == [
        *("texts", "parallel", "classification", "pairs", "scored-pairs", "triplets", "nli"),
    ]


def test_scored_pairs_of_queries_and_documents_are_a_search():
    rows = rows_of(Shape.SCORED_PAIRS)
    graded = replace(rows, used={"sentence1": "Query", "sentence2": "text", "score": "relevance"})
    assert handler(rows) is handler_of(Shape.SCORED_PAIRS)
    assert handler(graded) is GRADED
    assert [task_label(task) for task in held_out("a.csv", graded).tasks] == ["a query finds its answers among 48"]
    assert GRADED.training_form(graded).shape is Shape.PAIRS
    assert GRADED.training_form(graded)["anchor"] == [
        query for query, score in zip(rows["sentence1"], rows["score"], strict=True) if score
    ]


def test_what_evaluate_asks_of_a_shape_is_what_fit_asks():
    rows = rows_of(Shape.PAIRS)
    assert held_out("a.csv", rows).tasks[0].sha256 == data_task(None, "a.csv", "a.csv", rows, None).sha256
