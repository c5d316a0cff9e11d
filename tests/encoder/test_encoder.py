"""encode: vectors do not depend on the batch, odd input has defined behaviour, no unnecessary work."""

import subprocess
import sys

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from transformers import AutoModel, AutoModelForTextEncoding

from sentloom.data import read
from sentloom.encoder import Encoder
from sentloom.errors import InputError
from tests.encoder.small_models import DECODER_FAMILIES, SENTENCES


@pytest.fixture(scope="module")
def bert(model_folders):
    return Encoder.load(model_folders["bert"])


def cosine(a, b):
    return (a * b).sum(-1) / np.linalg.norm(a, axis=-1) / np.linalg.norm(b, axis=-1)


def test_a_name_is_not_an_encoder_but_can_be_loaded():
    with pytest.raises(InputError, match=r"Encoder\.load\('embedded'\)"):
        Encoder("embedded")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=25)
@given(st.lists(st.text(st.characters(codec="utf-8"), max_size=80), min_size=1, max_size=12))
def test_a_vector_does_not_depend_on_the_batch(bert, texts):
    together = bert.encode(texts)
    assert together.shape == (len(texts), bert.dimension)
    assert np.isfinite(together).all()
    for text, vector in zip(texts, together, strict=True):
        assert 1 - cosine(bert.encode([text])[0], vector) < 1e-6


def test_every_family_gives_the_same_vector_in_any_batch_and_order(encoder):
    texts = [*SENTENCES, "", " ".join(SENTENCES)]
    together = encoder.encode(texts)
    backwards = encoder.encode(texts[::-1])[::-1]
    alone = np.stack([encoder.encode(text) for text in texts])
    assert (1 - cosine(together, alone)).max() < 1e-6
    assert (1 - cosine(together, backwards)).max() < 1e-6


def test_training_mode_is_restored_and_does_not_affect_vectors(bert):
    expected = bert.encode(SENTENCES)
    bert.train()
    assert np.array_equal(bert.encode(SENTENCES), expected)
    assert bert.training
    bert.eval()


def test_each_distinct_sentence_is_encoded_once(model_folders):
    encoder = Encoder.load(model_folders["bert"])
    seen = []
    tokenize = encoder.tokenize
    encoder.tokenize = lambda texts, role: seen.extend(texts) or tokenize(texts, role)
    vectors = encoder.encode(["b", "a", "b", "", "a", "b"])
    assert seen == ["b", "a", ""]
    assert np.array_equal(vectors[[0, 0, 1]], vectors[[2, 5, 4]])


@pytest.mark.parametrize("window", [1, 3, 100])
def test_vectors_do_not_depend_on_windows_and_packs(bert, window):
    expected = bert.encode(SENTENCES * 3)
    small = bert.copy()
    small.window, small.tokens_per_pack = window, 16
    assert (1 - cosine(small.encode(SENTENCES * 3), expected)).max() < 1e-6


def test_odd_texts_get_finite_vectors(bert):
    vectors = bert.encode(["", "   ", "\n\t", "😀😀", "x " * 500_000, "‮مرحبا", "\x00"])
    assert np.isfinite(vectors).all()
    assert np.allclose(vectors[0], vectors[1], atol=1e-6)  # no words in either


def test_an_encoder_shows_itself_in_a_line(bert):
    assert repr(bert) == "Encoder(BertModel, 32 dimensions, pooling mean, at most 64 tokens, fp32 on cpu)"


def test_an_empty_list_gives_an_empty_array(bert):
    assert bert.encode([]).shape == (0, bert.dimension)


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (["a", None], "item 1: found None"),
        (["a", 3], "item 1: found int 3"),
        ([b"a"], "item 0: found bytes"),
        ([["a"]], "item 0: found list"),
        (["a\ud800b"], "lone surrogate at character 1"),
    ],
)
def test_non_strings_are_refused_with_their_position(bert, texts, message):
    with pytest.raises(InputError, match=message):
        bert.encode(texts)


def test_input_and_output_types(bert, tmp_path):
    expected = bert.encode(SENTENCES)
    assert bert.encode(SENTENCES[0]).shape == (bert.dimension,)
    assert np.array_equal(bert.encode(iter(SENTENCES)), expected)
    assert np.array_equal(bert.encode(np.array(SENTENCES, dtype=object)), expected)
    assert np.array_equal(bert.encode(pa.chunked_array([SENTENCES[:3], SENTENCES[3:]])), expected)
    out = np.lib.format.open_memmap(tmp_path / "v.npy", mode="w+", dtype=np.float32, shape=expected.shape)
    assert bert.encode(SENTENCES, out=out) is out
    assert np.array_equal(np.load(tmp_path / "v.npy"), expected)
    with pytest.raises(InputError, match="float32"):
        bert.encode(SENTENCES, out=np.empty((2, 2), np.float32))


def test_the_number_of_threads_is_restored(bert):
    torch.set_num_threads(before := 2)
    bert.encode(SENTENCES)
    with pytest.raises(InputError):
        bert.encode([None])
    assert torch.get_num_threads() == before


