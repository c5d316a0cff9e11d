"""`sentloom fit` from end to end, on data of every shape and on hopeless data."""

import json
from itertools import pairwise

import pytest
from sentence_transformers import SentenceTransformer

from sentloom.arena.fit import fit
from sentloom.errors import InputError, MissingPart, ModelError
from sentloom.report.story import Story
from tests.arena import small_base


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    return small_base.build_base(tmp_path_factory.mktemp("base"))


@pytest.fixture
def run(sentloom, base, tmp_path):
    """The command, and the story that it wrote."""

    def call(*data, budget="100steps", options=()):
        output = tmp_path / "model"
        done = sentloom("fit", *data, "-o", output, "--base", base, "--budget", budget, *options)
        story = tmp_path / "model.fit" / "story.json"
        return done, Story.read(story) if story.is_file() else None, output

    return call


def expect_written(done, story, output):
    assert done.returncode == 0, done.stdout + done.stderr
    assert story.verdict == "written"
    assert story.total.low > 0
    assert (output / "README.md").read_text("utf-8").startswith("---\n")
    assert SentenceTransformer(str(output)).encode(["bano"]).shape == (1, 32)
    folder = output.with_name("model.fit")
    for name in ("report.html", "report.md", "plan.json", "corpus.parquet"):
        assert (folder / name).stat().st_size > 0
    assert f"{story.total.after:.2f}" in done.stdout
    assert "report.html" in done.stdout


def test_pairs(run, tmp_path):
    done, story, output = run(small_base.pairs(tmp_path / "faq.tsv"), budget="60steps")
    expect_written(done, story, output)
    assert {one.name for one in story.routes if one.tried} == {"pairs", "pairs with mined negatives"}
    assert [one.rung for one in story.runs] == [1, 1, 2]
    assert sum(one.verdict == "won" for one in story.runs) == 1
    (source,) = story.sources
    assert source.trained + source.held_out <= source.rows == 500
    assert source.held_out >= 50
    assert story.neighbours
    assert story.histogram is not None
    assert "will try pairs" in done.stdout


def test_triplets(run, tmp_path):
    expect_written(*run(small_base.triplets(tmp_path / "triplets.tsv")))


def test_translations(run, tmp_path):
    done, story, output = run(small_base.translations(tmp_path / "en-xx.tsv"), budget="100steps")
    expect_written(done, story, output)
    assert {one.name for one in story.routes} == {"cross-lingual", "mse-distillation"}


def test_raw_text_and_pairs_become_stages(run, tmp_path):
    done, story, output = run(
        small_base.prose(tmp_path / "raw.txt"), small_base.pairs(tmp_path / "faq.tsv"), budget="280steps"
    )
    expect_written(done, story, output)
    assert "simcse, then pairs" in {one.name for one in story.routes if one.tried}
    last = max(one.rung for one in story.runs)
    assert not any(one.verdict == "goes on" for one in story.runs if one.rung == last)
    assert any(one.stages[0].startswith("simcse") and one.stages[1].startswith("contrastive") for one in story.runs)
    assert [one.name for one in story.measures if one.part == "deciding"] == [str(tmp_path / "faq.tsv")]


def test_raw_text_alone_is_judged_by_views_of_itself(run, tmp_path):
    """A few steps of SimCSE spoil this base, which knew which halves belong together: the gate holds it back."""
    text = small_base.prose(tmp_path / "raw.txt")
    done, story, output = run(text, budget="20steps")
    assert done.returncode == 3
    assert not output.exists()
    assert (story.verdict, story.model) == ("refused", None)
    assert story.reason.startswith("Worse")
    assert story.total.high < 0
    assert any("No labels decided" in warning for warning in story.warnings)
    (stable,) = [one for one in story.measures if one.name == "stability"]
    assert stable.part == "watched"
    assert stable.before == 100
    assert 0 < stable.after < 100
    assert "No model was written" in done.stdout
    assert (tmp_path / "model.fit" / "report.html").is_file()
    done, story, output = run(text, budget="20steps", options=["--force"])
    assert (done.returncode, story.verdict) == (0, "forced")
    assert SentenceTransformer(str(output)).encode(["bano"]).shape == (1, 32)
    assert "done before" in done.stdout  # nothing was trained again


def test_random_words_are_refused_before_anything_is_trained(run, tmp_path):
    text = small_base.random_words(tmp_path / "raw.txt")
    done, story, output = run(text, budget="20steps")
    assert done.returncode == 2
    assert "nothing can be proven" in done.stderr
    assert story is None
    assert not output.exists()
    done, story, _ = run(text, budget="20steps", options=["--force"])
    assert (done.returncode, story.verdict) == (0, "forced")
    assert "Nothing can be proven" in story.reason


def test_a_model_that_is_no_better_is_not_written(run, tmp_path):
    """Pairs that belong together by chance alone teach nothing that held-out rows could show."""
    left, right = small_base.sentences(1000, 5), small_base.sentences(1000, 6)
    shuffled = small_base.write_rows(
        tmp_path / "noise.tsv",
        "anchor positive",
        [(one, small_base.other(two)) for one, two in zip(left, right, strict=True)],
    )
    done, story, output = run(shuffled, budget="40steps")
    assert done.returncode == 3
    assert not output.exists()
    assert story.total.low <= 0
    assert story.reason.split()[0] in ("Not", "Worse")


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
    done, story, output = run(path)
    assert done.returncode == 2
    assert said in done.stderr
    assert "Next:" in done.stderr
    assert story is None
    assert not output.exists()
    assert not (tmp_path / "model.fit").exists()


