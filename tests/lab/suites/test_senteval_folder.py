"""SentEval's own folder: small files in its layout, and the rows that SentEval would read from them."""

import pytest

from sentloom.data.shapes import Shape
from sentloom.errors import DataError, InputError, MissingPart
from sentloom.evaluation.set_source import SetPart, SetSource
from sentloom.lab.suites import senteval_folder
from sentloom.lab.suites.senteval_folder import (
    READERS,
    binary_rows,
    find,
    mrpc_rows,
    read_any,
    rows,
    sick_rows,
    sst_rows,
    sts_rows,
    stsb_rows,
    trec_rows,
)


def put(folder, name, text, encoding="utf-8"):
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(text.encode(encoding))


@pytest.mark.parametrize("place", ["downstream", "data/downstream", "downstream/../downstream", ""])
def test_the_folder_is_found_in_three_places(tmp_path, place):
    put(tmp_path / place, "MR/rt-polarity.pos", "good\n")
    assert find(tmp_path).resolve() == (tmp_path / place).resolve()


def test_parts_are_read_from_our_layout_before_sentevals(tmp_path):
    part = SetPart("MR", None, ("senteval/MR",))
    with pytest.raises(MissingPart):
        read_any(part, SetSource(tmp_path), Shape.CLASSIFICATION)
    for file in ("rt-polarity.pos", "rt-polarity.neg"):
        put(tmp_path, f"downstream/MR/{file}", "theirs\n")
    assert read_any(part, SetSource(tmp_path), Shape.CLASSIFICATION)["text"] == ["theirs", "theirs"]
    put(tmp_path, "senteval/MR.tsv", "label\ttext\n1\tours\n")
    assert read_any(part, SetSource(tmp_path), Shape.CLASSIFICATION)["text"] == ["ours"]


def test_a_folder_in_our_layout_is_not_sentevals(tmp_path):
    put(tmp_path, "sts/STS12.tsv", "x")
    put(tmp_path, "senteval/MR.tsv", "x")
    assert find(tmp_path) is None
    assert find(tmp_path / "nowhere") is None


@pytest.mark.parametrize(
    ("name", "first", "second"),
    [
        ("MR", "rt-polarity.pos", "rt-polarity.neg"),
        ("CR", "custrev.pos", "custrev.neg"),
        ("SUBJ", "subj.objective", "subj.subjective"),
        ("MPQA", "mpqa.pos", "mpqa.neg"),
    ],
)
def test_two_files_of_one_class_each(tmp_path, name, first, second):
    put(tmp_path, f"{name}/{first}", "a  fine\tcafé \n\nfun\n", "latin-1")
    put(tmp_path, f"{name}/{second}", "bad", "latin-1")
    read = binary_rows(tmp_path, name)
    assert read.columns == {"label": ["1", "1", "1", "0"], "text": ["a fine café", ".", "fun", "bad"]}
    assert rows(tmp_path, f"senteval/{name}").sha256 == read.sha256


def test_lines_are_split_like_in_senteval(tmp_path):
    # SentEval reads these files in latin-1 with `splitlines`, which treats 0x85 as a line end.
    put(tmp_path, "CR/custrev.pos", "one\x85two\n", "latin-1")
    put(tmp_path, "CR/custrev.neg", "three\r\nfour\r\n", "latin-1")
    assert binary_rows(tmp_path, "CR")["text"] == ["one", "two", "three", "four"]
    # TREC is read in a loop over the file, which splits at newlines only.
    put(tmp_path, "TREC/TREC_10.label", "NUM:dist How\x85 far ?\n", "latin-1")
    assert trec_rows(tmp_path, "test")["text"] == ["How far ?"]


def test_sst(tmp_path):
    put(tmp_path, "SST/binary/sentiment-dev", "a charming clich\u00e9 .\t1\nno \u2028fun\t0\n")
    assert sst_rows(tmp_path, "dev").columns == {"label": ["1", "0"], "text": ["a charming clich\u00e9 .", "no fun"]}


def test_trec_has_coarse_classes_and_latin_letters(tmp_path):
    lines = "NUM:dist How far is it from Denver to Aspen ?\nHUM:ind Who was Ren\u00e9 ?\n"
    put(tmp_path, "TREC/train_5500.label", lines, "latin-1")
    assert trec_rows(tmp_path, "train").columns == {
        "label": ["NUM", "HUM"],
        "text": ["How far is it from Denver to Aspen ?", "Who was Ren\u00e9 ?"],
    }


