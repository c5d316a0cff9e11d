"""Targets: how close each must be, and which of them lose something."""

from sentloom.encoder.formats.registry import target_named, target_names


def test_what_is_required_of_each():
    targets = {name: target_named(name) for name in target_names()}
    assert {name: target.required for name, target in targets.items()} == {
        "onnx": 0.99999,
        "onnx-int8": 0.99,
        "ctranslate2": 0.99999,
        "ctranslate2-int8": 0.99,
        "static": None,
        "sentence-transformers": 0.99999,
    }
    assert [name for name, target in targets.items() if target.lossy] == ["onnx-int8", "ctranslate2-int8", "static"]
