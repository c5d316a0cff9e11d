"""The variants are valid recipes that differ in what they say, and a whole run ends in a table."""

import gzip
from itertools import pairwise

import pytest

from benchmarks.ablations import BATCH, VARIANTS, main, same_label, topic
from sentloom.engine.stages import Train

SOME = {  # one of each kind of stage; all of them take several minutes
    "pairs": ["other answers of the batch", "mined, margin 0.05", "merged, 0.50 of it"],
    "texts": ["base", "self-guided, pooled", "random spans", "title to body"],
}
FILES = {name: f"{name}.csv" for name in ("train", "pairs", "texts", "titles")}


@pytest.mark.parametrize("kind", VARIANTS)
def test_every_variant_trains_on_as_many_rows_and_differs_from_the_others(kind):
    variants = VARIANTS[kind](FILES, 8, "embedded")
    settings = [one.settings for stages in variants.values() for one in stages if isinstance(one, Train)]
    assert {one.steps * one.batch for one in settings} == {8 * BATCH}
    assert all(one != other for one, other in pairwise(variants.values()))
    assert sum("merged" in name for name in variants) == 3


def test_a_guide_adds_variants_of_pairs():
    with_guide, without = (VARIANTS["pairs"](FILES, 7, guide) for guide in ("embedded", ""))
    assert sorted(set(with_guide) - set(without)) == ["guided by the guide", "mined, filtered by the guide"]


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("What are the symptoms of Ectopic Kidney ?", "Ectopic Kidney"),
        ("Is spastic paraplegia type 11 inherited ?", "spastic paraplegia type 11"),
        ("How to diagnose Gout ?", "Gout"),
        ("Do you have information about Tears", "Tears"),
        ("what now?", ""),
    ],
)
def test_the_title_of_an_answer_is_what_its_question_names(question, expected):
    assert topic(question) == expected


def test_pairs_made_from_labels_have_one_label_and_two_texts():
    texts, labels = [f"text {n}" for n in range(7)], list("aabbbbc")
    label_of = dict(zip(texts, labels, strict=True))
    pairs = same_label(texts, labels)
    assert len(pairs) == 6, "the only text of label c has no partner"
    assert all(label_of[one] == label_of[other] and one != other for one, other in pairs)


@pytest.mark.long
def test_a_whole_run_resumes_and_ends_in_a_table(tmp_path, capsys):
    (tmp_path / "data/qa").mkdir(parents=True)
    rows = [
        f"What is the price of ticket {n}?\tTicket {n} costs {3 * n} euros. Pay it soon at the counter. Bring your own "
        f"card with you. Counter {n % 7} is open on Mondays.\tSelQA"
        for n in range(200)
    ]
    with gzip.open(tmp_path / "data/qa/qa_pairs.en.tsv.gz", "wt", encoding="utf-8") as file:
        file.write("\n".join(["question\tanswer\tsubset", *rows]) + "\n")
    given = [str(tmp_path / "data"), "-o", str(tmp_path / "out"), "--sets", "selqa,selqa-text", "--seeds", "1"]
    given += ["--rows", "80", "--steps", "2", "--guide", "", "--variants", ";".join(SOME["pairs"] + SOME["texts"])]
    main(given)
    assert "minutes left" in capsys.readouterr().out
    main(given)
    shown = capsys.readouterr().out
    assert "minutes left" not in shown, "everything was kept"
    assert shown == (tmp_path / "out/table.md").read_text()
    rows = [line.strip("| ").split(" | ")[:2] for line in shown.splitlines()[2:]]
    assert rows == [["selqa", name] for name in ["base", *SOME["pairs"]]] + [
        ["selqa-text", name] for name in SOME["texts"]
    ]
