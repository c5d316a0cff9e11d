"""Reading sets from files, compressed files and the hub, and checks of their content."""

import gzip
from dataclasses import replace

import pytest
from datasets import ClassLabel, Dataset, Features, Value

from sentloom.data.shapes import Shape
from sentloom.errors import InputError, MissingPart
from sentloom.evaluation.set_source import Rows, SetPart, SetSource, check, find_file, read_part, read_rows

PART = SetPart("TOY", 4, ("toy/TOY", "toy/OTHER"), "owner/toy@1234:train", {"0": 1, "1": 3})
TSV = "label\ttext\n1\ta\n0\tb\n1\tc\n1\td\n"


def put(folder, text=TSV, name="toy/TOY.tsv"):
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    return SetSource(folder)


def save(name, labels, texts="abcdefgh"):
    """Save a data set in the hub's layout, in a folder with its name on the hub."""
    features = Features({"text": Value("string"), "label": ClassLabel(names=["no", "yes"])})
    Dataset.from_dict({"text": list(texts[: len(labels)]), "label": labels}, features).save_to_disk(name)


def test_the_hash_of_the_content_does_not_depend_on_the_format(tmp_path, monkeypatch):
    plain = read_part(PART, put(tmp_path / "plain"), Shape.CLASSIFICATION)
    packed = read_part(PART, put(tmp_path / "packed", name="toy/OTHER.tsv.gz"), Shape.CLASSIFICATION)
    monkeypatch.chdir(tmp_path)
    save(PART.hub, [1, 0, 1, 1])
    hub = read_part(replace(PART, labels={"no": 1, "yes": 3}), SetSource(), Shape.CLASSIFICATION)
    assert plain.sha256 == packed.sha256
    assert hub["text"] == plain["text"] == ["a", "b", "c", "d"]
    assert hub["label"] == ["yes", "no", "yes", "yes"]
    assert Rows({"text": hub["text"], "label": plain["label"]}, "x").sha256 == plain.sha256
    assert Rows({"text": plain["text"], "label": ["0", *plain["label"][1:]]}, "x").sha256 != plain.sha256


def test_several_splits_of_the_hub_are_joined_in_order(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    save("owner/toy@1234:train", [1, 0])
    save("owner/toy@1234:test", [1], "z")
    rows = read_rows(replace(PART, hub="owner/toy@1234:train+test"), SetSource(), Shape.CLASSIFICATION)
    assert rows["text"] == ["a", "b", "z"]
    assert rows["label"] == ["yes", "no", "yes"]


def test_missing_files_and_hub_sets_are_reported(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(MissingPart, match=r"no file toy/TOY.tsv"):
        find_file(PART, tmp_path)
    with pytest.raises(MissingPart, match="no copy on the hub"):
        read_part(replace(PART, hub=""), SetSource(), Shape.CLASSIFICATION)
    with pytest.raises(MissingPart, match=r"owner/toy@1234:train on the hub\.\nGive a data folder: data='DIR'"):
        read_part(PART, SetSource(), Shape.CLASSIFICATION)


def toy(labels):
    return Rows({"label": labels, "text": [str(number) for number in range(len(labels))]}, "toy")


def test_other_counts_are_refused_or_noted():
    short = toy(["1", "0", "1"])
    with pytest.raises(InputError, match=r"3 rows\. Expected 4 rows, as published"):
        check(short, PART, SetSource())
    assert "3 rows, but 4 rows are published" in check(short, PART, SetSource(checked=False)).notes[0]
    swapped = toy(["0", "0", "0", "1"])
    with pytest.raises(InputError, match=r"there are labels 0: 3, 1: 1\. Expected labels 0: 1, 1: 3"):
        check(swapped, PART, SetSource())
    assert "not comparable" in check(swapped, PART, SetSource(checked=False)).notes[0]
    assert check(toy(["1", "0", "1", "1"]), PART, SetSource()).notes == ()


def test_counts_in_use_are_noted():
    part = replace(PART, also={3: "the first release"})
    assert check(toy(["1", "0", "1"]), part, SetSource()).notes == (
        "the first release: not comparable with published scores",
    )


@pytest.mark.parametrize("slips", [0, 1, 2, 3])
def test_one_label_in_a_hundred_may_differ(slips):
    part = SetPart("TOY", 200, labels={"0": 100, "1": 100})
    rows = toy(["0"] * (100 + slips) + ["1"] * (100 - slips))
    if slips > 2:
        with pytest.raises(InputError, match="0: 103, 1: 97"):
            check(rows, part, SetSource())
    else:
        assert len(check(rows, part, SetSource()).notes) == bool(slips)


@pytest.mark.parametrize("checked", [True, False])
def test_text_instead_of_labels_is_always_refused(checked):
    rows = toy(["1", "a long sentence " * 20, "another", "0"])
    with pytest.raises(InputError) as caught:
        check(rows, PART, SetSource(checked=checked))
    assert "2 unknown labels" in str(caught.value)
    assert len(str(caught.value)) < 250


def test_other_content_is_noted(tmp_path):
    rows = toy(["1", "0", "1", "1"])
    part = replace(PART, sha256=(rows.sha256,))
    other = toy(["0", "1", "1", "1"])
    assert check(rows, part, SetSource(tmp_path)).notes == ()
    assert "the content differs" in check(other, part, SetSource(tmp_path)).notes[0]
    assert check(other, part, SetSource()).notes == ()  # the copy on the hub is pinned
