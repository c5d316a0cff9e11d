"""SentGLUE on small sets of known content, and on the real ones if available."""

import numpy as np
import pytest
from datasets import ClassLabel, Dataset, Features, Value
from scipy import stats

from sentloom.errors import InputError, MissingPart
from sentloom.evaluation.set_source import SetSource
from sentloom.lab.suites.transfer import MOST_ROWS, SENTGLUE, SENTGLUE_SETS
from tests.paths import DATA

REAL = DATA
GLUE = "nyu-mll/glue/{}@bcdcba79d07bc864c1c254ccfcedcce55bcc9a8c:{}"  # configuration, split
PAIR = "label\tsentence1\tsentence2"
NUMBER = {"zero": 0.0, "one": 1.0, "two": 2.0, "three": 3.0, "four": 4.0, "five": 5.0}


def put(folder, name, rows, header="label\ttext"):
    file = folder / f"{name}.tsv"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("\n".join([header, *("\t".join(map(str, row)) for row in rows)]) + "\n", encoding="utf-8")


def lookup(texts, role="symmetric"):
    """Encode the number in the text's first word as vectors (n, 6)."""
    return np.eye(6, dtype=np.float32)[[int(NUMBER[text.split()[0]]) for text in texts]]


def fast(folder, checked=False):
    return SetSource(folder, checked, {"preset": "fast"})


def numbers(count):
    return [(n % 2, f"{list(NUMBER)[n % 2]} {n}") for n in range(count)]


def test_cola_is_scored_by_matthews_correlation(tmp_path):
    put(tmp_path, "glue/CoLA.train", numbers(40))
    # said 1 1 1 0 0 0 where 1 1 0 0 0 1 is right: 2 true and 1 false of each kind, (2 * 2 - 1 * 1) / 9
    dev = [(1, "one a"), (1, "one b"), (0, "one c"), (0, "zero d"), (0, "zero e"), (1, "zero f")]
    put(tmp_path, "glue/CoLA.dev", dev)
    task = SENTGLUE.load("CoLA", fast(tmp_path))
    assert task.main == "matthews"
    assert task.score(lookup)["matthews"].value == pytest.approx(100 / 3)
    assert task.settings.others["protocol"] == "train, L2 by k-fold on train, test"


def test_sst2_is_scored_on_dev(tmp_path):
    put(tmp_path, "senteval/SST2.train", numbers(40))
    put(tmp_path, "senteval/SST2.dev", [(1, "one a"), (0, "one b")])
    task = SENTGLUE.load("SST-2", fast(tmp_path))
    assert task.score(lookup)["accuracy"].items.tolist() == [[1, 1], [1, 0]]


def pairs(count, log):
    """Build rows of two numbers and a label or score computed from them."""
    names = list(NUMBER)[:3]
    return [(log(a, b), f"{a} {n}", f"{b} {n}") for n in range(count) for a in names for b in names]


def test_stsb_is_scored_by_regression(tmp_path):
    def score(a, b):
        return 5.0 if a == b else 1.5

    put(tmp_path, "sts/STSB.train", pairs(5, score), "score\tsentence1\tsentence2")
    dev = [(4.0, "one a", "one b"), (3.0, "two a", "two b"), (1.0, "one a", "two b"), (2.0, "zero a", "one b")]
    put(tmp_path, "sts/STSB.dev", dev, "score\tsentence1\tsentence2")
    task = SENTGLUE.load("STS-B", fast(tmp_path))
    scores = task.score(lookup)
    said, gold = scores["spearman"].items.T
    assert task.main == "spearman"
    assert gold.tolist() == [4, 3, 1, 2]
    assert said == pytest.approx([5, 5, 1.5, 1.5], abs=0.3)
    assert scores["spearman"].value == pytest.approx(100 * stats.spearmanr(said, gold).statistic)
    assert scores["pearson"].value == pytest.approx(100 * stats.pearsonr(said, gold).statistic)


def test_similarity_uses_difference_and_product(tmp_path):
    for part in ("train", "dev"):
        put(tmp_path, f"glue/QQP.{part}", pairs(6, lambda a, b: int(a == b)), PAIR)
    task = SENTGLUE.load("QQP", fast(tmp_path))
    scores = task.score(lookup)
    assert {name: score.value for name, score in scores.items()} == {"accuracy": 100, "f1": 100}
    assert task.settings.others["features"] == "difference-product"


