"""The commands evaluate and geometry, as a user runs them."""

import json

import pytest

pytestmark = pytest.mark.usefixtures("embedded_encoder")


def test_evaluate_prints_a_table_writes_files_and_names_what_is_missing(sentloom, tmp_path):
    (tmp_path / "sts").mkdir()
    rows = ["5\tA dog runs.\tA dog is running.\tx", "3\tA dog runs.\tA cat runs.\tx", "0\tA dog runs.\tStocks fell.\tx"]
    (tmp_path / "sts/STSB.test.tsv").write_text("\n".join(["score\tsentence1\tsentence2\tsubset", *rows]) + "\n")
    refused = sentloom("evaluate", "embedded", "--data", tmp_path, "-o", tmp_path / "scores.json")
    assert refused.returncode == 2
    assert "--unchecked" in refused.stderr  # 3 pairs are not the published STS-B
    files = [tmp_path / f"scores.{ending}" for ending in ("json", "md", "csv")]
    outputs = [word for file in files for word in ("-o", file)]
    done = sentloom("evaluate", "embedded", "same=embedded,embedded", "--unchecked", "--data", tmp_path, *outputs)
    assert done.returncode == 0, done.stderr
    assert "mean of the seven sets" not in done.stdout  # of no set that is the published one
    assert "3 rows, but 1,379 rows are published" in done.stdout
    (suite,) = json.loads(files[0].read_text())["suites"]
    cells = suite["sets"][0]["cells"]
    assert cells["embedded"]["spearman"]["value"] == pytest.approx(100)  # the three cosines are in gold order
    assert cells["same"]["spearman"]["deviation"] == 0
    assert set(suite["missing"]) == {"STS12", "STS13", "STS14", "STS15", "STS16", "SICK-R"}
    before = files[0].read_bytes()
    sentloom("evaluate", "embedded", "same=embedded,embedded", "--unchecked", "--data", tmp_path, "-o", files[0])
    assert files[0].read_bytes() == before


def test_geometry_prints_numbers_and_draws(sentloom, tmp_path):
    rows = [f"{5 - i % 6}\tA dog runs {i}.\tA {'dog' if i % 6 < 3 else 'stock'} is running {i % 7}." for i in range(30)]
    (tmp_path / "pairs.tsv").write_text("\n".join(["score\tsentence1\tsentence2", *rows]) + "\n")
    out = tmp_path / "out"
    done = sentloom(
        "lab", "geometry", "embedded", "--pairs", tmp_path / "pairs.tsv", "--sweep", "--trajectory", "--tsne", "-o", out
    )
    assert done.returncode == 0, done.stderr
    assert sorted(path.name for path in out.iterdir()) == sorted(
        ["align-uniform.png", "geometry.json", "layers-1.png", "trajectory.png", "tsne-1.png"]
    )
    numbers = json.loads((out / "geometry.json").read_text())["embedded"]
    assert numbers["positives"] == 5  # the rows with a score of 5: strictly above 4
    assert len(numbers["layers"]) == 7
    assert f"{numbers['alignment']:.3f}" in done.stdout


def test_geometry_takes_all_translations_for_positives(sentloom, tmp_path):
    rows = [f"The dog number {i}.\tO cão número {i}." for i in range(9)]
    (tmp_path / "parallel.tsv").write_text("\n".join(["source\ttarget", *rows]) + "\n")
    geometry = ["lab", "geometry", "embedded", "--pairs", tmp_path / "parallel.tsv", "-o", tmp_path / "out"]
    done = sentloom(*geometry)
    assert done.returncode == 0, done.stderr
    numbers = json.loads((tmp_path / "out/geometry.json").read_text())["embedded"]
    assert (numbers["positives"], numbers["sentences"]) == (9, 18)
    for option in ("--sweep", "--tsne"):
        done = sentloom(*geometry, option)
        assert done.returncode == 2
        assert "the pairs have no scores" in done.stderr
    (tmp_path / "parallel.tsv").write_text("text\nA dog.\n")
    done = sentloom(*geometry)
    assert done.returncode == 2
    assert "scored-pairs, pairs or parallel" in done.stderr
