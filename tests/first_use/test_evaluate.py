"""`evaluate` of several models and several sets: differences with intervals, and what is missing."""

import json
import random

import pytest

import sentloom as library

WORDS = "dog cat house tree car river stone cloud bread music paper light green small large runs sleeps falls".split()


@pytest.fixture
def models(tmp_path):
    """Word vectors that know half of the words, twice the same, and some that know two words only."""
    files = {name: tmp_path / f"{name}.txt" for name in ("half", "same", "few")}
    for name, path in files.items():
        known = WORDS[:2] if name == "few" else WORDS[::2]
        path.write_text("".join(f"{word} {at % 7} {at % 5} {at % 3} 1\n" for at, word in enumerate(known)), "utf-8")
    return {name: f"{name}=words:{path}" for name, path in files.items()} | {"tf-idf": "tf-idf"}


@pytest.fixture
def pairs(tmp_path):
    def write(rows):
        draw, lines = random.Random(1), ["score\tsentence1\tsentence2"]
        for _ in range(rows):
            first, same = draw.sample(WORDS, 5), draw.randint(0, 5)
            lines.append(f"{same}\t{' '.join(first)}\t{' '.join([*first[:same], *draw.sample(WORDS, 5 - same)])}")
        (tmp_path / "pairs.tsv").write_text("\n".join(lines) + "\n", "utf-8")
        return tmp_path / "pairs.tsv"

    return write


@pytest.fixture
def labels(tmp_path):
    """Labelled texts, and questions with their answers."""
    draw = random.Random(2)
    texts = [" ".join(draw.sample(WORDS, 5)) for _ in range(60)]
    lines = [f"{'a' if 'dog' in text else 'b'}\t{text}" for text in texts]
    (tmp_path / "labels.tsv").write_text("\n".join(["label\ttext", *lines]) + "\n", "utf-8")
    asked = [f"{text}\t{' '.join(text.split()[1:])} there" for text in texts]
    (tmp_path / "faq.tsv").write_text("\n".join(["question\tanswer", *asked]) + "\n", "utf-8")
    triplets = [f"{text}\t{text} there\t{other}" for text, other in zip(texts, reversed(texts), strict=True)]
    (tmp_path / "triplets.tsv").write_text("\n".join(["anchor\tpositive\tnegative", *triplets]) + "\n", "utf-8")
    return [tmp_path / name for name in ("labels.tsv", "faq.tsv", "triplets.tsv")]


def test_models_are_compared_with_the_first_one(sentloom, tmp_path, models, pairs):
    files = [tmp_path / f"scores.{ending}" for ending in ("json", "md", "csv")]
    outputs = [word for file in files for word in ("-o", file)]
    named = [models[name] for name in ("half", "same", "few", "tf-idf")]
    done = sentloom("evaluate", *named, "--suite", pairs(60), *outputs)
    assert done.returncode == 0, done.stderr
    ((one,), *_) = (suite["sets"] for suite in json.loads(files[0].read_text("utf-8"))["suites"])
    found = {model: cells["spearman"] for model, cells in one["cells"].items()}
    assert found["half"]["difference"] is None
    assert [found["same"][name] for name in ("difference", "difference_low", "difference_high")] == [0, 0, 0]
    better = found["tf-idf"]
    assert better["difference"] == pytest.approx(better["value"] - found["half"]["value"])
    assert 0 < better["difference_low"] < better["difference"] < better["difference_high"]
    assert better["level"] == pytest.approx(1 - 0.05 / 3)
    shown = "{difference:+.2f} ({difference_low:+.2f} to {difference_high:+.2f})".format(**better)
    for text in (done.stdout, files[1].read_text("utf-8")):
        assert "difference from half" in text
        assert "+0.00 (+0.00 to +0.00)" in text
        assert shown in text
        assert "98.33% interval, paired over the items of the set, corrected for 3 comparisons" in text
    assert "difference_low" in files[2].read_text("utf-8").splitlines()[0]


def test_all_kinds_of_sets_have_intervals_and_python_returns_them(models, labels, pairs):
    pair = dict(models[name].split("=") for name in ("half", "few"))
    found = library.evaluate(pair, [*labels, pairs(60)], fast=True, cache_size=0)
    assert list(found.differences) == ["few"]
    assert len(found.differences["few"]) == 4
    for name, (difference, low, high) in found.differences["few"].items():
        assert difference == pytest.approx(found.scores["few"][name] - found.scores["half"][name])
        assert low <= difference <= high
        assert low < high