def direction(a, b):
    """Label which of two numbers is larger, which depends on the order of the sentences."""
    difference = NUMBER[a] - NUMBER[b]
    return "entailment" if difference > 0 else "contradiction" if difference < 0 else "neutral"


def test_inference_depends_on_the_order_of_the_sentences(tmp_path):
    header = "label\tpremise\thypothesis"
    put(tmp_path, "glue/MNLI.train", pairs(8, direction), header)
    put(tmp_path, "nli/pairs/MNLI.dev_matched", pairs(2, direction), header)
    put(tmp_path, "glue/MNLI.dev_mismatched", pairs(1, direction), header)
    tasks = [SENTGLUE.load(name, fast(tmp_path)) for name in ("MNLI-m", "MNLI-mm")]
    assert [task.score(lookup)["accuracy"].value for task in tasks] == [100, 100]
    assert [len(task.texts["symmetric"]) for task in tasks] == [2 * (72 + 18), 2 * (72 + 9)]
    assert tasks[0].settings.others["features"] == "both-difference-product"
    assert not any("sample" in note for note in tasks[0].notes)


def test_a_sample_of_mnli_is_noted(tmp_path):
    header = "label\tpremise\thypothesis"
    put(tmp_path, "nli/pairs/MNLI.train10k", pairs(8, direction), header)
    put(tmp_path, "nli/pairs/MNLI.dev_matched", pairs(1, direction), header)
    notes = SENTGLUE.load("MNLI-m", fast(tmp_path)).notes
    assert "a sample of 10,000 rows of the training part: not comparable with published scores" in notes


def test_editions_of_mrpc_are_not_mixed(tmp_path):
    # SentEval's training part contains GLUE's dev part: together they would score training rows.
    for name in ("glue/MRPC.dev", "senteval/MRPC.train", "senteval/MRPC.test"):
        put(tmp_path, name, [(1, f"zero {name}", "zero"), (0, f"zero {name}", "one")], PAIR)
    task = SENTGLUE.load("MRPC", fast(tmp_path))
    assert not any("glue" in text for text in task.texts["symmetric"])
    assert any("SentEval's parts" in note for note in task.notes)
    put(tmp_path, "glue/MRPC.train", [(1, "zero glue/train", "zero")], PAIR)
    task = SENTGLUE.load("MRPC", fast(tmp_path))
    assert not any("senteval" in text for text in task.texts["symmetric"])


def test_qnli_without_training_part_is_cross_validated(tmp_path):
    def told(a, b):
        return "entailment" if a == b else "not_entailment"

    put(tmp_path, "glue/QNLI.dev", pairs(6, told), PAIR)
    task = SENTGLUE.load("QNLI", fast(tmp_path))
    assert task.settings.others["protocol"] == "nested k-fold"
    assert any("dev is cross-validated" in note for note in task.notes)
    assert len(task.score(lookup)["accuracy"].items) == 54
    put(tmp_path, "glue/QNLI.train", pairs(6, told), PAIR)
    task = SENTGLUE.load("QNLI", fast(tmp_path))
    assert task.settings.others["protocol"] == "train, L2 by k-fold on train, test"


def test_rte_with_other_counts_is_refused(tmp_path):
    for part in ("train", "dev"):
        put(tmp_path, f"glue/RTE.{part}", [("entailment", "a", "b")] * 277, PAIR)
    with pytest.raises(InputError, match=r"RTE train .* 277 rows. Expected 2,490"):
        SENTGLUE.load("RTE", fast(tmp_path, checked=True))
    put(tmp_path, "glue/RTE.train", [("neutral", "a", "b")] * 2490, PAIR)
    with pytest.raises(InputError, match="1 unknown labels, such as 'neutral'"):
        SENTGLUE.load("RTE", fast(tmp_path, checked=True))


def test_large_training_parts_are_sampled(tmp_path):
    put(tmp_path, "glue/CoLA.train", numbers(MOST_ROWS + 1))
    put(tmp_path, "glue/CoLA.dev", [(1, "one a")])
    task = SENTGLUE.load("CoLA", SetSource(tmp_path, checked=False))
    assert task.settings.others["train_rows"] == MOST_ROWS
    assert "the probe was trained on 50,000 of 50,001 rows, sampled with seed 1111" in task.notes
    assert SENTGLUE.load("CoLA", fast(tmp_path)).settings.others["train_rows"] == 10_000