@pytest.mark.long
def test_memory_does_not_grow_with_the_number_of_texts(model_folders, tmp_path):
    """Encode 4,000 and 40,000 distinct texts into a memory-mapped array: the process's own memory hardly changes."""
    script = f"""
import numpy as np
import pandas as pd
from sentloom.data import read
from sentloom.encoder import Encoder
encoder = Encoder.load({str(model_folders["bert"])!r})
def held():
    lines = open("/proc/self/status").read().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("RssAnon"))
def run(n):
    out = np.lib.format.open_memmap({str(tmp_path / "v.npy")!r}, mode="w+", dtype=np.float32, shape=(n, encoder.dimension))
    encoder.encode((f"number {{i}} of many" for i in range(n)), out=out)
    return held()
run(4_000)
print(run(4_000), run(40_000))
"""
    if not sys.platform.startswith("linux"):
        pytest.skip("reads /proc/self/status, which only Linux has")
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    small, large = map(int, done.stdout.split())
    assert large - small < 40_000  # kB; the 36,000 additional texts as Python strings take about 3 MB


@pytest.mark.parametrize("batch_size", [1, 3, 100])
def test_batch_size_bounds_a_batch_and_changes_no_vector(bert, batch_size):
    texts = [f"{text} {number}" for number in range(4) for text in SENTENCES]
    sizes = [len(rows) for rows in bert.packs(bert.tokenize(texts), batch_size)]
    assert sum(sizes) == len(texts)
    assert max(sizes) <= batch_size
    assert np.abs(bert.encode(texts, batch_size=batch_size) - bert.encode(texts)).max() < 1e-6


@pytest.mark.parametrize("batch_size", [0, -1, "4", 2.0])
def test_a_batch_size_that_is_not_a_positive_integer_is_refused(bert, batch_size):
    with pytest.raises(InputError, match=rf"batch_size: found {batch_size!r}\. Expected an integer of 1 or more"):
        bert.encode(SENTENCES, batch_size=batch_size)


def test_similarity_is_the_cosine_of_texts_or_vectors(bert):
    vectors = bert.encode(SENTENCES).astype(np.float64)
    expected = np.array([[a @ b / np.linalg.norm(a) / np.linalg.norm(b) for b in vectors[:2]] for a in vectors])
    assert np.allclose(bert.similarity(SENTENCES, SENTENCES[:2]), expected, atol=1e-6)
    assert np.allclose(bert.similarity(bert.encode(SENTENCES), SENTENCES[:2]), expected, atol=1e-6)
    assert np.allclose(bert.similarity(np.array(SENTENCES), np.array(SENTENCES[:2], object)), expected, atol=1e-6)
    assert bert.similarity(SENTENCES[0], SENTENCES).shape == (len(SENTENCES),)
    assert isinstance(bert.similarity(SENTENCES[0], SENTENCES[1]), float)


def test_similarity_of_vectors_of_other_models_is_refused(bert):
    with pytest.raises(InputError, match="the vectors have 3 and 32 dimensions"):
        bert.similarity(np.ones((2, 3), np.float32), SENTENCES)


def test_search_ranks_by_cosine_and_the_first_of_equal_texts_wins(bert):
    texts = [*SENTENCES, SENTENCES[2]]
    hits = bert.search(SENTENCES[2], texts, k=3)
    assert [hit.row for hit in hits[:2]] == [2, 8]
    cosines = bert.similarity(SENTENCES[2], texts)
    assert [hit.row for hit in hits] == sorted(range(9), key=lambda row: -cosines[row].round(6))[:3]
    assert hits[0].text == SENTENCES[2]
    assert hits[0].score == pytest.approx(1, abs=1e-5)
    assert len(bert.search(SENTENCES, texts, k=20)) == len(SENTENCES)
    assert len(bert.search(SENTENCES[0], texts, k=20)) == 9
    vectors = bert.encode(texts, role="document")
    assert bert.search(SENTENCES[2], texts, k=3, vectors=vectors) == hits
    with pytest.raises(InputError, match="there are 8 vectors for 9 texts"):
        bert.search("a", texts, vectors=vectors[:8])


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"k": 0}, "found 0. Expected an integer of 1 or more"),
        ({"k": "5"}, "found '5'. Expected an integer of 1 or more"),
        ({"vectors": np.ones((8, 3), np.float32)}, r"shape \(8, 3\). Expected 32 dimensions"),
    ],
)
def test_search_refuses_other_numbers_and_vectors(wrong, said, bert):
    with pytest.raises(InputError, match=said):
        bert.search("where", SENTENCES, **wrong)


def test_search_in_a_single_string_is_refused(bert):
    with pytest.raises(InputError, match=r"single string(.|\n)*Pass a list of strings"):
        bert.search("q", "abc")


