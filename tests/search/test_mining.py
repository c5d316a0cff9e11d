"""Hard negatives equal those of a slow search over all candidates."""

import numpy as np
import pytest

from sentloom.data.shapes import Shape
from sentloom.encoder import Encoder
from sentloom.errors import InputError
from sentloom.search.mining import MineSettings, mine
from tests.encoder.small_models import SENTENCES, build_model_folder
from tests.small_data import build_dataset

ROWS = [
    ("dogs in the snow", "Two dogs run across the snow."),
    ("dogs in the snow", "A dog barks at a bird."),
    ("report on monday", "The committee will publish its report."),
    ("a guitar", "A man is playing a guitar."),
    ("the train", "She asked whether the train had left."),
]


@pytest.fixture(scope="module")
def encoder(tmp_path_factory):
    return Encoder.load(build_model_folder("bert", tmp_path_factory.mktemp("model")))


@pytest.fixture
def pairs():
    return build_dataset(Shape.PAIRS, ROWS)


def slowly(encoder, corpus, settings):
    """Mine row by row, candidate by candidate."""

    def unit(text):
        vector = encoder.encode(text).astype(float)
        return vector / np.linalg.norm(vector)

    found = []
    for anchor, positive in ROWS:
        right = {other.lower() for same, other in ROWS if same == anchor} | {anchor.lower()}
        ranked = sorted(corpus, key=lambda text: -unit(anchor) @ unit(text))[: settings.depth][settings.skip :]
        limit = unit(anchor) @ unit(positive) - settings.margin
        below = [text for text in ranked if text.lower() not in right and unit(anchor) @ unit(text) <= limit]
        found.append(below[: settings.negatives])
    return found


@pytest.mark.parametrize(
    "settings",
    [
        MineSettings(),
        MineSettings(negatives=3, margin=0.0),
        MineSettings(2, 0.01, skip=2, depth=6),
        MineSettings(1, -2.0),
    ],
)
def test_negatives_are_the_nearest_that_are_not_known_positives(encoder, pairs, settings):
    corpus = [*(positive for _, positive in ROWS), *SENTENCES, "DOGS in the snow"]
    triplets, report = mine(encoder, pairs, corpus, settings, show_progress=False)
    expected = slowly(encoder, corpus, settings)
    kept = [row for row, negatives in enumerate(expected) if negatives]
    assert triplets.shape is Shape.TRIPLETS
    assert triplets.column("negatives").to_pylist() == [expected[row] for row in kept]
    assert triplets.column("anchor").to_pylist() == [ROWS[row][0] for row in kept]
    assert [triplets.place(row) for row in range(len(kept))] == [pairs.place(row) for row in kept]
    assert (report.rows, report.kept, report.negatives) == (5, len(kept), sum(map(len, expected)))


def test_other_settings_models_and_corpora_give_other_hashes(encoder, pairs):
    one = mine(encoder, pairs, SENTENCES, MineSettings(margin=-2.0), False)[0].sha256
    assert one == mine(encoder, pairs, SENTENCES, MineSettings(margin=-2.0), False)[0].sha256
    assert one != mine(encoder, pairs, SENTENCES, MineSettings(margin=-1.9), False)[0].sha256
    assert one != mine(encoder, pairs, SENTENCES[:-1], MineSettings(margin=-2.0), False)[0].sha256


def test_data_that_cannot_be_mined_are_refused(encoder, pairs):
    with pytest.raises(InputError, match="no row has a negative"):
        mine(encoder, pairs, SENTENCES, MineSettings(margin=3.0), False)
    with pytest.raises(InputError, match="its shape is texts"):
        mine(encoder, build_dataset(Shape.TEXTS, [("a",)]), SENTENCES, MineSettings(), False)
    with pytest.raises(InputError, match="depth"):
        MineSettings(skip=5, depth=5)


def test_faiss_finds_the_same_negatives(encoder, pairs):
    pytest.importorskip("faiss")
    exact, faiss = (
        mine(encoder, pairs, SENTENCES, MineSettings(2, -1.0, search=search), show_progress=False)[0]
        for search in ("exact", "faiss")
    )
    assert faiss.column("negatives").to_pylist() == exact.column("negatives").to_pylist()
