"""`sentloom fit` where nothing is written: hopeless data, models that are no better, and what is wrong."""

import re

import pytest
from sentence_transformers import SentenceTransformer

from sentloom import fit
from sentloom.encoder import Encoder
from sentloom.errors import InputError, MissingPart, ModelError, NothingToGain
from sentloom.report.formatting import warnings
from tests.fitting import small_base


@pytest.mark.long
def test_raw_text_alone_is_judged_by_views_of_itself(run, tmp_path):
    """A few steps of SimCSE teach this base nothing that its halves of sentences show: the gate holds it back."""
    text = small_base.prose(tmp_path / "raw.txt")
    done, result, output = run(text, budget="20steps")
    assert done.returncode == 3
    assert not output.exists()
    assert result.label_free
    assert result.model is None
    shown = {"no difference shown": "No difference can be shown without labels", "worse": "Worse than its base"}
    assert result.reason.startswith(shown[result.verdict])
    assert "There is nothing to decide" in " ".join(done.stdout.split())  # base and model agree nearly everywhere
    assert (result.believe, result.power.gain) == ("", None)
    trained = list((tmp_path / "model.fit" / "stages").glob("*/model"))
    assert {str(Encoder.load(model).pooling) for model in trained} == {"mean"}  # the base's, not simcse's preset
    assert any("No labels decided" in warning for warning in warnings(result))
    assert [run.verdict for run in result.runs if run.is_best] == ["best, not written"]
    report = (tmp_path / "model.fit" / "report.md").read_text("utf-8")
    assert not any(re.search(r"\bwon\b", text) for text in (done.stdout, report))
    assert "Raw text alone rarely improves a sentence encoder." in " ".join(done.stdout.split())
    assert result.stability is None  # a model that is not used needs no second seed
    assert not list((tmp_path / "model.fit" / "recipes").glob("*-seed-2.yaml"))
    assert "No model was written" in done.stdout
    assert (tmp_path / "model.fit" / "report.html").is_file()


@pytest.mark.long
def test_force_writes_what_the_gate_holds_back_and_trains_a_second_seed(run, tmp_path):
    text = small_base.prose(tmp_path / "raw.txt")
    assert run(text, budget="20steps")[0].returncode == 3
    done, result, output = run(text, budget="20steps", options=["--force"])
    assert (done.returncode, result.forced) == (0, True)
    assert 0 < result.stability.share < 100
    assert result.stability.low <= result.stability.share <= result.stability.high
    assert "Stability: two seeds of the best route agree on" in done.stdout
    assert SentenceTransformer(str(output)).encode(["bano"]).shape == (1, 32)
    assert "done before" in done.stdout  # nothing was trained again


def test_random_words_are_refused_before_anything_is_trained(run, tmp_path):
    done, result, output = run(small_base.random_words(tmp_path / "raw.txt"), budget="20steps")
    assert done.returncode == 2
    assert "nothing can be shown" in done.stderr
    assert result is None
    assert not output.exists()


def test_nothing_is_trained_if_the_base_is_right_about_every_test_row(base, tmp_path):
    echoes = [(sentence, f"{sentence} {sentence}") for sentence in small_base.sentences(300, 1)]
    with pytest.raises(NothingToGain, match="the base already has the highest score on every test row"):
        fit(echoes, tmp_path / "model", base=str(base), budget="20steps")
    assert not (tmp_path / "model.fit" / "stages").exists()


@pytest.mark.long
def test_force_trains_on_random_words(run, tmp_path):
    text = small_base.random_words(tmp_path / "raw.txt")
    done, result, _ = run(text, budget="20steps", options=["--force"])
    assert (done.returncode, result.forced) == (0, True)
    assert "Nothing can be shown" in result.reason


