"""The gate: by files of results, score by score; by model folders; by fits; and what it refuses."""

import json
import math

import numpy as np
import pytest

from sentloom import Encoder, fit
from sentloom.encoder.saving import write_system
from sentloom.encoder.system import Fusion, System
from sentloom.errors import InputError
from sentloom.evaluation.evaluate import open_memory
from sentloom.systems.gate import gate as gate_in
from sentloom.systems.results_file import ResultsFile
from tests.fitting import small_base

NUMBERS = np.random.default_rng(7)
ROWS = [(f"how do I reset device {n}", f"press button {n} for {n + 3} seconds") for n in range(120)]


@pytest.fixture
def faq(tmp_path, monkeypatch):
    monkeypatch.setenv("SENTLOOM_CACHE", str(tmp_path / "cache"))
    return small_base.write_rows(tmp_path / "faq.tsv", "question answer", ROWS)


def scores_file(path, values):
    rows = [json.dumps({"query": query, "score": float(value)}) for (query, _), value in zip(ROWS, values, strict=True)]
    path.write_text("\n".join(rows), "utf-8")
    return path


def ranks_file(path, ranks):
    """Results in which the right answer has this rank (from 1), as CSV; beyond 5 it is not there."""
    lines = ["query,result"]
    for number, ((query, answer), rank) in enumerate(zip(ROWS, ranks, strict=True)):
        others = [ROWS[(number + step) % len(ROWS)][1] for step in range(1, 9)]
        lines += [f"{query},{result}" for result in [*others[: rank - 1], answer, *others[rank - 1 :]][:5]]
    path.write_text("\n".join(lines), "utf-8")
    return path


def gate(tmp_path, old, new, data, **options):
    return gate_in(str(old), str(new), [str(data)], lambda line: None, memory=open_memory(tmp_path / "m"), **options)


@pytest.mark.parametrize(
    ("change", "margin", "finding", "code"),
    [
        (0.1, 1.0, "better", 0),
        (-0.1, 1.0, "worse", 1),
        (-0.1, 30.0, "no worse", 0),
        (-0.005, 3.0, "no worse", 0),
        (0.0, 0.0, "cannot tell", 3),
    ],
)
def test_findings_and_exit_codes(faq, tmp_path, change, margin, finding, code):
    old = np.clip(NUMBERS.uniform(0.2, 0.8, len(ROWS)), 0, 1)
    new = old + change + 0.02 * np.resize([1, -1], len(ROWS))
    files = [scores_file(tmp_path / f"{name}.jsonl", values) for name, values in (("old", old), ("new", new))]
    gated = gate(tmp_path, *files, faq, margin=margin)
    assert (gated.finding, gated.exit_code) == (finding, code)
    assert gated.total.difference == pytest.approx(100 * change, abs=1e-9)
    assert gated.line.startswith(f"GATE {finding} {100 * change:+.1f} nDCG@10 [")
    assert f"margin={margin:g} level=95% clusters=120" in gated.line


def test_results_are_scored_by_their_ranks(faq, tmp_path):
    ranks = np.resize([1, 2, 3, 9], len(ROWS))
    old, new = ranks_file(tmp_path / "old.csv", ranks), ranks_file(tmp_path / "new.csv", np.minimum(ranks, 2))
    gated = gate(tmp_path, old, new, faq)
    assert gated.finding == "better"
    assert gated.total.before == pytest.approx(100 * (1 + 1 / math.log2(3) + 1 / 2 + 0) / 4)
    assert gated.total.after == pytest.approx(100 * (1 + 3 / math.log2(3)) / 4)


def test_the_same_content_under_another_name_is_identical_and_no_use_of_the_rows(faq, tmp_path):
    old, new = (scores_file(tmp_path / f"{name}.jsonl", np.full(120, 0.5)) for name in "ab")
    gated = gate(tmp_path, old, new, faq)
    assert (gated.finding, gated.exit_code, gated.line) == ("identical", 0, "GATE identical margin=1")
    assert not (tmp_path / "cache" / "test-uses").exists()


def test_a_second_use_of_the_rows_needs_a_wider_interval(faq, tmp_path):
    old = scores_file(tmp_path / "old.jsonl", NUMBERS.uniform(0, 1, 120))
    lines = [
        gate(tmp_path, old, scores_file(tmp_path / f"{n}.jsonl", NUMBERS.uniform(0, 1, 120)), faq).line for n in (1, 2)
    ]
    assert ["level=95%" in lines[0], "level=98.33%" in lines[1]] == [True, True]
    assert lines[1].endswith("uses=2")


