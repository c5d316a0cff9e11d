"""AFS: three topics, in our format and in the authors' own."""

import pytest

from sentloom.errors import DataError, InputError, MissingPart
from sentloom.evaluation.set_source import SetSource
from sentloom.lab.suites.sts import AFS, load_afs
from tests.evaluation.by_hand import at_angles, values, write

FAN = {"a": 0, "b": 10, "c": 20, "d": 30}
HEAD = ("topic", "sentence1", "sentence2", "score")
# In order, in reverse order, and with the last two swapped: Spearman 1, -1 and 1 - 6 * 2 / (3 * 8) = 1/2.
SCORES = {"gun-control": (5, 4, 3), "gay-marriage": (1, 2, 3), "death-penalty": (5, 1, 3)}
PAIRS = [
    (topic, "a", text, score) for topic, scores in SCORES.items() for text, score in zip("bcd", scores, strict=True)
]


def test_topics_are_scored_separately_and_averaged(tmp_path):
    write(tmp_path / "afs" / "AFS.tsv", HEAD, *PAIRS)
    task = load_afs("AFS", SetSource(tmp_path))
    scores = values(task, at_angles(**FAN))
    assert task.main == "pearson-mean"
    assert [scores[f"spearman {topic}"] for topic in SCORES] == pytest.approx([100, -100, 50])
    assert scores["spearman-mean"] == pytest.approx(50 / 3)
    assert scores["pearson-mean"] == pytest.approx(sum(scores[f"pearson {topic}"] for topic in SCORES) / 3)


def authors_csv(folder, encoding, text="a"):
    for topic, short in zip(SCORES, ("GC", "GM", "DP"), strict=True):
        lines = ["uniqueRowNo,regression_label,sentence_1,sentence_2,topic"]
        lines += [
            f'{row},{score},{text},"{other}",x' for row, (name, _, other, score) in enumerate(PAIRS) if name == topic
        ]
        folder.mkdir(exist_ok=True)
        (folder / f"ArgPairs_{short}.csv").write_bytes("\r\n".join(lines).encode(encoding))


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "latin-1"])
def test_the_authors_files_give_the_same_scores(tmp_path, encoding):
    write(tmp_path / "ours" / "afs" / "AFS.tsv", HEAD, *((topic, "café", *rest) for topic, _, *rest in PAIRS))
    authors_csv(tmp_path / "afs", encoding, "café")
    ours, theirs = load_afs("AFS", SetSource(tmp_path / "ours")), load_afs("AFS", SetSource(tmp_path))
    lookup = at_angles(**{**FAN, "café": 0})
    assert values(ours, lookup) == values(theirs, lookup)
    assert ours.sha256 == theirs.sha256


def test_our_format_wins(tmp_path):
    authors_csv(tmp_path / "afs", "utf-8")
    write(tmp_path / "afs" / "AFS.tsv", HEAD, *PAIRS)
    assert load_afs("AFS", SetSource(tmp_path)).source.endswith("AFS.tsv")


def test_other_spellings_of_topics_are_accepted(tmp_path):
    write(tmp_path / "afs" / "AFS.tsv", HEAD, *((topic.replace("-", " ").title(), *rest) for topic, *rest in PAIRS))
    assert "pearson gun-control" in load_afs("AFS", SetSource(tmp_path)).score(at_angles(**FAN))


def test_missing_on_the_hub_and_in_the_folder(tmp_path):
    with pytest.raises(MissingPart, match=r"afs/AFS.tsv"):
        load_afs("AFS", SetSource(tmp_path))
    with pytest.raises(MissingPart, match="no copy on the hub"):
        load_afs("AFS", SetSource())


def test_the_set_is_missing_if_one_of_the_authors_files_is(tmp_path):
    authors_csv(tmp_path / "afs", "utf-8")
    (tmp_path / "afs" / "ArgPairs_GM.csv").unlink()
    with pytest.raises(MissingPart):
        load_afs("AFS", SetSource(tmp_path))


@pytest.mark.parametrize("head", [HEAD, ("subject", *HEAD[1:])])
def test_unknown_topics_are_refused(tmp_path, head):
    write(tmp_path / "afs" / "AFS.tsv", head, *PAIRS[:3])
    with pytest.raises(InputError, match=r"the topics are gun-control|there is no column topic"):
        load_afs("AFS", SetSource(tmp_path))


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("regression_label,sentence_1\n1,a\n", "no column sentence_2"),
        ("", "no column"),
        ("regression_label,sentence_1,sentence_2\n", "no rows"),
        ("regression_label,sentence_1,sentence_2\n1,a,b\nhigh,a,b\n", r"line 3.*'high' in column 'regression_label'"),
        ("regression_label,sentence_1,sentence_2\n1,,b\n", r"line 2.*empty cell in column 'sentence_1'"),
        ("regression_label,sentence_1,sentence_2\n1,a\n", r"line 2.*empty cell in column 'sentence_2'"),
        ('regression_label,sentence_1,sentence_2\n1,"a,b\n', "line"),
    ],
)
def test_broken_files_of_the_authors_are_refused(tmp_path, content, said):
    authors_csv(tmp_path / "afs", "utf-8")
    (tmp_path / "afs" / "ArgPairs_DP.csv").write_text(content, encoding="utf-8")
    with pytest.raises((InputError, DataError), match=said):
        load_afs("AFS", SetSource(tmp_path))


def test_the_suite_has_one_set():
    assert AFS.sets == ("AFS",)
