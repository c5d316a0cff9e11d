"""Retrieved pairs: BM25's first candidates, without the sentence itself, that the judge finds entailed."""

import numpy as np
import pytest
import yaml
from accelerate import Accelerator

from sentloom.engine.artifacts import DATA, open_dataset
from sentloom.engine.runner import prepare
from sentloom.engine.stages.mine import candidates, entailed
from sentloom.errors import InputError, ModelError
from sentloom.lab.recipe import read_recipe
from sentloom.lab.tiny import write_tiny_models
from sentloom.search.cross_encoder import load_nli_judge
from sentloom.search.words import WordIndex

TEXTS = ["a red kite", "the red kite flies", "two hotels", "a hotel", "a kite", "nothing here shares"]


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    (folder / "texts.txt").write_text("\n".join(TEXTS * 3))
    return write_tiny_models(folder / "models", folder / "texts.txt")


def test_candidates_share_a_word_and_come_in_the_order_of_bm25():
    index = WordIndex(TEXTS)
    scores = index.scores(TEXTS)
    nearest = candidates(index, TEXTS, range(len(TEXTS)), 2)
    assert [other for row, other in nearest if row == 0] == sorted({1, 3, 4}, key=lambda other: -scores[0, other])[:2]
    assert [other for row, other in nearest if row == 2] == []  # no stemming: hotels is not hotel
    assert [other for row, other in nearest if row == 5] == []
    assert all(row != other for row, other in nearest)


class Judge:
    """Knows that a sentence entails a shorter one."""

    def score(self, pairs):
        return np.array([float(len(longer) > len(other)) for longer, other in pairs])


def test_only_what_the_judge_finds_entailed_is_kept():
    kept = list(entailed(TEXTS, Judge(), 5, 0.5))
    assert kept
    assert all(len(TEXTS[row]) > len(text) for row, text in kept)
    assert (1, "a red kite") in kept


def test_the_judge_gives_the_probability_of_entailment(models):
    judge = load_nli_judge(models["judge"])
    scores = judge.score([("a red kite", "a kite"), ("a hotel", "two hotels")])
    assert ((scores > 0) & (scores < 1)).all()
    with pytest.raises(ModelError, match="there are no weights for"):
        load_nli_judge(models["masked"])


def run(kitchen, *stages, base):
    """Run stages that may name each other, and return the folder of the first one."""
    path = kitchen.folder / "retrieve.yaml"
    path.write_text(yaml.safe_dump({"base": base, "pooling": "mean", "stages": list(stages)}))
    (runner,) = prepare([read_recipe(path).resolve()], kitchen.folder / "out", Accelerator(cpu=True), lambda line: None)
    runner.run()
    (place,) = (kitchen.folder / "out" / "stages").glob(f"{stages[0]['name']}-*")
    return place


def test_the_stage_makes_pairs_that_a_later_stage_trains_on(kitchen, models):
    source = {"name": "pairs", "method": "retrieve", "model": models["judge"], "threshold": 0.0, "data": "texts.txt"}
    learn = {"name": "learn", "method": "contrastive", "data": "stage:pairs", "batch": 4, "steps": 2}
    pairs = open_dataset(run(kitchen, source, learn, base=str(kitchen.base)) / DATA)
    assert str(pairs.shape) == "pairs"
    assert all(anchor != other for anchor, other in zip(pairs["anchor"], pairs["positive"], strict=True))


def test_no_pair_at_all_is_an_error(kitchen, models):
    (kitchen.folder / "apart.txt").write_text("one\ntwo\nthree\n")
    source = {"name": "pairs", "method": "retrieve", "model": models["judge"], "threshold": 0.0, "data": "apart.txt"}
    with pytest.raises(InputError, match="entailed"):
        run(kitchen, source, base=None)
