"""Encoders that teach: told apart, agreement with them by hand, and fits whose verdict it is."""

import numpy as np
import pytest
import torch
from scipy.stats import spearmanr

from sentloom.data.shapes import Shape
from sentloom.encoder import Encoder
from sentloom.encoder.locate import is_cross_encoder
from sentloom.evaluation.evaluate import open_memory
from sentloom.evaluation.task import CLUSTER
from sentloom.fitting.gate import Basis, judge
from sentloom.fitting.tasks import HeldOut
from sentloom.fitting.teachers import RANKS, Teachers, agreement_tasks, overlap, rank_correlation
from tests.fitting import small_base
from tests.fitting.test_gate import measured, score
from tests.search.small_cross_encoders import build_cross_encoder
from tests.small_data import build_dataset


@pytest.fixture(scope="module")
def teacher(tmp_path_factory):
    """A model of other random weights: other words are near each other."""
    folder = small_base.build_base(tmp_path_factory.mktemp("teacher"))
    encoder = Encoder.load(str(folder))
    torch.manual_seed(7)
    with torch.no_grad():
        for name, parameter in encoder.named_parameters():
            if "word_embeddings" in name:
                parameter.normal_()
    encoder.save(folder.with_name("other"))
    return folder.with_name("other")


def test_cross_encoders_are_told_apart_by_what_they_are(base, tmp_path):
    assert is_cross_encoder("reranker")
    assert not is_cross_encoder("bge-small")
    assert is_cross_encoder(build_cross_encoder(tmp_path / "cross"))
    assert not is_cross_encoder(base)


def test_overlap_by_hand():
    own = np.arange(12.0)[None, :].repeat(12, axis=0)  # 11, 10, 9 ... are near every text
    taught = -own
    assert overlap(own, taught, itself=False).tolist() == [0.8] * 12  # 2 to 9 are among the first ten of both
    both = overlap(own, taught, itself=True)
    assert both[0] == 0.9  # of 11 others, ten each: all but 1 and 11
    assert both.min() >= 0.9
    assert overlap(own, own, itself=True).tolist() == [1.0] * 12


def test_rank_correlation_is_spearmans():
    draw = np.random.default_rng(0)
    own, taught = draw.normal(size=(2, 5, 9))
    taught[:, 3] = taught[:, 4]  # ties
    expected = [spearmanr(a, b).statistic for a, b in zip(own, taught, strict=True)]
    np.testing.assert_allclose(rank_correlation(own, taught), expected)


def test_a_model_agrees_with_itself_and_texts_of_one_cluster_count_together(base, teacher, tmp_path):
    texts = [f"{text}. {text} again." for text in small_base.sentences(60, 3)]
    data = build_dataset(Shape.TEXTS, [(text,) for text in texts])
    data = data.derive(data.table.append_column(CLUSTER, [[row // 2 for row in range(60)]]), "clustered")
    part, memory = HeldOut("raw.txt", data, (), ()), open_memory(tmp_path)
    itself = agreement_tasks(part, Teachers((str(base),)), memory)
    assert [task.name for task in itself] == ["neighbours", "passages of sentences"]
    encoder = Encoder.load(str(base))
    for task in itself:
        scores = task.score(lambda texts, role="symmetric": encoder.encode(texts, role=role))
        assert scores["overlap@10"].value == pytest.approx(100)
        assert scores[RANKS].value == pytest.approx(100)
        assert np.unique(scores["overlap@10"].clusters).size == 30
    both = agreement_tasks(part, Teachers((str(base), str(teacher))), memory)
    assert both[0].sha256 != itself[0].sha256
    joined = both[0].score(lambda texts, role="symmetric": encoder.encode(texts, role=role))
    assert 20 < joined["overlap@10"].value < 95  # half of what the two find


def test_few_texts_show_no_agreement(base, tmp_path):
    data = build_dataset(Shape.TEXTS, [(text,) for text in small_base.sentences(20, 3)])
    assert agreement_tasks(HeldOut("raw.txt", data, (), ()), Teachers((str(base),)), open_memory(tmp_path)) == ()


def test_closer_is_said_of_agreement_only():
    gain = measured(score(*[0, 1] * 50), score(*[1, 1] * 50))
    closer = judge(gain, 1.0, Basis(agreement=True))
    assert (closer.verdict, closer.passed) == ("closer", True)
    assert "whether the model is of more use was not" in closer.reason
    assert judge(gain, -1.0, Basis(agreement=True)).verdict == "no difference shown"
    loss = measured(score(*[1, 1] * 50), score(*[0, 1] * 50))
    assert judge(loss, 1.0, Basis(agreement=True)).verdict == "no difference shown"


def test_raw_text_with_a_teacher_writes_a_model_that_is_closer(run, teacher, tmp_path):
    raw = small_base.prose(tmp_path / "raw.txt", 400)
    done, result, output = run(raw, budget="80steps", options=("--teacher", teacher))
    assert done.returncode == 0, done.stderr
    assert done.stdout.rstrip().splitlines()[-1].startswith("VERDICT closer +")
    assert (result.verdict, result.total.metric, result.label_free) == ("closer", "overlap@10", True)
    assert result.winner.startswith("teacher")
    names = {measure.name: measure for measure in result.measures}
    assert {"neighbours", "neighbours: ranks", "few-words", "general triplets"} <= set(names)
    assert names["neighbours: ranks"].low > 0
    assert "usefulness was not" in done.stdout
    assert "was not" in (output / "README.md").read_text("utf-8")
    again, same, _ = run(raw, budget="80steps", options=("--teacher", teacher))
    assert again.returncode == 0
    assert same.hashes["model"] == result.hashes["model"]


def test_raw_text_alone_is_refused_before_anything_is_trained(run, tmp_path):
    raw = small_base.prose(tmp_path / "raw.txt", 300)
    done, result, output = run(raw, budget="20steps")
    assert (done.returncode, result, output.exists()) == (3, None, False)
    assert "no route made the base better" in done.stderr
    for help_ in ("sentloom models get bge-small", "titles", "50 pairs", "--force", "sentloom tick"):
        assert help_ in done.stderr
    forced, result, output = run(raw, budget="20steps", options=("--force",))
    assert (forced.returncode, result.forced, output.is_dir()) == (0, True, True)
    assert len({trained.route for trained in result.runs}) == 1  # nothing can choose among several
    plan = (tmp_path / "model.fit/plan.json").read_text("utf-8")
    assert "nothing can choose among routes" in plan


def test_labels_decide_also_where_a_teacher_teaches(run, teacher, tmp_path):
    raw, faq = small_base.prose(tmp_path / "raw.txt", 200), small_base.pairs(tmp_path / "faq.tsv", 200)
    _, result, _ = run(raw, faq, budget="60steps", options=("--teacher", teacher))
    assert not result.label_free
    assert result.verdict in ("better", "no difference shown", "worse")
    assert "teacher, then pairs" in [route.name for route in result.routes]