def test_mrpc_keeps_quotes(tmp_path):
    header = "Quality\t#1 ID\t#2 ID\t#1 String\t#2 String\n"
    put(tmp_path, "MRPC/msr_paraphrase_test.txt", f'{header}1\t10\t20\t" Yes , he said .\tHe said yes .\n')
    assert mrpc_rows(tmp_path, "test").columns == {
        "label": ["1"],
        "sentence1": ['" Yes , he said .'],
        "sentence2": ["He said yes ."],
    }


def put_sts(folder, name, gold="4.5\n"):
    for subset in senteval_folder.STS[name]:
        put(folder, f"STS/{name}-en-test/STS.input.{subset}.txt", f"a {subset}\tb {subset}\n" * gold.count("\n"))
        put(folder, f"STS/{name}-en-test/STS.gs.{subset}.txt", gold)


def test_sts_drops_pairs_without_gold(tmp_path):
    put_sts(tmp_path, "STS16", "\n3\n\n0.5\n\n")
    read = sts_rows(tmp_path, "STS16")
    assert len(read) == 10
    assert read["score"] == [3.0, 0.5] * 5
    assert read["sentence2"][:3] == ["b answer-answer", "b answer-answer", "b headlines"]
    names = ["answer-answer", "headlines", "plagiarism", "postediting", "question-question"]
    assert read["subset"] == [name for name in names for _ in range(2)]


def test_the_prefix_surprise_of_sts12_is_removed(tmp_path):
    put_sts(tmp_path, "STS12")
    assert sts_rows(tmp_path, "STS12")["subset"] == ["MSRpar", "MSRvid", "SMTeuroparl", "OnWN", "SMTnews"]


def test_sts13_is_without_smt(tmp_path):
    put_sts(tmp_path, "STS13")
    assert sts_rows(tmp_path, "STS13")["subset"] == ["FNWN", "headlines", "OnWN"]


def test_stsb_and_sick(tmp_path):
    line = 'main-captions\tMSRvid\t2012test\t0001\t5.000\tA "man" .\tA man .\tlicence\n'
    put(tmp_path, "STS/STSBenchmark/sts-dev.csv", line)
    assert stsb_rows(tmp_path, "dev").columns == {
        "sentence1": ['A "man" .'],
        "sentence2": ["A man ."],
        "score": [5.0],
        "subset": ["main-captions/MSRvid"],
    }
    header = "pair_ID\tsentence_A\tsentence_B\trelatedness_score\tentailment_judgment\n"
    put(tmp_path, "SICK/SICK_test_annotated.txt", f"{header}6\tA dog\tA cat\t2.5\tNEUTRAL\n")
    assert sick_rows(tmp_path, "test").columns == {"sentence1": ["A dog"], "sentence2": ["A cat"], "score": [2.5]}


@pytest.mark.parametrize("name", READERS)
def test_a_missing_file_is_named(tmp_path, name):
    with pytest.raises(MissingPart, match="no file"):
        rows(tmp_path, name)


def test_damage_is_reported_by_line(tmp_path):
    put(tmp_path, "SST/binary/sentiment-test", "fine\t1\nno label\nfine\t0\nnone here\n")
    with pytest.raises(DataError) as caught:
        sst_rows(tmp_path, "test")
    assert caught.value.total == 2
    assert "sentiment-test, line 2: 'no label' is malformed. Expected at least 2 cells" in str(caught.value)
    put(tmp_path, "TREC/TREC_10.label", "NUM:dist How far ?\nWho goes there ?\n")
    with pytest.raises(DataError, match="line 2"):
        trec_rows(tmp_path, "test")
    put(tmp_path, "SICK/SICK_trial.txt", "header\n1\ta\tb\tmuch\n2\ta\tb\tnan\n3\ta\tb\t1\n")
    with pytest.raises(DataError) as caught:
        sick_rows(tmp_path, "dev")
    assert [problem.place for problem in caught.value.problems] == ["line 2", "line 3"]


def test_different_numbers_of_scores_and_pairs_are_refused(tmp_path):
    put_sts(tmp_path, "STS14")
    put(tmp_path, "STS/STS14-en-test/STS.gs.images.txt", "1\n2\n")
    with pytest.raises(InputError, match=r"images.txt: the file has 2 lines. Expected 1"):
        sts_rows(tmp_path, "STS14")


def test_another_encoding_is_refused(tmp_path):
    put(tmp_path, "SST/binary/sentiment-train", "caf\u00e9\t1\n", "latin-1")
    with pytest.raises(InputError, match="a text file in utf-8"):
        sst_rows(tmp_path, "train")
