"""A thousand leaks planted in training data: all found at both places, none where there is none, and never trained on.

Training refuses such data unless the recipe says what to do with it; a fit leaves the rows out and says so.
"""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import yaml

from sentloom.data import read
from sentloom.data.dataset import FILE, LINE, Dataset
from sentloom.data.hygiene.leaks import Kind, find_leaks
from sentloom.data.shapes import COLUMNS, Shape, arrow_type
from sentloom.encoder import Encoder
from sentloom.fitting.prepare import prepare_inputs
from sentloom.fitting.request import Request
from tests.encoder.small_models import build_model_folder
from tests.faults.conftest import Tally
from tests.fitting import small_base

FAULT = "13. evaluation sentences planted in training data"
ASKED = 1_000

EACH = 200
TRAINING_ROWS = 20_000
LETTERS = np.array(list("abcdefghijklmnopqrstuvwxyzäéßø"))


def sentences(count: int, seed: int) -> list[str]:
    """Sentences of random words, capitalised, with a comma and a full stop: no two have the same words."""
    random = np.random.default_rng(seed)
    words = ["".join(word) for word in random.choice(LETTERS, (count * 6, 7))]
    return [
        f"{words[at].capitalize()} {words[at + 1]} {words[at + 2]}, {words[at + 3]} {words[at + 4]} {words[at + 5]}."
        for at in range(0, len(words), 6)
    ]


def dataset(shape: Shape, file: str, columns: list[list]) -> Dataset:
    rows = len(columns[0])
    cells = {name: pa.array(column, arrow_type(name)) for name, column in zip(COLUMNS[shape], columns, strict=True)}
    table = pa.table({**cells, FILE: pa.array([0] * rows, pa.int32()), LINE: pa.array(range(1, rows + 1), pa.int64())})
    return Dataset(shape, table, (file,), "line", "")


def write_otherwise(text: str, kind: Kind) -> str:
    return {
        Kind.EXACT: text,
        Kind.CASE: text.upper(),
        Kind.SPACING: text.replace(" ", "  ").replace(",", " ,"),
        Kind.PUNCTUATION: text.replace(",", " -").replace(".", "!"),
    }[kind]


def test_a_thousand_planted_leaks(tally: Tally) -> None:
    random = np.random.default_rng(11)
    evaluation = [sentences(3000, 1), sentences(3000, 2)]
    training = [sentences(TRAINING_ROWS, 3), sentences(TRAINING_ROWS, 4)]
    victims = random.permutation(3000)[: 5 * EACH].reshape(5, EACH)
    hosts = random.permutation(TRAINING_ROWS)[: 5 * EACH].reshape(5, EACH)
    expected: dict[Kind, set[tuple[str, str, str]]] = {}
    extra: set[tuple[str, str, str]] = set()
    for kind, rows, places in zip(
        (Kind.EXACT, Kind.CASE, Kind.SPACING, Kind.PUNCTUATION), victims, hosts, strict=False
    ):
        for row, place in zip(rows, places, strict=True):
            side, host_side = random.integers(2, size=2)
            text = evaluation[side][row]
            training[host_side][place] = write_otherwise(text, kind)
            expected.setdefault(kind, set()).add((text, f"test.tsv, line {row + 1}", f"train.tsv, line {place + 1}"))
    for row, place in zip(victims[4], hosts[4], strict=True):
        one, two = evaluation[0][row], evaluation[1][row]
        training[0][place], training[1][place] = two, one
        found = f"test.tsv, line {row + 1}", f"train.tsv, line {place + 1}"
        expected.setdefault(Kind.SWAPPED, set()).add((f"{one} | {two}", *found))
        extra |= {(one, *found), (two, *found)}  # the sentences of a pair leak with it
    expected[Kind.EXACT] |= extra
    train = dataset(Shape.PAIRS, "train.tsv", training)
    test = dataset(Shape.SCORED_PAIRS, "test.tsv", [*evaluation, [1.0] * 3000])

    leaks = find_leaks(train, [test])

    reported: dict[Kind, set[tuple[str, str, str]]] = {}
    for leak in leaks.first:
        reported.setdefault(leak.kind, set()).add((leak.text, leak.evaluation, leak.training))
    for kind, found in expected.items():
        for leak in found - (extra if kind is Kind.EXACT else set()):
            with tally.case(f"{kind}: {leak}"):
                assert leak in reported[kind]
    assert reported == expected
    assert leaks.counts == {kind: len(found) for kind, found in expected.items()}
    assert leaks.training_rows.tolist() == sorted(hosts.ravel().tolist())


def test_clean_data_has_none() -> None:
    train = dataset(Shape.PAIRS, "train.tsv", [sentences(TRAINING_ROWS, 5), sentences(TRAINING_ROWS, 6)])
    test = dataset(Shape.PAIRS, "test.tsv", [sentences(3000, 7), sentences(3000, 8)])
    leaks = find_leaks(train, [test])
    assert leaks.counts == {}
    assert leaks.first == ()
    assert len(leaks.training_rows) == 0


