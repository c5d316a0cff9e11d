"""Where a fit keeps texts of the rows: in files that docs/privacy.md names, and with `--no-examples` in no report."""

import re

import pyarrow.parquet as pq
import pytest

from tests.paths import ROOT

THINGS = "printer router invoice password calendar keyboard projector scanner badge laptop".split()
ACTS = "replace reset order cancel lend repair update return".split()
CASES = [(act, thing, f"zqx{number}marker") for number, (act, thing) in enumerate((a, t) for a in ACTS for t in THINGS)]

PAIRS = [f"How do I {act} my {thing} {mark}?,To {act} the {thing} send form {mark}." for act, thing, mark in CASES]
LABELLED = [f"please {act} my {thing} {mark},{act}" for act, thing, mark in CASES]
TEXTS = [f"Please {act} my {thing} {mark}, the {thing} needs someone to {act} it." for act, thing, mark in CASES]
FILES = {
    "faq.csv": ["question,answer", *PAIRS, "Where is zqx999marker?,"],  # the last row cannot be used
    "tickets.csv": ["text,label", *LABELLED],
    "tickets.txt": TEXTS,
}


@pytest.mark.parametrize("name", ["faq.csv", *(pytest.param(one, marks=pytest.mark.long) for one in [*FILES][1:])])
def test_a_finished_fit_writes_its_report_again_without_examples(name, sentloom, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "words.txt").write_text("\n".join(f"{act} {thing}" for act, thing, _ in CASES), "utf-8")
    (tmp_path / name).write_text("\n".join(FILES[name]) + "\n", "utf-8")
    assert sentloom("lab", "init-model", "words.txt", "--layers", 1, "--width", 32, "-o", "base").returncode == 0
    command = ["fit", name, "-o", "model", "--base", "base", "--budget", "2steps", "--force"]

    assert sentloom(*command).returncode == 0
    assert {"model.fit/report.html", "model.fit/report.json", "model.fit/report.md"} == quoting_files(tmp_path)
    assert [path for path in files_with_rows(tmp_path / "model.fit") if not path.startswith(places_of_rows())] == []
    trained = stages(tmp_path)

    assert sentloom(*command, "--no-examples").returncode == 0
    assert quoting_files(tmp_path) == set()
    assert stages(tmp_path) == trained


def places_of_rows():
    """The files and folders of a fit that hold texts of the rows, by the page on privacy."""
    page = (ROOT / "docs/privacy.md").read_text("utf-8")
    first_cells = re.findall(r"^\| (`MODEL\.fit/.*?) \| (?!.*no texts)", page, re.MULTILINE)
    names = re.findall(r"`([^`]+)`", " ".join(first_cells))
    return tuple(name.removeprefix("MODEL.fit/") for name in names)


def files_with_rows(folder):
    for path in (path for path in folder.rglob("*") if path.is_file()):
        parquet = path.suffix == ".parquet"
        content = str(pq.read_table(path).to_pydict()).encode() if parquet else path.read_bytes()
        if b"marker" in content:
            yield path.relative_to(folder).as_posix()


def quoting_files(folder):
    """The files of the report and the model in which a row is quoted."""
    files = [*folder.glob("model/**/*"), *folder.glob("model.fit/plots/*"), *folder.glob("model.fit/report.*")]
    return {path.relative_to(folder).as_posix() for path in files if path.is_file() and b"marker" in path.read_bytes()}


def stages(folder):
    """The plan, and when each stage was trained."""
    results = {path.name: path.stat().st_mtime_ns for path in folder.glob("model.fit/stages/*")}
    return (folder / "model.fit" / "plan.json").read_bytes(), results