@pytest.mark.parametrize("name", SENTGLUE_SETS)
def test_missing_data_is_named_by_the_published_part(tmp_path, name):
    with pytest.raises(MissingPart, match=r"no file (glue|senteval|sts)/\S+\.tsv"):
        SENTGLUE.load(name, fast(tmp_path))


@pytest.mark.parametrize(
    ("name", "configuration", "sides", "classes", "label", "splits"),
    [
        ("CoLA", "cola", ["sentence"], ["unacceptable", "acceptable"], "1", ("train", "validation")),
        ("SST-2", "sst2", ["sentence"], ["negative", "positive"], "1", ("train", "validation")),
        ("MRPC", "mrpc", ["sentence1", "sentence2"], ["not_equivalent", "equivalent"], "1", ("train", "validation")),
        ("QQP", "qqp", ["question1", "question2"], ["not_duplicate", "duplicate"], "1", ("train", "validation")),
        (
            "MNLI-mm",
            "mnli",
            ["premise", "hypothesis"],
            ["entailment", "neutral", "contradiction"],
            "neutral",
            ("train", "validation_mismatched"),
        ),
        (
            "QNLI",
            "qnli",
            ["question", "sentence"],
            ["entailment", "not_entailment"],
            "not_entailment",
            ("train", "validation"),
        ),
        (
            "RTE",
            "rte",
            ["sentence1", "sentence2"],
            ["entailment", "not_entailment"],
            "not_entailment",
            ("train", "validation"),
        ),
    ],
)
def test_the_hubs_copies_are_the_same_task(tmp_path, monkeypatch, name, configuration, sides, classes, label, splits):
    """Compare each set with GLUE's columns and classes on the hub and as files."""
    monkeypatch.chdir(tmp_path)
    for split in splits:
        columns = {side: [f"{split} {side}"] for side in sides} | {"label": [1], "idx": [0]}
        types = {side: Value("string") for side in sides} | {"label": ClassLabel(names=classes), "idx": Value("int32")}
        Dataset.from_dict(columns, Features(types)).save_to_disk(GLUE.format(configuration, split))
    edition = SENTGLUE_SETS[name][0]
    for part, split in zip(edition.parts, splits, strict=True):
        header = "label\ttext" if len(sides) == 1 else PAIR
        put(tmp_path, part.files[0], [(label, *(f"{split} {side}" for side in sides))], header)
    hub, files = (SENTGLUE.load(name, fast(place)) for place in (None, tmp_path))
    assert hub.sha256 == files.sha256
    assert hub.texts == files.texts


def test_the_mean_is_over_nine_sets():
    (average,) = SENTGLUE.averages
    assert average.label == "our mean of nine tasks (MNLI-m and MNLI-mm apart)"
    assert len(average.parts) == 9


@pytest.mark.skipif(not REAL.is_dir(), reason="the real sets are not at hand")
@pytest.mark.parametrize(
    ("name", "rows", "notes"),
    [
        ("CoLA", 8551 + 1043, []),
        ("SST-2", 50_000 + 872, ["the probe was trained on 50,000 of 67,349 rows"]),
        ("MRPC", 2 * (4076 + 1725), ["SentEval's parts"]),
        ("STS-B", 2 * (5749 + 1500), []),
        ("QQP", 2 * 20_000, ["two balanced samples"]),
        ("MNLI-m", 2 * (10_000 + 9815), ["a sample of 10,000 rows"]),
        ("MNLI-mm", 2 * (10_000 + 9832), ["a sample of 10,000 rows"]),
        ("QNLI", 2 * 5463, ["no training part"]),
        ("RTE", 2 * (2490 + 277), []),
    ],
)
def test_the_real_sets_are_as_published(name, rows, notes):
    task = SENTGLUE.load(name, SetSource(REAL))
    assert len(task.texts["symmetric"]) == rows
    assert [note.startswith(start) for note, start in zip(task.notes, notes, strict=True)] == [True] * len(notes)
