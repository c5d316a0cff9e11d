"""Names of baselines are parsed into their parts and written back; each opens the baseline that it names."""

import numpy as np
import pytest

from sentloom.encoder import Encoder
from sentloom.errors import InputError
from sentloom.lab.baselines.names import BaselineName, parse_baseline
from sentloom.lab.baselines.whitening import Whitened
from sentloom.lab.baselines.wk_pooling import WkEncoder
from sentloom.lab.baselines.words import TfIdf, WordVectors

NAMES = {
    "tf-idf": BaselineName("tf-idf"),
    "binary": BaselineName("binary"),
    "words:a:b.txt": BaselineName("words", "a:b.txt"),
    "wk:owner/model@1f": BaselineName("wk", "owner/model@1f"),
    "whitening-8:model": BaselineName("whitening", "model", dimension=8),
    "flow:owner/model:a.txt,b.tsv": BaselineName("flow", "owner/model", ("a.txt", "b.tsv")),
}


@pytest.mark.parametrize("name", NAMES)
def test_a_name_has_its_parts_and_is_written_as_it_was_read(name):
    assert parse_baseline(name) == NAMES[name]
    assert str(NAMES[name]) == name


def test_parts_are_located():
    flow = parse_baseline("flow:model:texts.txt").located(lambda name: f"/there/{name}")
    assert str(flow) == "flow:/there/model:/there/texts.txt"
    assert (flow.model, flow.files) == ("/there/model", ("/there/texts.txt",))
    words = parse_baseline("words:glove.txt")
    assert (words.model, words.files) == (None, ("glove.txt",))
    assert parse_baseline("tf-idf").located(str.upper) == BaselineName("tf-idf")


@pytest.mark.parametrize(
    "name", ["embedded", "bert-base", "owner/wk", "wk", "words", "whitening", "whitening-8", "x:y"]
)
def test_other_names_are_not_baselines(name):
    assert parse_baseline(name) is None


@pytest.mark.parametrize(
    "name", ["tf-idf:x", "binary:x", "tf-idf-8", "wk:", "words-3:file", "wk-3:model", "whitening-0:model"]
)
def test_incomplete_names_are_refused(name):
    with pytest.raises(InputError, match="whitening:MODEL"):
        parse_baseline(name)


def test_every_form(small_folder, texts, tmp_path):
    words, data = tmp_path / "words.txt", tmp_path / "texts.txt"
    words.write_text("the 1 2\n")
    data.write_text("\n".join(texts))
    forms = {
        "tf-idf": TfIdf,
        "binary": TfIdf,
        f"words:{words}": WordVectors,
        f"wk:{small_folder}": WkEncoder,
        f"whitening:{small_folder}": Whitened,
        f"whitening-8:{small_folder}": Whitened,
        f"whitening-8:{small_folder}:{data}": Encoder,
    }
    for name, kind in forms.items():
        model = parse_baseline(name).open()
        assert type(model) is kind
        assert hasattr(model, "fit") == (kind in (TfIdf, Whitened))
        vectors = model.encode(texts, role="query", show_progress=False)
        assert (len(vectors), vectors.dtype) == (len(texts), np.float32)
        assert len(model.fingerprint()) == 64


def test_fitting_on_a_file_equals_fitting_on_the_same_text(small_folder, texts, tmp_path):
    data = tmp_path / "texts.txt"
    data.write_text("\n".join(texts))
    on_file, on_target = (parse_baseline(f"whitening-8:{small_folder}{end}").open() for end in (f":{data}", ""))
    assert np.array_equal(on_file.encode(texts), on_target.fit(texts).encode(texts))


def test_pooling_overrides_the_pooling_of_the_model(small_folder, texts):
    base = Encoder.load(small_folder, pooling="first-last")
    expected = Whitened(base).encode(texts)
    opened = parse_baseline(f"whitening:{small_folder}").open(pooling="first-last")
    assert np.array_equal(opened.encode(texts), expected)
