"""Measures by hand, and a whole run with a small causal model, which trains a step and ends in a table."""

import pytest

from benchmarks.writer_quality import FILES, diversity, held_out_rows, main
from sentloom import read
from sentloom.lab.writer_training import apart
from tests.writing.small_causal import build_small_causal


def test_diversity_by_hand():
    assert diversity(["a b c", "a b"]) == 2 / 3  # (a, b) twice
    assert diversity(["a", ""]) == 0


def nli_data(folder, rows=200):
    (folder / "nli/pairs").mkdir(parents=True)
    (folder / "sts").mkdir()
    for at, name in enumerate(FILES):
        premises = [f"A man number {at * rows + n} plays with his dog." for n in range(rows)]
        lines = [f"entailment\t{one}\tA man has a dog.\ncontradiction\t{one}\tNobody plays." for one in premises]
        (folder / f"nli/pairs/{name}.tsv").write_text("\n".join(["label\tpremise\thypothesis", *lines]) + "\n", "utf-8")
    for name in ("STSB.dev", "STSB.test", "STS12", "STS13", "STS14", "STS15"):
        pairs = "score\tsentence1\tsentence2\n3.0\tA cat sleeps.\tA cat rests.\n1.0\tIt rains.\tIt snows.\n"
        (folder / f"sts/{name}.tsv").write_text(pairs, "utf-8")
    return folder


def test_held_out_rows_are_of_premises_that_no_recipe_trains_on(tmp_path):
    data = nli_data(tmp_path)
    rows = held_out_rows(data, 1000)
    learned = [apart(read(data / f"nli/pairs/{name}.tsv"), 0.03)[0].column("premise").to_pylist() for name in FILES]
    assert len(rows) > 20
    assert not {row[0] for row in rows} & {premise for some in learned for premise in some}
    assert rows == held_out_rows(data, 1000)


@pytest.mark.long
def test_a_whole_run_resumes_and_ends_in_a_table(tmp_path, capsys):
    writer = build_small_causal(tmp_path / "writer")
    given = [str(nli_data(tmp_path / "data")), "-o", str(tmp_path / "out"), "--writer", str(writer)]
    given += ["--premises", "25", "--rows", "60", "--steps", "2"]
    main(given)
    assert capsys.readouterr().out.count("measuring") == 2
    main(given)
    shown = capsys.readouterr().out
    assert "measuring" not in shown, "everything was kept"
    assert shown.endswith((tmp_path / "out/table.md").read_text())
    assert {line.split(" | ")[4] for line in shown.splitlines()[-4:]} == {"entailment", "contradiction"}
    samples = (tmp_path / "out/samples.md").read_text()
    assert samples.count("- with shots: ") == samples.count("- fine-tuned: ") == 40