def test_a_set_that_decides_and_its_sentences_are_not_learnt_from(run, tmp_path, base):
    data = small_base.pairs(tmp_path / "faq.tsv")
    lines = data.read_text("utf-8").splitlines()
    asked = tmp_path / "asked.tsv"
    asked.write_text("\n".join([lines[0], *lines[-150:]]) + "\n", "utf-8")
    done, story, output = run(data, options=["--against", asked])
    expect_written(done, story, output)
    assert [one.name for one in story.measures if one.part == "deciding"] == [str(asked)]
    assert [one.name for one in story.measures if one.part == "watched"] == [str(data)]
    assert "150 rows with sentences of" in done.stdout
    (source,) = story.sources
    assert source.trained + source.held_out == 350  # neither learnt from nor chosen by


def test_the_same_from_python_and_again_without_training(base, tmp_path):
    data, told = small_base.pairs(tmp_path / "faq.tsv"), []
    first = fit(data, tmp_path / "model", base=str(base), budget="50steps")
    assert first.scores[str(data)].after > first.scores[str(data)].before
    assert first.model == tmp_path / "model"
    plan = (tmp_path / "model.fit" / "plan.json").read_bytes()
    again = fit(data, tmp_path / "model", base=str(base), budget="50steps", tell=told.append)
    assert (tmp_path / "model.fit" / "plan.json").read_bytes() == plan
    assert any("Going on with the plan" in line for line in told)
    assert sum("done before" in line for line in told) == 3
    assert [run.score for run in again.story.runs] == [run.score for run in first.story.runs]
    other = fit(data, tmp_path / "model", base=str(base), budget="60steps")
    assert json.loads((tmp_path / "model.fit" / "plan.json").read_bytes())["inputs"]["budget"] == "60steps"
    assert (other.story.runs[0].steps, first.story.runs[0].steps) == (12, 10)


def test_what_is_wrong_is_said_at_once(base, tmp_path):
    data = small_base.pairs(tmp_path / "faq.tsv")
    with pytest.raises(InputError, match="10m, 90s"):
        fit(data, tmp_path / "model", base=str(base), budget="soon")
    with pytest.raises(InputError, match="one file or more"):
        fit([], tmp_path / "model", base=str(base))
    with pytest.raises(InputError, match="once more"):
        fit([data, data], tmp_path / "model", base=str(base))
    with pytest.raises(InputError, match="an empty name"):
        fit(data, tmp_path / "model", base=str(base), against="")
    with pytest.raises(MissingPart, match=r"STSB\.test\.tsv"):
        fit(data, tmp_path / "model", base=str(base), general=tmp_path)
    (tmp_path / "model").write_text("mine")
    with pytest.raises(ModelError, match="something that is no model"):
        fit(data, tmp_path / "model", base=str(base))
    assert (tmp_path / "model").read_text() == "mine"


def test_no_model_is_replaced_that_no_fit_wrote(base, tmp_path):
    data = small_base.pairs(tmp_path / "faq.tsv")
    for taken, said in ((base, "the base itself"), (base.with_name("plain"), "a model that no fit wrote")):
        weights = (taken / "model.safetensors").read_bytes()
        with pytest.raises(InputError, match=said):
            fit(data, taken, base=base)
        assert (taken / "model.safetensors").read_bytes() == weights


def labelled(path, labels):
    texts = small_base.sentences(len(labels), 8)
    return small_base.write_rows(path, "text label", list(zip(texts, labels, strict=True)))


def scored(path, scores):
    texts = small_base.sentences(len(scores), 8)
    rows = [(one, small_base.other(one), score) for one, score in zip(texts, scores, strict=True)]
    return small_base.write_rows(path, "sentence1 sentence2 score", rows)


def few_anchors(path):
    texts = small_base.sentences(500, 8)
    return small_base.write_rows(
        path, "anchor positive", [(texts[n % 44], small_base.other(texts[n])) for n in range(500)]
    )


def single_words(path):
    path.write_text(
        "text\n" + "\n".join(f"{one}{other}" for one in small_base.WORDS[:20] for other in small_base.FORMS[:20])
    )
    return path


@pytest.mark.parametrize(
    ("write", "said"),
    [
        (lambda path: labelled(path, ["often"] * 499 + ["once"]), "held-out rows that all have the label often"),
        (lambda path: scored(path, ["5", *["1", "2"] * 200]), "rows to learn from, those with a high score"),
        (few_anchors, "held-out rows that ask"),
        (single_words, "too short to be judged by themselves"),
    ],
)
def test_what_nothing_could_be_proven_on_is_refused_before_anything_is_trained(run, tmp_path, write, said):
    done, story, output = run(write(tmp_path / "data.tsv"), budget="20steps")
    assert done.returncode == 2
    assert said in done.stderr
    assert "data.tsv" in done.stderr
    assert story is None
    assert not output.exists()


def test_columns_are_named_and_inference_without_contradictions_is_taken_as_pairs(run, tmp_path):
    texts = small_base.sentences(300, 8)
    rows = [(one, small_base.other(one), "entailment") for one in texts]
    rows += [(one, small_base.other(two), "neutral") for one, two in pairwise(texts[:100])]
    data = small_base.write_rows(tmp_path / "odd.tsv", "this that so", rows)
    done, _, _ = run(data, budget="20steps")
    assert done.returncode == 2
    done, story, _ = run(data, budget="20steps", options=["--columns", "premise=this,hypothesis=that,label=so"])
    assert "the entailments are taken as pairs" in done.stdout
    assert [one.name for one in story.routes if one.tried] == ["pairs"]
    assert story.sources[0].distinct == 300
    assert "--columns premise=this,hypothesis=that,label=so" in story.command