@pytest.mark.long
def test_a_model_that_is_no_better_is_not_written(run, tmp_path):
    """Pairs that belong together by chance alone teach nothing that held-out rows could show."""
    left, right = small_base.sentences(1000, 5), small_base.sentences(1000, 6)
    shuffled = small_base.write_rows(
        tmp_path / "noise.tsv",
        "anchor positive",
        [(text, small_base.other(two)) for text, two in zip(left, right, strict=True)],
    )
    done, result, output = run(shuffled, budget="40steps")
    assert done.returncode == 3
    assert not output.exists()
    assert result.total.low <= 0
    assert result.reason.split()[0] in ("Not", "Worse")
    not_tried = {route.name: route.why for route in result.routes if not route.tried}
    assert "the budget has no time for" in not_tried["pairs with mined negatives"]
    assert not list((tmp_path / "model.fit" / "data").glob("*mined*"))  # nothing was mined for it


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ([f"sentence number {number}" for number in range(20)], "20 sentences"),
        (["always the same sentence"] * 500, "1 of them different"),
        (["Always the same sentence.", "always the same sentence"] * 250, "1 of them different"),
    ],
)
def test_too_little_is_refused_before_anything_is_trained(run, tmp_path, lines, said):
    path = tmp_path / "few.txt"
    path.write_text("\n".join(lines) + "\n")
    done, result, output = run(path)
    assert done.returncode == 2
    assert said in done.stderr
    assert len(done.stderr.strip().splitlines()) >= 2
    assert result is None
    assert not output.exists()
    assert not (tmp_path / "model.fit").exists()


def test_what_is_wrong_is_said_at_once(base, tmp_path):
    data = small_base.pairs(tmp_path / "faq.tsv")
    with pytest.raises(InputError, match="10m, 90s"):
        fit(data, tmp_path / "model", base=str(base), budget="soon")
    with pytest.raises(InputError, match="one file or more"):
        fit([], tmp_path / "model", base=str(base))
    with pytest.raises(InputError, match="same rows as"):
        fit([data, data], tmp_path / "model", base=str(base))
    with pytest.raises(InputError, match="name is empty"):
        fit(data, tmp_path / "model", base=str(base), against="")
    with pytest.raises(MissingPart, match=r"STSB\.test\.tsv"):
        fit(data, tmp_path / "model", base=str(base), general=tmp_path)
    (tmp_path / "model").write_text("mine")
    with pytest.raises(ModelError, match="this is a file, which is not replaced"):
        fit(data, tmp_path / "model", base=str(base))
    assert (tmp_path / "model").read_text() == "mine"


def test_no_model_is_replaced_that_no_fit_wrote(base, tmp_path):
    data = small_base.pairs(tmp_path / "faq.tsv")
    for taken, said in ((base, "the base itself"), (base.with_name("plain"), "not written by fit")):
        weights = (taken / "model.safetensors").read_bytes()
        with pytest.raises(InputError, match=said):
            fit(data, taken, base=base)
        assert (taken / "model.safetensors").read_bytes() == weights


def labelled(path, labels):
    texts = small_base.sentences(len(labels), 8)
    return small_base.write_rows(path, "text label", list(zip(texts, labels, strict=True)))


def scored(path, scores):
    texts = small_base.sentences(len(scores), 8)
    rows = [(text, small_base.other(text), score) for text, score in zip(texts, scores, strict=True)]
    return small_base.write_rows(path, "sentence1 sentence2 score", rows)


def single_words(path):
    path.write_text(
        "text\n" + "\n".join(f"{one}{other}" for one in small_base.WORDS[:20] for other in small_base.FORMS[:20])
    )
    return path


@pytest.mark.parametrize(
    ("write", "said"),
    [
        (lambda path: labelled(path, ["often"] * 499 + ["once"]), "the held-out rows all have the label often"),
        (single_words, "too short to be judged without labels"),
    ],
)
def test_what_nothing_could_be_proven_on_is_refused_before_anything_is_trained(run, tmp_path, write, said):
    done, result, output = run(write(tmp_path / "data.tsv"), budget="20steps")
    assert done.returncode == 2
    assert said in done.stderr
    assert "data.tsv" in done.stderr
    assert result is None
    assert not output.exists()
