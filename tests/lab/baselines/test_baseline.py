"""Baselines are opened by name, and encode each distinct text once."""

import numpy as np
import pytest

from sentloom.encoder import Encoder
from sentloom.errors import InputError
from sentloom.lab.baselines import TfIdf, Whitened, WkEncoder, WordVectors, open_baseline
from sentloom.lab.baselines.names import of_distinct


@pytest.mark.parametrize(
    "name", ["embedded", "bert-base", "owner/wk", "wk", "words", "whitening", "whitening-8", "x:y"]
)
def test_other_names_are_not_baselines(name):
    assert open_baseline(name) is None


@pytest.mark.parametrize("name", ["tf-idf:x", "tf-idf-8", "wk:", "words-3:file", "wk-3:model", "whitening-0:model"])
def test_incomplete_names_are_refused(name):
    with pytest.raises(InputError, match="whitening:MODEL"):
        open_baseline(name)


def test_every_form(small_folder, texts, tmp_path):
    words, data = tmp_path / "words.txt", tmp_path / "texts.txt"
    words.write_text("the 1 2\n")
    data.write_text("\n".join(texts))
    forms = {
        "tf-idf": TfIdf,
        f"words:{words}": WordVectors,
        f"wk:{small_folder}": WkEncoder,
        f"whitening:{small_folder}": Whitened,
        f"whitening-8:{small_folder}": Whitened,
        f"whitening-8:{small_folder}:{data}": Encoder,
    }
    for name, kind in forms.items():
        model = open_baseline(name)
        assert type(model) is kind
        assert hasattr(model, "fit") == (kind in (TfIdf, Whitened))
        vectors = model.encode(texts, role="query", show_progress=False)
        assert (len(vectors), vectors.dtype) == (len(texts), np.float32)
        assert len(model.fingerprint()) == 64


def test_fitting_on_a_file_equals_fitting_on_the_same_text(small_folder, texts, tmp_path):
    data = tmp_path / "texts.txt"
    data.write_text("\n".join(texts))
    on_file, on_target = (open_baseline(f"whitening-8:{small_folder}{end}") for end in (f":{data}", ""))
    assert np.array_equal(on_file.encode(texts), on_target.fit(texts).encode(texts))


def test_pooling_overrides_the_pooling_of_the_model(small_folder, texts):
    base = Encoder.load(small_folder, pooling="first-last")
    expected = Whitened(base).encode(texts)
    assert np.array_equal(open_baseline(f"whitening:{small_folder}", pooling="first-last").encode(texts), expected)


def test_each_distinct_text_is_encoded_once_and_a_single_text_gives_one_vector():
    asked = []

    def encode(texts):
        asked.extend(texts)
        return np.array([[len(text), 1.0] for text in texts], np.float32)

    assert of_distinct(["bb", "a", "bb"], encode).tolist() == [[2, 1], [1, 1], [2, 1]]
    assert asked == ["bb", "a"]
    assert of_distinct("ccc", encode).tolist() == [3, 1]
    with pytest.raises(InputError, match="item 1: found int 3"):
        of_distinct(["a", 3], encode)
