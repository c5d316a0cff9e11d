"""The transfer tasks on small sets of known content, and on the real ones if available."""

import numpy as np
import pytest
from datasets import ClassLabel, Dataset, Features, Value

from sentloom.data.shapes import Shape
from sentloom.errors import DataError, InputError, MissingPart
from sentloom.evaluation.set_source import SetSource, read_rows
from sentloom.lab.suites.transfer import TRANSFER, TRANSFER_SETS, TRANSFER_TABLE
from tests.evaluation.small_sets import fast, lookup, put, reviews
from tests.paths import DATA

REAL = DATA
PARTS = TRANSFER_TABLE.parts
GLUE = "nyu-mll/glue/{}@bcdcba79d07bc864c1c254ccfcedcce55bcc9a8c:{}"  # configuration, split


@pytest.mark.parametrize("name", ["MR", "CR", "SUBJ", "MPQA"])
def test_four_sets_are_cross_validated(tmp_path, name):
    put(tmp_path, f"senteval/{name}", reviews(60, wrong=6))
    task = TRANSFER.load(name, fast(tmp_path))
    score = task.score(lookup)[task.main]
    # The first word predicts all but the six rows with the wrong label, whatever the folds.
    assert (task.name, task.main, score.value) == (name, "accuracy", pytest.approx(90))
    assert score.items[:, 1].tolist() == [1, 0, 1, 0, 1, 0] + [0, 1] * 27
    assert task.settings.others["protocol"] == "nested k-fold"
    assert "60 rows, but" in task.notes[0]


def test_sst2_has_three_parts(tmp_path):
    for part, count, wrong in (("train", 40, 0), ("dev", 20, 0), ("test", 20, 5)):
        put(tmp_path, f"senteval/SST2.{part}", reviews(count, wrong, start=len(part) * 1000 + count))
    task = TRANSFER.load("SST-2", fast(tmp_path))
    assert task.score(lookup)["accuracy"].value == pytest.approx(75)
    assert len(task.texts["symmetric"]) == len(set(task.texts["symmetric"])) == 80
    assert task.settings.recorded() == {
        "preset": "fast",
        "hidden": 0,
        "features": "u",
        "protocol": "train, L2 on dev, test",
        "train_rows": 40,
    }


def test_trec_has_six_classes(tmp_path):
    classes = ["ABBR", "DESC", "ENTY", "HUM", "LOC", "NUM"]

    def one_hot(texts, role="symmetric"):
        return np.array([[float(name.lower() in text) for name in classes] for text in texts], np.float32)

    rows = [(name, f"what {name.lower()} {number}") for number in range(8) for name in classes]
    put(tmp_path, "senteval/TREC.train", rows)
    put(tmp_path, "senteval/TREC.test", [("NUM", "how num"), ("ABBR", "how abbr"), ("HUM", "how num")])
    task = TRANSFER.load("TREC", fast(tmp_path))
    score = task.score(one_hot)["accuracy"]
    assert score.items.tolist() == [[5, 5], [0, 0], [5, 3]]  # indices in the sorted classes
    assert score.value == pytest.approx(200 / 3)
    assert task.settings.others["protocol"] == "train, L2 by k-fold on train, test"


def test_mrpc_uses_difference_and_product(tmp_path):
    # Two good reviews are similar, and so are two bad ones: the label is in |u - v| and u * v, not in u and v.
    words = ["good", "bad"]
    rows = [(int(a == b), f"{a} {n}", f"{b} {n + 99}") for n in range(12) for a in words for b in words]
    test = [(1, "good x", "good y"), (1, "bad x", "bad y"), (1, "good x", "bad y"), (0, "bad x", "bad z")]
    put(tmp_path, "senteval/MRPC.train", rows, "label\tsentence1\tsentence2")
    put(tmp_path, "senteval/MRPC.test", test, "label\tsentence1\tsentence2")
    task = TRANSFER.load("MRPC", fast(tmp_path))
    scores = task.score(lookup)
    assert scores["accuracy"].items.tolist() == [[1, 1], [1, 1], [0, 1], [1, 0]]
    assert scores["accuracy"].value == pytest.approx(50)
    assert scores["f1"].value == pytest.approx(100 * 2 / 3)  # 2 correct of 3 predicted and 3 gold
    assert task.settings.others["features"] == "difference-product"


def test_twenty_sentences_are_not_subj(tmp_path):
    put(tmp_path, "senteval/SUBJ", reviews(20))
    with pytest.raises(InputError, match=r"20 rows\. Expected 10,000 rows, as published"):
        TRANSFER.load("SUBJ", fast(tmp_path, checked=True))


@pytest.mark.parametrize("checked", [True, False])
def test_swapped_columns_are_refused(tmp_path, checked):
    put(tmp_path, "senteval/SUBJ", [(text, label) for label, text in reviews(10_000)])
    with pytest.raises(InputError, match="10,000 unknown labels"):
        TRANSFER.load("SUBJ", fast(tmp_path, checked))
    put(tmp_path, "senteval/MRPC.train", [("one text", 1, "another")] * 4076, "label\tsentence1\tsentence2")
    with pytest.raises(DataError, match="'one text' in column 'label'"):
        TRANSFER.load("MRPC", fast(tmp_path, checked))


