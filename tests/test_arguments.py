"""Arguments of public functions: each is checked against its annotation, and refused with a sentence."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import pytest

import sentloom
from sentloom import lab
from sentloom.arguments import has_type, kind_of, typed
from sentloom.errors import InputError, in_command
from tests.fitting.small_base import build_base


@pytest.mark.parametrize(
    ("hint", "good", "bad"),
    [
        (str, "a", 5),
        (int, np.int64(5), 5.0),
        (int, 5, True),
        (float, 5, "5"),
        (bool, False, 0),
        (str | None, None, b"a"),
        (Literal["a", "b"], "a", "c"),
        (Sequence[int], (1, 2), "12"),
        (Sequence[int], [], [1, "2"]),
        (Sequence[str] | str, "ab", ["a", None]),
        (Mapping[str, int], {"a": 1}, {"a": "1"}),
        (Mapping[str, int], {}, {1: 1}),
        (Annotated[int, "a number"], 1, "1"),
        (Callable[[str], None], print, "print"),
        (Any, object(), None),
    ],
)
def test_what_has_a_type(hint, good, bad):
    assert has_type(good, hint)
    assert has_type(bad, hint) is (hint is Any)


def test_the_error_says_what_was_found_and_expected():
    @typed
    def call(
        names: str | Path | Sequence[str | Path] | None = None,
        how: Literal["exact", "faiss"] = "exact",
        budget: Annotated[str, "a time", "say 10m"] = "1m",
        limits: Mapping[str, int] | None = None,
    ) -> str:
        return "called"

    expected = {
        ("names", 5): "names: found 5. Expected text, a path or a list of texts or paths, or None.",
        ("names", ("a", 1.5)): "names: found 1.5. Expected text, a path or a list of texts or paths, or None.",
        ("how", "fast"): "how: found 'fast'. Expected 'exact' or 'faiss'.",
        ("budget", 10): "budget: found 10. Expected a time.\nSay 10m.",
        ("budget", None): "budget: found None. Expected a time.\nSay 10m.",
        ("limits", frozenset()): "limits: found a value of type frozenset. Expected a dict, or None.",
    }
    for (name, value), said in expected.items():
        with pytest.raises(InputError) as refused:
            call(**{name: value})
        assert str(refused.value).startswith(said)
    with in_command(), pytest.raises(InputError, match=r"^--names: found 5"):
        call(5)
    assert call("a", "faiss") == "called"
    with pytest.raises(TypeError, match=r"call\(\) got an unexpected keyword argument 'name'"):
        call(name="a")


def test_a_long_value_is_named_by_its_type():
    assert kind_of("a" * 100) == "a value of type str"
    assert kind_of("a" * 10) == repr("a" * 10)


@pytest.fixture(scope="module")
def encoder(tmp_path_factory):
    return sentloom.Encoder.load(build_base(tmp_path_factory.mktemp("base")))


FUNCTIONS = ("evaluate", "fit", "read", "shrink")
OF_THE_LAB = ("compare", "mine", "reproduce", "synthesize", "train")
ENCODER = ("load", "save", "export", "encode", "similarity", "search")
DATASET = ("column", "place", "select", "write")


def test_every_argument_of_a_public_function_is_checked(encoder, tmp_path, monkeypatch):
    (folder := tmp_path / "here").mkdir()
    monkeypatch.chdir(folder)
    dataset = sentloom.read(["a b", "c d"])
    calls = [getattr(sentloom, name) for name in FUNCTIONS] + [getattr(lab, name) for name in OF_THE_LAB]
    calls += [getattr(encoder, name) for name in ENCODER] + [getattr(dataset, name) for name in DATASET]
    for call in calls:
        parameters = inspect.signature(call).parameters
        required = {
            name: ["x"] if name == "texts" else "x" for name, one in parameters.items() if one.default is one.empty
        }
        for name in parameters:
            with pytest.raises(InputError, match="found a value of type object") as refused:
                call(**{**required, name: object()})
            assert refused.value.where in (name, "texts"), call
    assert not [*folder.iterdir()]
