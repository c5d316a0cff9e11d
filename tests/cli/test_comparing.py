"""`sentloom lab compare RECIPE... -o DIR`: a table on the screen and as files; again, nothing is trained twice."""

import json

import pytest

from tests.encoder.small_models import build_model_folder
from tests.engine.small_recipes import Kitchen


@pytest.fixture(scope="module")
def bert(tmp_path_factory):
    return build_model_folder("bert", tmp_path_factory.mktemp("models") / "bert")


@pytest.fixture
def kitchen(tmp_path, bert, one_thread):
    return Kitchen(tmp_path, bert)


def test_a_table_of_recipes_and_variants(kitchen, sentloom):
    one = kitchen.recipe("one", {"method": "simcse"})
    two = kitchen.recipe("two", {"method": "simcse"}, variants={"hot": {"simcse.temperature": 0.5}, "plain": {}})
    out = kitchen.folder / "out"
    command = ["lab", "compare", one, two, "-o", out, "--seeds", "2", "--set", "simcse.steps=3"]
    done = sentloom(*command)
    assert done.returncode == 0, done.stderr
    lines = done.stdout[done.stdout.index("Comparison") :].splitlines()
    found = {
        line["name"]: line for line in json.loads((out / "compare.json").read_text())["lines"] if not line["is_base"]
    }
    assert list(found) == ["one", "two: hot", "two: plain"]
    for name, line in found.items():
        (cell,) = line["cells"].values()
        score = f"{cell['score']:.2f} ± {cell['deviation']:.2f} ({cell['change']:+.2f})"
        assert any(shown.split("  ")[1] == name and score in shown for shown in lines if "  " in shown)
        assert line["cost"]["steps"] == 3
        assert score in (out / "compare.md").read_text()
    for name in ("compare.json", "compare.md", "compare.csv"):
        assert f"written: {out / name}" in done.stdout
    assert len(list((out / "stages").iterdir())) == 4  # one and plain are the same work
    times = {path: path.stat().st_mtime_ns for path in (out / "stages").rglob("*")}
    again = sentloom(*command)
    assert again.stdout.count("done before") == 6
    assert {path: path.stat().st_mtime_ns for path in (out / "stages").rglob("*")} == times
    alone = sentloom(
        "lab", "compare", two, "-o", out, "--seeds", "1", "--variant", "hot", "--on", kitchen.folder / "faq.tsv"
    )
    assert alone.returncode == 0, alone.stderr
    assert "faq.tsv" in alone.stdout
    assert "one seed" in alone.stdout
    assert "two: plain" not in alone.stdout


def test_a_method_that_breaks_is_told_and_the_exit_code_says_so(kitchen, sentloom):
    breaks = kitchen.recipe("breaks", {"method": "simcse", "learning_rate": 1e38, "steps": 20})
    done = sentloom("lab", "compare", breaks, kitchen.recipe("plain"), "-o", kitchen.folder / "out", "--seeds", "1")
    assert done.returncode == 2
    assert "not in the table: breaks" in done.stdout
    assert len(done.stderr.strip().splitlines()) >= 2


def test_ctrl_c_says_how_to_go_on(kitchen, sentloom, monkeypatch):
    from sentloom.engine.stages import train

    def interrupted(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(train, "train", interrupted)
    done = sentloom("lab", "compare", kitchen.recipe("one", {"method": "simcse"}), "-o", kitchen.folder / "out")
    assert done.returncode == 130
    assert "Run the same command again to resume" in done.stdout


BAD = {
    "a recipe": (["self-guided-sts"], "self-guided-stsb"),
    "a variant": (["RECIPE", "--variant", "plan"], "plain"),
    "a set": (["RECIPE", "--on", "STS-C"], "STS-C"),
    "a change": (["RECIPE", "--set", "simcse.temprature=1"], "temprature"),
    "a second recipe": (["RECIPE", "BAD"], "missing.txt"),
}


@pytest.mark.parametrize("what", BAD)
def test_bad_input_ends_with_2_and_writes_nothing(what, kitchen, sentloom):
    good = kitchen.recipe("good", {"method": "simcse"}, variants={"plain": {}})
    bad = kitchen.recipe("bad", {"method": "simcse", "data": "missing.txt"})
    words, said = BAD[what]
    out = kitchen.folder / "out"
    done = sentloom("lab", "compare", *({"RECIPE": good, "BAD": bad}.get(word, word) for word in words), "-o", out)
    assert done.returncode == 2
    assert said in done.stderr
    assert len(done.stderr.strip().splitlines()) >= 2
    assert "Traceback" not in done.stderr
    assert not out.exists()
