"""The comparison with the plain script: its arithmetic, and a whole run of a few steps."""

import gzip
import json

import numpy as np
import pytest

from benchmarks.against_script import interval, kept, main, mean_score, short


def test_the_score_is_the_mean_over_seeds():
    assert mean_score("1-NN", [[1.0, 0.0], [1.0, 1.0]], None) == pytest.approx(75)
    assert mean_score("Spearman", [[1, 2, 3], [3, 2, 1]], np.array([1, 2, 3])) == pytest.approx(0)


def test_the_interval_is_paired_and_over_clusters():
    draw = np.random.default_rng(0)
    values = draw.random((2, 40))
    assert interval("MAP", values, values, np.arange(40), None).tolist() == [0, 0], "equal runs differ by nothing"
    low, high = interval("MAP", values + 0.1, values, np.arange(40), None)
    assert (low, high) == (pytest.approx(10), pytest.approx(10)), "what all items share is certain"
    noise = np.repeat(draw.normal(size=10), 4)[None] / 10
    apart = np.ptp(interval("MAP", values[:1] + noise, values[:1], np.arange(40), None))
    together = np.ptp(interval("MAP", values[:1] + noise, values[:1], np.repeat(np.arange(10), 4), None))
    assert together > 1.5 * apart, "four equal rows count as one"


def test_a_verdict_is_shortened():
    assert short("VERDICT better +4.0 nDCG@10 [1.6, 6.5] level=95% clusters=98 uses=1") == "better +4.0"
    assert short("VERDICT no difference shown -0.3 Spearman [-1.6, 0.5] level=95%") == "no difference shown -0.3"
    assert short("") == ""


def test_what_is_finished_is_not_done_again(tmp_path):
    assert kept(tmp_path / "a.json", lambda: [1]) == [1]
    assert kept(tmp_path / "a.json", None) == [1]


@pytest.mark.long
def test_a_whole_run_resumes_and_ends_in_a_table(tmp_path, capsys):
    (tmp_path / "data/qa").mkdir(parents=True)
    rows = [f"What is the price of ticket {n}?\tIt costs {3 * n} euros at counter {n % 7}.\tSelQA" for n in range(300)]
    with gzip.open(tmp_path / "data/qa/qa_pairs.en.tsv.gz", "wt", encoding="utf-8") as file:
        file.write("\n".join(["question\tanswer\tsubset", *rows]) + "\n")
    given = [str(tmp_path / "data"), "-o", str(tmp_path / "out"), "--sets", "selqa", "--seeds", "1"]
    given += ["--rows", "160", "--budget", "6steps"]
    main(given)
    capsys.readouterr()
    records = {path.stem: json.loads(path.read_text()) for path in (tmp_path / "out").glob("*.json")}
    assert set(records) == {"selqa-6steps-base", "selqa-6steps-1-script", "selqa-6steps-1-fit"}
    assert len(records["selqa-6steps-base"]["MRR@10"]) == 80
    assert records["selqa-6steps-1-fit"]["verdict"].startswith("VERDICT")
    assert "train_loss" in (tmp_path / "out/selqa-6steps-1-script/log.txt").read_text()
    main(given)
    shown = capsys.readouterr().out
    assert "is running" not in shown
    assert "| selqa | pairs | no | nDCG@10 |" in shown
    assert shown.endswith((tmp_path / "out/table-6steps.md").read_text())
