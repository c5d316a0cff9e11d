"""Raw text as often as it occurs: the concatenation that the self-guided paper trains on."""

import pytest

from sentloom.engine.building import stage
from tests.paths import DATA


@pytest.fixture
def parts(tmp_path):
    """Two files of scored pairs: six sentences, of which three are distinct."""
    for name, rows in {"a": ["A.\tB."], "b": ["A.\tA.", "C.\tB."]}.items():
        lines = [f"{at}.5\t{row}" for at, row in enumerate(rows)]
        (tmp_path / f"{name}.tsv").write_text("\n".join(["score\tsentence1\tsentence2", *lines]) + "\n")
    return [str(tmp_path / "a.tsv"), str(tmp_path / "b.tsv")]


def rows_of(data, **options):
    made = stage("self-guided", name="s", preset="paper", data=data, **options)
    rows, _ = made.read(())
    return rows.column("text").to_pylist()


def test_sentences_come_once_or_as_often_as_they_occur(parts):
    assert sorted(rows_of(parts)) == ["A.", "B.", "C."]
    assert sorted(rows_of(parts, repeats=True)) == ["A.", "A.", "A.", "B.", "B.", "C."]


@pytest.mark.skipif(not (DATA).is_dir(), reason="needs STS-B")
def test_the_paper_s_concatenation_has_17_256_sentences_and_1_078_batches():
    files = [str(DATA / "sts" / f"STSB.{part}.tsv") for part in ("train", "dev", "test")]
    made = stage("self-guided", name="s", preset="paper", data=files, repeats=True)
    rows, _ = made.read(())
    assert len(rows) == 17_256
    assert made.settings.total_steps(made.settings.batches(rows, 1).per_epoch) == 1_078