# --- what training makes of them ---

ROWS = 40
HOST, VICTIM = 17, 5  # rows of the training and of the evaluation file


@pytest.fixture(scope="module")
def bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_model_folder("bert", tmp_path_factory.mktemp("models") / "bert")


def write_files(folder: Path, kind: Kind) -> tuple[Path, Path]:
    """Pairs to train on, one row of which has a sentence, or swapped the pair, of the file to be scored on."""
    scored, trained = [sentences(ROWS, 1), sentences(ROWS, 2)], [sentences(ROWS, 3), sentences(ROWS, 4)]
    one, two = scored[0][VICTIM], scored[1][VICTIM]
    if kind is Kind.SWAPPED:
        trained[0][HOST], trained[1][HOST] = two, one
    else:
        trained[1][HOST] = write_otherwise(one, kind)
    rows = [(*pair, str(number % 5)) for number, pair in enumerate(zip(*scored, strict=True))]
    return (
        small_base.write_rows(folder / "train.tsv", "anchor positive", list(zip(*trained, strict=True))),
        small_base.write_rows(folder / "scored.tsv", "sentence1 sentence2 score", rows),
    )


def write_recipe(folder: Path, base: Path, **stage: object) -> Path:
    one = {"method": "contrastive", "data": "train.tsv", "batch": 4, "steps": 2, **stage}
    recipe = {"base": str(base), "stages": [one], "evaluate": {"sets": ["scored.tsv"]}}
    (folder / "recipe.yaml").write_text(yaml.safe_dump(recipe), "utf-8")
    return folder / "recipe.yaml"


@pytest.mark.parametrize("kind", [Kind.EXACT, Kind.CASE, Kind.SPACING, Kind.PUNCTUATION, Kind.SWAPPED])
def test_train_refuses_them(kind: Kind, bert: Path, tmp_path: Path, sentloom: Callable) -> None:
    write_files(tmp_path, kind)
    done = sentloom("lab", "train", write_recipe(tmp_path, bert), "-o", tmp_path / "out")
    assert done.returncode == 2
    said = " ".join(done.stderr.split())
    assert f"train.tsv, line {HOST + 2}" in said
    assert "scored.tsv" in said
    assert any(column[VICTIM] in said for column in (sentences(ROWS, 1), sentences(ROWS, 2)))
    assert "drop_leaks: true" in said
    assert "transductive: true" in said
    assert not list(tmp_path.rglob("*.safetensors"))


def test_train_leaves_them_out_when_told(bert: Path, tmp_path: Path, sentloom: Callable) -> None:
    write_files(tmp_path, Kind.CASE)
    assert (
        sentloom("lab", "train", write_recipe(tmp_path, bert, drop_leaks=True), "-o", tmp_path / "out").returncode == 0
    )
    (run,) = json.loads((tmp_path / "out/results.json").read_text("utf-8"))["runs"]
    data = run["stages"][0]["data"]
    assert data["rows"] == ROWS - 1
    assert data["skipped"] == {"rows with sentences of the evaluation sets": 1}
    assert "transductive" not in (tmp_path / "out/results.md").read_text("utf-8")


def test_train_uses_them_when_told_and_says_so(bert: Path, tmp_path: Path, sentloom: Callable) -> None:
    write_files(tmp_path, Kind.CASE)
    assert (
        sentloom("lab", "train", write_recipe(tmp_path, bert, transductive=True), "-o", tmp_path / "out").returncode
        == 0
    )
    (run,) = json.loads((tmp_path / "out/results.json").read_text("utf-8"))["runs"]
    assert (run["stages"][0]["data"]["rows"], run["stages"][0]["leaked"]) == (ROWS, 1)
    assert "transductive" in (tmp_path / "out/results.md").read_text("utf-8")


def test_a_fit_leaves_them_out_and_says_so(tmp_path: Path) -> None:
    """All that a fit does before it trains, on pairs of which some are also in the set that decides."""
    base = small_base.build_base(tmp_path)
    data, told = small_base.pairs(tmp_path / "pairs.tsv"), []
    rows = read(data).take(range(0, 60, 3))
    leaked = [*rows["anchor"][:10], *rows["positive"][10:]]
    asked = [(text.upper(), f"{text} kalo", str(number % 5)) for number, text in enumerate(leaked)]
    scored = small_base.write_rows(tmp_path / "asked.tsv", "sentence1 sentence2 score", asked)
    request = Request(
        data=(str(data),),
        output=tmp_path / "model",
        base=(str(base),),
        budget="100steps",
        against=(str(scored),),
        seed=0,
    )
    ground = prepare_inputs(request, [Encoder.load(base)], told.append)
    assert any(f"{len(leaked)} rows with sentences of {scored} are left out" in line for line in told)
    for part in ground.splits:
        for side in (part.train, part.validation, part.test):
            assert not set(leaked) & {text for _, _, text in side.sentences()}
