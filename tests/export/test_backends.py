"""`auto` takes the fastest proven form, remembers it, and never one that was refused."""

import json

import numpy as np
import pytest

from sentloom.encoder import Encoder
from sentloom.encoder.formats.registry import tried_names
from sentloom.errors import InputError, ModelError
from sentloom.export import backends
from sentloom.export.backends import choose, cpu_name, interleaved, with_backend
from sentloom.files import cache_folder
from tests.encoder.small_models import SENTENCES


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        ({"torch": 1.0, "onnx": 1.2, "ctranslate2-int8": 0.7}, "ctranslate2-int8"),
        ({"torch": 1.0, "onnx": 0.97}, "torch"),  # not clearly faster
        ({"torch": 1.0}, "torch"),
    ],
)
def test_the_fastest_if_it_is_clearly_faster(seconds, expected):
    assert choose(seconds) == expected


def test_rounds_alternate_and_the_fastest_counts():
    order, now = [], iter([0, 5, 10, 11, *range(100, 200)])  # a takes 5 and b 1 in the first round, later 1 each
    seconds = interleaved({"a": lambda: order.append("a"), "b": lambda: order.append("b")}, lambda: next(now))
    assert order == ["a", "b"] * (backends.ROUNDS + 1)
    assert seconds == {"a": 1, "b": 1}


def test_a_cpu_is_known_by_its_model_and_flags():
    lines = ["processor : 0", "model name : X", "flags : avx2", "processor : 1", "model name : X", "flags : avx2"]
    assert cpu_name(lines) == "model name : X\nflags : avx2"
    assert cpu_name([])


def with_exports(monkeypatch, refused=()):
    """Exports that only record what was asked for."""
    made = []

    def fake(encoder, name, folder, accept_loss, log):
        made.append(name)
        if name in refused:
            raise ModelError(f"export to {name}", "its vectors are not the model's", "", "use another target")
        encoder.save(folder)

    monkeypatch.setattr(backends, "export", fake)
    return made


def test_auto_measures_once_and_keeps_only_what_it_chose(bert, monkeypatch):
    made = with_exports(monkeypatch, refused={"ctranslate2-int8"})
    monkeypatch.setattr(backends, "interleaved", lambda runs: {name: 1.0 + (name != "onnx") for name in runs})
    encoder, said = Encoder.load(bert), []
    fastest = with_backend(encoder, "auto", said.append)
    (record,) = cache_folder().glob("exports/*/fastest.json")
    known = json.loads(record.read_text())
    assert made == tried_names()
    assert (known["fastest"], list(known["refused"])) == ("onnx", ["ctranslate2-int8"])
    assert "ctranslate2-int8" not in known["seconds"]
    assert sorted(path.name for path in record.parent.iterdir() if path.is_dir()) == ["onnx"]
    assert "not ctranslate2-int8: its vectors are not the model's" in said
    np.testing.assert_allclose(fastest.encode(SENTENCES), encoder.encode(SENTENCES), atol=1e-6)
    with_backend(encoder, "auto", said.append)
    assert made == tried_names()  # not measured again


def test_a_damaged_measurement_is_made_again(bert, monkeypatch):
    made = with_exports(monkeypatch)
    monkeypatch.setattr(backends, "interleaved", lambda runs: dict.fromkeys(runs, 1.0))
    encoder = Encoder.load(bert)
    assert with_backend(encoder, "auto", print) is encoder
    (record,) = cache_folder().glob("exports/*/fastest.json")
    record.write_text("{}")
    assert with_backend(encoder, "auto", print) is encoder
    assert made == 2 * tried_names()


def test_a_named_backend_is_exported_once(bert, monkeypatch):
    made = with_exports(monkeypatch)
    encoder = Encoder.load(bert)
    for _ in range(2):
        with_backend(encoder, "onnx", print)
    assert made == ["onnx"]


def test_other_prompts_are_kept(bert, monkeypatch):
    from sentloom.encoder import Prompt

    with_exports(monkeypatch)
    encoder = Encoder.load(bert, prompts={"query": Prompt("a man ")})
    assert with_backend(encoder, "onnx", print).prompts == encoder.prompts


def test_what_is_exported_already_stays(ctranslate2):
    loaded = Encoder.load(ctranslate2.folder)
    assert with_backend(loaded, "auto", print) is loaded


def test_an_unknown_backend(bert):
    with pytest.raises(InputError, match="'openvino' is unknown"):
        Encoder.load(bert, backend="openvino")