def test_few_rows_cannot_tell(tmp_path, monkeypatch):
    monkeypatch.setenv("SENTLOOM_CACHE", str(tmp_path / "cache"))
    few = small_base.write_rows(tmp_path / "few.tsv", "question answer", ROWS[:15])
    old, new = (scores_file(tmp_path / f"{value}.jsonl", np.full(120, value)) for value in (0.9, 0.1))
    gated = gate(tmp_path, old, new, few)
    assert gated.exit_code == 3
    assert "15 independent clusters" in gated.reason


def test_models_are_gated_as_the_search_that_they_are(faq, tmp_path, base, capsys):
    fused = tmp_path / "fused"
    Encoder.load(base).save(fused, golden=False)
    assert gate(tmp_path, base, fused, faq).finding == "identical"
    write_system(System(Fusion(0.6, "english")), fused)
    gated = gate(tmp_path, base, fused, faq)
    assert gated.finding == "better"  # the numbers are in both texts
    assert gate(tmp_path, f"{base}", "bm25", faq).total.after > gated.total.before


def test_the_command(faq, tmp_path, sentloom):
    old = scores_file(tmp_path / "old.jsonl", NUMBERS.uniform(0.3, 0.5, 120))
    new = scores_file(tmp_path / "new.jsonl", NUMBERS.uniform(0.1, 0.2, 120))
    (tmp_path / "summary.md").write_text("# Before\n")
    done = sentloom("gate", old, new, faq, "--summary", tmp_path / "summary.md")
    assert done.returncode == 1, done.stderr
    assert done.stdout.splitlines()[-1].startswith("GATE worse -")
    summary = (tmp_path / "summary.md").read_text()
    assert summary.startswith("# Before\n## Search gate: worse\n")
    assert done.stdout.splitlines()[-1] in summary
    missing = sentloom("gate", old, tmp_path / "none", faq)
    assert (missing.returncode, "Traceback" in missing.stderr) == (2, False)
    assert sentloom("gate", old, new).returncode == 2


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ('{"query": "a"}', "it has the keys query"),
        ('{"query": "a", "score": 70}', "the score is 70"),
        ('{"query": "a", "score": 0.5}\n{"query": "b", "results": ["x"]}', "both results and scores"),
        ("[1]", "it is no JSON object"),
        ("{", "it cannot be read"),
        ("", "there is no row"),
    ],
)
def test_a_file_that_is_no_file_of_results_is_refused(content, said, tmp_path):
    (tmp_path / "r.jsonl").write_text(content)
    with pytest.raises(InputError, match=said):
        ResultsFile.read(tmp_path / "r.jsonl")


def test_files_that_do_not_go_together_are_refused(faq, tmp_path):
    scores, ranks = scores_file(tmp_path / "s.jsonl", np.full(120, 0.5)), ranks_file(tmp_path / "r.csv", [1] * 120)
    with pytest.raises(InputError, match="a metric that only their author knows"):
        gate(tmp_path, scores, ranks, faq)
    (tmp_path / "few.csv").write_text("query,result\na,b\n")
    with pytest.raises(InputError, match="120 of 120 queries"):
        gate(tmp_path, ranks, tmp_path / "few.csv", faq)


@pytest.fixture(scope="module")
def two(base, tmp_path_factory):
    """Two fits, the second with some more rows."""
    folder = tmp_path_factory.mktemp("two")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SENTLOOM_CACHE", str(folder / "cache"))
        for name, rows in (("old", 200), ("new", 240)):
            data = small_base.pairs(folder / f"{name}.tsv", rows)
            fit(data, folder / name, base=str(base), budget="4steps", force=True)
    return folder


def test_fits_are_gated_on_the_test_rows_that_neither_has_seen(two, monkeypatch):
    monkeypatch.setenv("SENTLOOM_CACHE", str(two / "cache"))
    gated = gate_in(str(two / "old.fit"), str(two / "new.fit"), [], print)
    assert gated.exit_code in (0, 1, 3)
    assert gated.total.items >= 10
    assert gated.total.documents == 240
    assert gated.uses > 1  # the fits used them too
    whole = gate_in(str(two / "new.fit"), str(two / "new"), [str(two / "new.tsv")], print)
    assert whole.finding == "identical"
    assert whole.left_out > 150  # what it trained and chose on


def test_a_fit_without_its_rows_is_refused(two, tmp_path):
    (tmp_path / "a.fit").mkdir()
    with pytest.raises(InputError, match=r"its report\.json is missing"):
        gate_in(str(two / "old.fit"), str(tmp_path / "a.fit"), [], print)
    (tmp_path / "a.fit" / "report.json").write_bytes((two / "old.fit" / "report.json").read_bytes())
    with pytest.raises(InputError, match="its train rows are missing"):
        gate_in(str(tmp_path / "a.fit"), str(two / "new.fit"), [], print)
