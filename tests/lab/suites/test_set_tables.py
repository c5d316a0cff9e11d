"""Tables of sets: what is read from YAML, and what is refused."""

import re

import pytest
from pydantic import ValidationError

from sentloom.data.shapes import Shape
from sentloom.evaluation.set_source import SetPart
from sentloom.evaluation.task import Average
from sentloom.lab.suites.probed_sets import ProbedSet
from sentloom.lab.suites.set_tables import read_table

TABLE = """\
parts:
  MR: {rows: 4, files: [a/MR, MR], hub: "owner/name@1:test", labels: {"0": 1, "1": 3}, also: {5: another release}}
  My MR: {name: MR, rows: null, sha256: [abc]}
sets:
  MR: [{shape: classification, train: MR, dev: My MR, scores: [f1, accuracy], note: "a copy"}]
averages:
  both: [MR, [A, B]]
"""
SUITES = ("sts", "transfer", "sentglue", "multilingual", "domain")


@pytest.fixture
def table(tmp_path):
    def read(text):
        (tmp_path / "toy.yaml").write_text(text, "utf-8")
        return read_table("toy", tmp_path)

    return read


def test_what_is_read(table):
    suite_table = table(TABLE)
    mr = SetPart("MR", 4, ("a/MR", "MR"), "owner/name@1:test", {"0": 1, "1": 3}, {5: "another release"})
    mine = SetPart("MR", None, sha256=("abc",))
    assert suite_table.parts == {"MR": mr, "My MR": mine}
    assert suite_table.means == (Average("both", ("MR", ("A", "B"))),)
    probed = ProbedSet("MR", Shape.CLASSIFICATION, mr, None, mine, scores=("f1", "accuracy"), note="a copy")
    assert suite_table.probed(suite_table.parts) == {"MR": [probed]}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("rows: 4", "row: 4"),
        ("rows: 4", "rows: many"),
        ("rows: 4", "rows: 4, sha: [abc]"),
        ("[abc]", "[12]"),
        ("classification", "classes"),
        ("averages", "means"),
    ],
)
def test_what_is_refused(table, old, new):
    with pytest.raises(ValidationError):
        table(TABLE.replace(old, new))


def test_a_part_that_is_not_there(table):
    suite_table = table(TABLE.replace("train: MR", "train: CR"))
    with pytest.raises(KeyError, match="CR"):
        suite_table.probed(suite_table.parts)


@pytest.mark.parametrize("suite", SUITES)
def test_hashes_are_whole_and_revisions_pinned(suite):
    table = read_table(suite)
    for part in table.parts.values():
        assert all(re.fullmatch("[0-9a-f]{64}", digest) for digest in part.sha256)
        assert not part.labels or sum(part.labels.values()) == part.rows
    for hub in (*table.forums.values(), *(part.hub for part in table.parts.values() if part.hub)):
        assert re.fullmatch(r"[\w./{}-]+@[0-9a-f]{40}:[\w+{}]+", hub)