def test_tables_of_texts_are_encoded_and_other_tables_refused(bert):
    expected = bert.encode(SENTENCES)
    frame = pd.DataFrame({"text": SENTENCES, "n": range(8)})
    for texts in (frame, frame["text"], read(SENTENCES), pa.table({"text": SENTENCES})):
        assert np.array_equal(bert.encode(texts), expected)
    assert bert.search("a", frame, k=1)[0].text in SENTENCES
    with pytest.raises(InputError, match="one column of texts"):
        bert.encode(pd.DataFrame({"question": ["a"], "answer": ["b"]}))
    pairs = read(pd.DataFrame({"question": ["a"], "answer": ["b"]}))
    with pytest.raises(InputError, match=r"such as data\['question'\]"):
        bert.encode(pairs)
    assert np.array_equal(bert.encode(pairs["anchor"]), bert.encode(["a"]))


def test_bf16_gives_near_vectors_of_float32_and_a_fingerprint_of_its_own(model_folders, family):
    exact, rough = (Encoder.load(model_folders[family], precision=precision) for precision in ("fp32", "bf16"))
    expected, vectors = exact.encode(SENTENCES), rough.encode(SENTENCES)
    assert vectors.dtype == np.float32
    assert 0 < np.abs(expected - vectors).max() < 0.1
    assert (cosine(expected, vectors) > 0.99).all()
    assert exact.fingerprint() != rough.fingerprint()
    assert next(rough.parameters()).dtype == torch.float32


POOL = {"first": lambda states: states[0], "mean": lambda states: states.mean(0), "max": lambda states: states.amax(0)}


def single_states(folder, family, ids):
    """Run transformers' own forward on each sentence separately: [sentence][layer] -> (tokens, d)."""
    kind = AutoModelForTextEncoding if family in DECODER_FAMILIES else AutoModel
    model = kind.from_pretrained(folder).eval()
    outputs = [model(input_ids=torch.tensor([sentence]), output_hidden_states=True).hidden_states for sentence in ids]
    return [[layer[0] for layer in layers] for layers in outputs]


@pytest.mark.usefixtures("one_thread")
@torch.no_grad()
def test_layers_equal_pooled_single_sentences(encoder, family, model_folders):
    encoder.tokens_per_pack = 40  # several packs: the order of rows must be restored
    ids = encoder.tokenize(SENTENCES)
    asked = (3, 0, 2)
    states = single_states(model_folders[family], family, ids)
    for how, pool in POOL.items():
        ours = encoder.layers(ids, how, asked)
        expected = torch.stack([torch.stack([pool(layers[k]) for k in asked]) for layers in states])
        torch.testing.assert_close(ours, expected, atol=2e-6, rtol=1e-5)
    last = encoder.layers(ids, "mean", (-1,))
    torch.testing.assert_close(last[:, 0], torch.stack([layers[-1].mean(0) for layers in states]), atol=2e-6, rtol=1e-5)


@pytest.mark.usefixtures("one_thread")
@torch.no_grad()
def test_token_states_equal_single_sentences_in_order(encoder, family, model_folders):
    encoder.tokens_per_pack = 40
    ids = encoder.tokenize(SENTENCES)
    draw = np.random.default_rng(0)
    places = [np.sort(draw.choice(len(sentence), int(draw.integers(len(sentence))), replace=False)) for sentence in ids]
    places[2], places[4] = places[2][:0], places[4][::-1]  # no token of one sentence; an unsorted order in another
    states = single_states(model_folders[family], family, ids)
    expected = torch.cat([layers[-1][at.copy()] for layers, at in zip(states, places, strict=True)])
    assert len(expected) == sum(map(len, places)) > 10
    torch.testing.assert_close(encoder.token_states(ids, places), expected, atol=2e-6, rtol=1e-5)


@pytest.mark.usefixtures("one_thread")
def test_raw_vectors_have_their_own_length_and_a_gradient(encoder):
    ids = encoder.tokenize(SENTENCES)
    encoder.unit_length = True
    raw, unit = encoder(ids, raw=True), encoder(ids)
    lengths = raw.norm(dim=1)
    assert (lengths - 1).abs().min() > 1e-3
    torch.testing.assert_close(raw / lengths[:, None], unit)
    encoder.unit_length = False
    torch.testing.assert_close(encoder(ids), raw)
    assert raw.requires_grad


@pytest.mark.usefixtures("one_thread")
def test_a_copy_shares_the_tokenizer_and_no_weights(encoder):
    copy = encoder.copy()
    assert copy.tokens is encoder.tokens
    ours, theirs = dict(encoder.named_parameters()), dict(copy.named_parameters())
    assert ours.keys() == theirs.keys()
    before = encoder(encoder.tokenize(SENTENCES)).detach()
    assert all(torch.equal(ours[name], theirs[name]) for name in ours)
    assert not {p.data_ptr() for p in ours.values()} & {p.data_ptr() for p in theirs.values()}
    with torch.no_grad():
        for parameter in copy.parameters():
            parameter.add_(1)
    copy.requires_grad_(False)
    copy.backbone.dropout = 0.7
    copy.prompts["query"] = "q"
    assert torch.equal(encoder(encoder.tokenize(SENTENCES)).detach(), before)
    assert all(p.requires_grad for p in encoder.parameters())
    assert encoder.backbone.dropout != 0.7
    assert "query" not in encoder.prompts