def test_a_difference_without_an_interval_says_so(sentloom, tmp_path, models, pairs):
    command = ("evaluate", models["half"], models["few"], "--suite", pairs(12), "-o", tmp_path / "s.json")
    done = sentloom(*command)
    assert "(no interval)" in done.stdout
    assert "no interval: several seeds, or fewer than 20 independent items" in done.stdout
    (cells,) = (one["cells"] for one in json.loads((tmp_path / "s.json").read_text("utf-8"))["suites"][0]["sets"])
    assert (cells["few"]["spearman"]["difference_low"], cells["few"]["spearman"]["difference"] is None) == (None, False)
    file = models["few"].removeprefix("few=")
    done = sentloom("evaluate", models["half"], f"seeds={file},{file}", "--suite", pairs(60), "-o", tmp_path / "s.json")
    assert "(no interval)" in done.stdout


def test_sets_that_are_not_here_are_named_and_the_others_scored(sentloom, tmp_path, models, pairs):
    (tmp_path / "data").mkdir()
    some = ("--suite", "STS-B", "--suite", "transfer", "--suite", pairs(60), "--data", tmp_path / "data")
    files = [tmp_path / f"scores.{ending}" for ending in ("json", "md", "csv", "png")]
    outputs = [word for file in files for word in ("-o", file)]
    done = sentloom("evaluate", models["half"], models["few"], *some, *outputs)
    assert done.returncode == 4
    assert "pairs.tsv" in done.stdout
    assert "STS-B: missing, left out (the folder" in done.stdout
    assert "not scored: STS-B, transfer" in done.stdout
    suites = json.loads(files[0].read_text("utf-8"))["suites"]
    assert [len(suite["sets"]) for suite in suites] == [0, 0, 1]
    assert set(suites[0]["missing"]) == {"STS-B"}
    assert "MR: missing, left out" in files[1].read_text("utf-8")
    found = library.evaluate("tf-idf", ["STS-B", tmp_path / "pairs.tsv"], data=tmp_path / "data", cache_size=0)
    assert found.not_scored == ["STS-B"]


def test_offline_the_sets_of_the_hub_are_left_out(sentloom, tmp_path, models, pairs, monkeypatch):
    monkeypatch.setenv("HF_DATASETS_CACHE", str(tmp_path / "datasets"))
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    done = sentloom("evaluate", "tf-idf", "--suite", "CR", "--suite", pairs(60), "-o", tmp_path / "s.json")
    assert done.returncode == 4
    assert "CR: missing, left out (there is no copy on the hub" in done.stdout


def test_it_is_an_error_if_nothing_is_here_or_an_own_file_is_wrong(sentloom, tmp_path, pairs):
    (tmp_path / "data").mkdir()
    (tmp_path / "bad.tsv").write_text("score\tsentence1\tsentence2\nx\ta\tb\n", "utf-8")
    for some in (("STS-B", "transfer"), (pairs(60), tmp_path / "bad.tsv"), (pairs(60), tmp_path / "none.tsv")):
        suites = [word for one in some for word in ("--suite", one)]
        done = sentloom("evaluate", "tf-idf", *suites, "--data", tmp_path / "data", "-o", tmp_path / "s.json")
        assert (done.returncode, done.stderr.startswith("error: ")) == (2, True)
        assert not (tmp_path / "s.json").exists()


def test_the_help_names_the_exit_code(sentloom):
    assert "The exit code is 4" in " ".join(sentloom("evaluate", "--help").stdout.split())


@pytest.mark.parametrize("name", ["./nowhere/model", "words:nowhere.txt", "whitening:./nowhere/model"])
def test_a_model_that_is_not_there_is_refused_before_any_set_is_read(sentloom, tmp_path, name):
    (tmp_path / "bad.tsv").write_text("score\tsentence1\tsentence2\nx\ta\tb\n", "utf-8")
    done = sentloom("evaluate", "tf-idf", name, "--suite", tmp_path / "bad.tsv", "-o", tmp_path / "s.json")
    assert done.returncode == 2
    assert "nowhere" in done.stderr
    assert "bad.tsv" not in done.stderr
