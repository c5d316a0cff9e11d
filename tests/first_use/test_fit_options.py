"""A wrong option of `sentloom fit` is refused at once: before PyTorch, which takes seconds to import."""

import os
import subprocess
import sys

import pytest

WRONG = {
    "--budget 60": "--budget: '60' is not a budget",
    "--budget 1.5steps": "--budget: '1.5steps' is not a budget",
    "--dimensions 64,x": "--dimensions: cannot parse 'x'",
    "--dimensions 64,64": "--dimensions: a number of dimensions is given twice",
    "--base ./nowhere": "model './nowhere': there is no such folder",
    "--base embedded --base embedded": "--base: embedded is named twice",
    "--teacher ./nowhere": "model './nowhere': there is no such folder",
    "--guide ./nowhere": "model './nowhere': there is no such folder",
    "--writer ./nowhere": "model './nowhere': there is no such folder",
    "--writer-model name": "--writer-model can only be given for an endpoint",
    "--labels missing.jsonl": "missing.jsonl: it cannot be read",
    "--general missing": "--general: there is no folder missing",
    "--against missing.tsv": "missing.tsv: no such file or folder",
    "--against retrieval:missing.tsv": "missing.tsv: no such file or folder",
    "--corpus missing.txt": "missing.txt: no such file or folder",
    "--group missing": "--group: there is no column 'missing'",
    "--columns nothing": "--columns: cannot parse 'nothing'",
    "--device gpu": "--device: 'gpu' is not a device",
    "--device banana": "--device: 'banana' is not a device",
    "--seed -1": "--seed: -1 cannot be used",
    "--precision fp8": "--precision: fp8 cannot be used",
    "--shape table": "--shape: table cannot be used",
    "--max-tokens 0": "--max-tokens: 0 cannot be used",
}


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Data that could be fitted to, and a PyTorch that cannot be imported."""
    folder = tmp_path_factory.mktemp("options")
    rows = [f"How much is ticket {n}?\tTicket {n} costs {3 * n} euros." for n in range(90)]
    (folder / "faq.tsv").write_text("question\tanswer\n" + "\n".join(rows) + "\n", "utf-8")
    (folder / "poisoned").mkdir()
    (folder / "poisoned/torch.py").write_text("raise RuntimeError('PyTorch was imported')\n", "utf-8")
    return folder


def fit(place, *options):
    paths = [str(place / "poisoned"), *filter(None, [os.environ.get("PYTHONPATH")])]
    return subprocess.run(
        [sys.executable, "-m", "sentloom", "fit", "faq.tsv", "-o", "model", *options],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths), "HF_HUB_OFFLINE": "1", "COLUMNS": "500"},
        capture_output=True,
        encoding="utf-8",
        cwd=place,
    )


def test_the_poison_works(place):
    assert "PyTorch was imported" in fit(place, "--budget", "2steps").stderr


@pytest.mark.parametrize("options", ["--budget 60", "--device gpu", "--group missing"])
def test_a_wrong_value_is_refused_without_pytorch(place, options):
    done = fit(place, *options.split())
    assert done.returncode == 2, done.stderr
    assert WRONG[options] in done.stderr
    assert "Traceback" not in done.stderr
    assert not list(place.glob("model*"))


@pytest.mark.long
@pytest.mark.parametrize("options", WRONG)
def test_every_wrong_value_is_refused_without_pytorch(place, options):
    test_a_wrong_value_is_refused_without_pytorch(place, options)
