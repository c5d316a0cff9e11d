"""A tokenizer may make a text somewhat longer, but not thousands of times; the bound is computed, not measured."""

import base64
import json
import shutil
from pathlib import Path

import pytest

from sentloom.encoder import Encoder
from sentloom.encoder.folder_checks import MOST_GROWTH, MOST_STEPS, check_growth
from sentloom.errors import ModelError


def replace(pattern, content, kind="String"):
    return {"type": "Replace", "pattern": {kind: pattern}, "content": content}


def charsmap(*texts):
    data = (4).to_bytes(4, "little") + b"trie" + b"".join(text.encode() + b"\0" for text in texts)
    return {"type": "Precompiled", "precompiled_charsmap": base64.b64encode(data).decode()}


def grows(*steps, part="normalizer"):
    tokenizer = {part: {"type": "Sequence", "normalizers": list(steps)}}
    try:
        check_growth(Path("tokenizer.json"), tokenizer)
    except ModelError as error:
        return error.problem
    return None


def test_growth_is_the_product_of_the_steps():
    assert grows(replace("e", "e" * 8), replace("e", "e" * 8)) is None  # 64 times
    assert "72 times longer" in grows(replace("e", "e" * 8), replace("e", "e" * 9))
    assert (
        grows(replace("eeee", "e" * 8), *[replace("``", '"')] * 20) is None
    )  # twice as long; steps that shorten do not count
    assert "1e+09 times longer" in grows(*[replace("e", "e" * 10)] * 9)
    assert "1e+09 times longer" in grows(*[{"type": "Sequence", "normalizers": [replace("e", "e" * 10)]}] * 9)
    assert "66 times" in grows(replace("e", "e" * 60), {"type": "Prepend", "prepend": "e" * 10})


def test_steps_without_a_type_and_decoders_are_counted():
    untyped = [{"pattern": {"String": "e"}, "content": "e" * 10}] * 2
    for part in ("normalizer", "pre_tokenizer", "decoder"):
        assert "100 times longer" in grows(*untyped, part=part)


@pytest.mark.parametrize("pattern", ["(?=e)", "e*", "e?", "^", r"\b", "e{0,3}", "e{,3}", "a|"])
def test_a_pattern_that_matches_nothing_inserts_its_content_everywhere(pattern):
    assert "128 times longer" in grows(*[replace(pattern, "e", "Regex")] * 7)
    assert grows(*[replace(" {2,}", " ", "Regex")] * 7, *[replace(r"\s+", "x", "Regex")] * 7) is None


def test_the_growth_of_a_sentencepiece_map_is_its_longest_text():
    assert grows(charsmap("a", "x" * 18), {"type": "Metaspace"}) is None  # 36 times
    assert "324 times longer" in grows(charsmap("x" * 18), charsmap("a", "y" * 18))


def test_the_number_of_steps_is_bounded():
    assert grows(*[replace("``", '"')] * (MOST_STEPS - 1)) is None  # plus the sequence itself
    assert f"{MOST_STEPS + 1} steps" in grows(*[{"type": "NFKC"}] * MOST_STEPS)


def test_a_folder_whose_tokenizer_explodes_is_refused(model_folders, tmp_path):
    folder = shutil.copytree(model_folders["bert"], tmp_path / "model")
    content = json.loads((folder / "tokenizer.json").read_text())
    content["normalizer"] = {"type": "Sequence", "normalizers": [replace("e", "e" * 10)] * 9}
    (folder / "tokenizer.json").write_text(json.dumps(content))
    patched = json.loads((folder / "tokenizer_config.json").read_text()) | {
        "tokenizer_class": "PreTrainedTokenizerFast"
    }
    (folder / "tokenizer_config.json").write_text(json.dumps(patched))
    with pytest.raises(ModelError, match=rf"tokenizer\.json: .* Expected at most {MOST_GROWTH} times"):
        Encoder.load(folder)
