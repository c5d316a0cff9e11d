"""Hard negatives equal those of a slow search over all candidates."""

from functools import cache

import numpy as np
import pytest

from sentloom.data.shapes import Shape
from sentloom.encoder import Encoder
from sentloom.errors import InputError, checked
from sentloom.search.cross_encoder import CrossEncoder
from sentloom.search.mining import MineSettings, mine
from tests.encoder.small_models import SENTENCES, build_model_folder
from tests.search.small_cross_encoders import build_cross_encoder
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


def slowly(encoder, corpus, settings, guide=None):
    """Mine row by row, candidate by candidate."""

    @cache
    def unit(text, encoder=encoder):
        vector = encoder.encode(text).astype(float)
        return vector / np.linalg.norm(vector)

    def cosine(left, right, encoder=encoder):
        return unit(left, encoder) @ unit(right, encoder)

    def is_far(anchor, positive, text, encoder):
        own = cosine(anchor, positive, encoder)
        return cosine(anchor, text, encoder) <= min(own - settings.margin, (settings.at_most or 9) * own)

    negatives = []
    for anchor, positive in ROWS:
        right = {other.lower() for same, other in ROWS if same == anchor} | {anchor.lower()}
        ranked = sorted(corpus, key=lambda text: -unit(anchor) @ unit(text))[: settings.depth][settings.skip :]
        below = [
            text
            for text in ranked
            if text.lower() not in right
            and all(is_far(anchor, positive, text, model) for model in (encoder, guide) if model is not None)
        ]
        negatives.append(below[: settings.negatives])
    return negatives


@pytest.mark.parametrize(
    "settings",
    [
        MineSettings(),
        MineSettings(negatives=3, margin=0.0),
        MineSettings(negatives=2, margin=0.01, skip=2, depth=6),
        MineSettings(margin=-2.0),
        MineSettings(negatives=2, margin=-2.0, at_most=0.9),
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


def test_pairs_without_a_negative_can_be_kept(encoder, pairs):
    strict = MineSettings(negatives=2, margin=-2.0, at_most=0.9)
    triplets, report = mine(
        encoder, pairs, SENTENCES, strict.model_copy(update={"keep_all": True}), show_progress=False
    )
    expected = slowly(encoder, SENTENCES, strict)
    assert [] in expected
    assert triplets.column("negatives").to_pylist() == expected
    assert triplets.column("anchor").to_pylist() == [anchor for anchor, _ in ROWS]
    assert (report.rows, report.kept) == (5, sum(map(bool, expected)))


def test_other_settings_models_and_corpora_give_other_hashes(encoder, pairs):
    digest = mine(encoder, pairs, SENTENCES, MineSettings(margin=-2.0), False)[0].sha256
    assert digest == mine(encoder, pairs, SENTENCES, MineSettings(margin=-2.0), False)[0].sha256
    assert digest != mine(encoder, pairs, SENTENCES, MineSettings(margin=-1.9), False)[0].sha256
    assert digest != mine(encoder, pairs, SENTENCES[:-1], MineSettings(margin=-2.0), False)[0].sha256


def test_data_that_cannot_be_mined_are_refused(encoder, pairs):
    with pytest.raises(InputError, match="no row has a negative"):
        mine(encoder, pairs, SENTENCES, MineSettings(margin=3.0), False)
    with pytest.raises(InputError, match="its shape is texts"):
        mine(encoder, build_dataset(Shape.TEXTS, [("a",)]), SENTENCES, MineSettings(), False)
    with pytest.raises(InputError, match="depth is 5, which must be more than skip, 5"):
        checked(MineSettings, "mine", {"skip": 5, "depth": 5})


def test_faiss_finds_the_same_negatives(encoder, pairs):
    pytest.importorskip("faiss")
    exact, faiss = (
        mine(encoder, pairs, SENTENCES, MineSettings(negatives=2, margin=-1.0, search=search), show_progress=False)[0]
        for search in ("exact", "faiss")
    )
    assert faiss.column("negatives").to_pylist() == exact.column("negatives").to_pylist()


def test_a_guide_must_find_a_negative_far_as_well(encoder, pairs, tmp_path):
    guide = Encoder.load(build_model_folder("distilbert", tmp_path / "guide"))
    corpus, settings = [*(positive for _, positive in ROWS), *SENTENCES], MineSettings(negatives=3, margin=0.0)
    triplets, report = mine(encoder, pairs, corpus, settings, show_progress=False, guide=guide)
    expected = [row for row in slowly(encoder, corpus, settings, guide) if row]
    assert triplets.column("negatives").to_pylist() == expected
    alone, without = mine(encoder, pairs, corpus, settings, show_progress=False)
    assert report.too_near > without.too_near
    assert triplets.sha256 != alone.sha256


@pytest.fixture(scope="module")
def teacher(tmp_path_factory):
    return CrossEncoder.load(build_cross_encoder(tmp_path_factory.mktemp("teacher")))


@pytest.mark.parametrize(("negatives", "margin"), [(1, 0.0), (2, 0.0), (2, 0.3), (3, -9.0)])
def test_a_teacher_must_score_a_negative_below_the_positive(encoder, pairs, teacher, negatives, margin):
    corpus = [*(positive for _, positive in ROWS), *SENTENCES]
    settings = MineSettings(negatives=negatives, margin=0.0, teacher_margin=margin)
    triplets, report = mine(encoder, pairs, corpus, settings, show_progress=False, teacher=teacher)
    expected, rejected = [], 0
    for (anchor, positive), candidates in zip(
        ROWS, slowly(encoder, corpus, MineSettings(negatives=50, margin=0.0)), strict=True
    ):
        limit, kept = teacher.score([(anchor, positive)])[0] - margin, []
        for text in candidates:  # one after the other, until there are enough
            if len(kept) < negatives:
                low = teacher.score([(anchor, text)])[0] <= limit
                kept += [text] if low else []
                rejected += not low
        expected += [kept] if kept else []
    assert triplets.column("negatives").to_pylist() == expected
    assert report.rejected == rejected
    alone, without = mine(encoder, pairs, corpus, settings, show_progress=False)
    assert without.rejected == 0
    assert (report.too_near, report.known_right) == (without.too_near, without.known_right)
    assert triplets.sha256 != alone.sha256
    assert rejected > 0 or margin <= 0


def test_a_teacher_scores_no_more_than_it_must(encoder, pairs, teacher, monkeypatch):
    asked, score = [], CrossEncoder.score
    monkeypatch.setattr(CrossEncoder, "score", lambda self, pairs: asked.extend(pairs) or score(self, pairs))
    corpus = [*(positive for _, positive in ROWS), *SENTENCES]
    settings = MineSettings(margin=-2.0, teacher_margin=-99.0)
    _, report = mine(encoder, pairs, corpus, settings, show_progress=False, teacher=teacher)
    assert len(asked) <= len(ROWS) + report.negatives  # the positives, and one candidate per row
    asked.clear()
    mine(encoder, pairs, corpus, settings, show_progress=False, teacher=teacher)
    assert not asked  # scores are cached


@pytest.mark.parametrize("share", [0, -0.5, 1.1])
def test_a_share_of_the_positives_cosine(share):
    with pytest.raises(InputError, match="at_most is"):
        checked(MineSettings, "mine", {"at_most": share})