def test_swapped_labels_of_cr_are_refused(tmp_path):
    right = [(1, f"good {n}") for n in range(2407)] + [(0, f"bad {n}") for n in range(1368)]
    put(tmp_path, "senteval/CR", right)
    assert TRANSFER.load("CR", fast(tmp_path, checked=True)).notes == ()
    put(tmp_path, "senteval/CR", [(1 - label, text) for label, text in right])
    with pytest.raises(InputError, match="there are labels 0: 2,407, 1: 1,368"):
        TRANSFER.load("CR", fast(tmp_path, checked=True))


@pytest.mark.parametrize("name", TRANSFER_SETS)
def test_missing_data_is_named(tmp_path, name):
    with pytest.raises(MissingPart, match=r"no file senteval/\S+\.tsv"):
        TRANSFER.load(name, fast(tmp_path))


def test_sentevals_own_folder_gives_the_same_task(tmp_path):
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    put(ours, "senteval/MR", [(1, "good one"), (1, "."), (0, "bad one")])
    folder = theirs / "data" / "downstream" / "MR"
    folder.mkdir(parents=True)
    (folder / "rt-polarity.pos").write_text("good one\n\n")
    (folder / "rt-polarity.neg").write_text("bad  one \n")
    tasks = [TRANSFER.load("MR", fast(place)) for place in (ours, theirs)]
    assert tasks[0].texts == tasks[1].texts
    assert tasks[0].sha256 == tasks[1].sha256
    with pytest.raises(MissingPart, match=r"no file .*downstream/CR/custrev.pos"):
        TRANSFER.load("CR", fast(theirs))


def save(name, columns, **types):
    """Save a data set in the hub's layout, in a folder with its name on the hub."""
    names = {column: types.get(column, Value("string")) for column in columns}
    Dataset.from_dict(columns, Features(names)).save_to_disk(name)


def test_class_names_on_the_hub_become_numbers(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    mr = "cornell-movie-review-data/rotten_tomatoes@aa13bc287fa6fcab6daf52f0dfb9994269ffea28"
    for split, label in (("train", 1), ("validation", 0), ("test", 1)):
        save(f"{mr}:{split}", {"text": [split], "label": [label]}, label=ClassLabel(names=["neg", "pos"]))
    put(tmp_path / "files", "senteval/MR", [(1, "train"), (0, "validation"), (1, "test")])
    tasks = [TRANSFER.load("MR", fast(place)) for place in (None, tmp_path / "files")]
    assert tasks[0].sha256 == tasks[1].sha256


def test_the_hubs_mrpc(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    label = ClassLabel(names=["not_equivalent", "equivalent"])
    for split in ("train", "validation", "test"):
        columns = {"sentence1": [f"{split} a"], "sentence2": ["b"], "label": [1], "idx": ["0"]}
        save(GLUE.format("mrpc", split), columns, label=label)
    header = "label\tsentence1\tsentence2"
    put(tmp_path, "senteval/MRPC.train", [(1, "train a", "b"), (1, "validation a", "b")], header)
    put(tmp_path, "senteval/MRPC.test", [(1, "test a", "b")], header)
    hub, files = (TRANSFER.load("MRPC", fast(place)) for place in (None, tmp_path))
    assert hub.sha256 == files.sha256


def test_sets_without_a_copy_on_the_hub():
    for part in (
        PARTS["CR"],
        PARTS["MPQA"],
        PARTS["SUBJ"],
        PARTS["SST-2 test"],
        PARTS["TREC train"],
        PARTS["TREC test"],
    ):
        with pytest.raises(MissingPart, match="no copy on the hub at a pinned revision"):
            read_rows(part, SetSource(), Shape.CLASSIFICATION)
    for name in ("CR", "MPQA", "SUBJ", "TREC"):
        with pytest.raises(MissingPart, match="Give a data folder"):
            TRANSFER.load(name, SetSource())


def test_the_average_is_over_all_seven():
    assert TRANSFER.averages[0].parts == ("MR", "CR", "SUBJ", "MPQA", "SST-2", "TREC", "MRPC") == TRANSFER.sets


@pytest.mark.skipif(not REAL.is_dir(), reason="the real sets are not at hand")
@pytest.mark.parametrize("name", ["MR", "SUBJ", "MPQA", "SST-2", "MRPC"])
def test_the_real_sets_are_as_published(name):
    task = TRANSFER.load(name, SetSource(REAL))
    published = {"MR": 10_662, "SUBJ": 10_000, "MPQA": 10_606, "SST-2": 67_349 + 872 + 1821, "MRPC": 2 * (4076 + 1725)}
    assert len(task.texts["symmetric"]) == published[name]
    assert task.notes == ()  # the published counts, and verified content


@pytest.mark.skipif(not REAL.is_dir(), reason="the real sets are not at hand")
def test_changed_content_of_a_real_set_is_noted(tmp_path):
    lines = (REAL / "senteval" / "MR.tsv").read_text(encoding="utf-8").split("\n")
    (tmp_path / "senteval").mkdir()
    (tmp_path / "senteval" / "MR.tsv").write_text("\n".join([lines[0], f"{lines[1]} !", *lines[2:]]), encoding="utf-8")
    task = TRANSFER.load("MR", SetSource(tmp_path))
    assert "the content differs from the verified copies" in task.notes[0]
