"""What every method inherits: encoding columns, masks of duplicates, and the encoder as its result."""

import numpy as np
import pytest
import torch
from pydantic import ValidationError

from sentloom.data.batches import Batch
from sentloom.encoder import Encoder
from sentloom.methods import METHODS
from sentloom.methods.method import Method, NegativesOptions, Options
from tests.encoder.small_models import SENTENCES
from tests.methods.conftest import OTHERS, pairs_batch

SHARED = (["a", "b", "c"], ["x", "a", "c"])  # rows 0 and 1 share "a"; the two cells of row 2 are equal


def test_rows_that_share_a_text_are_masked_on_request(encoder):
    batch = pairs_batch(*SHARED)
    method = Method(encoder, NegativesOptions())
    assert method.same(batch).tolist() == [[False, True, False], [True, False, False], [False, False, False]]
    assert method.masked(batch) == 1
    for options in (NegativesOptions(mask_duplicates=False), Options()):
        assert Method(encoder, options).same(batch) is None
        assert Method(encoder, options).masked(batch) == 0


def test_columns_are_encoded_in_order(encoder):
    method = Method(encoder.eval(), Options())
    both = method.encode(SENTENCES[:3], OTHERS[:3])
    alone = [method.encode([text])[0] for text in (*SENTENCES[:3], *OTHERS[:3])]
    torch.testing.assert_close(both, torch.stack(alone), atol=1e-5, rtol=1e-5)


def test_the_encoder_is_kept_and_saved(encoder, tmp_path):
    method = Method(encoder, Options())
    assert method.scored is method.finished() is encoder
    method.save(tmp_path / "model")
    assert Encoder.load(tmp_path / "model").fingerprint() == encoder.fingerprint()


BARE = {"simcse": {"head": False}, "self-guided": {"head_width": None}, "contrastive-bt": {"head_width": None}}
CUT = ["contrastive", "simcse", "supervised", "cosent", "angle", "self-guided", "contrastive-bt"]


@pytest.mark.parametrize("name", CUT)
def test_with_dimensions_the_loss_is_summed_over_cut_vectors(name, encoder):
    kind = METHODS[name]
    plain = kind(encoder, kind.Options(**BARE.get(name, {}))).double().eval()
    cut = kind(encoder, plain.options.model_copy(update={"dimensions": (32, 8, 4)})).double().eval()
    rows = Batch(
        {"one": SENTENCES, "two": OTHERS}, np.arange(8), np.arange(8), (0, 0), list("aabbccdd"), [0, 1, 2, 3, 4, 5, 6, 7]
    )  # fmt: skip
    embeddings = plain.embed(rows)
    expected = sum(plain.loss(tuple(vectors[..., :m] for vectors in embeddings), rows).item() for m in (32, 8, 4))
    assert cut.total_loss(embeddings, rows).item() == pytest.approx(expected, rel=1e-12)
    assert plain.total_loss(embeddings, rows).item() == plain.loss(embeddings, rows).item()
    assert cut.finished().dimensions == (32, 8, 4)
    assert plain.finished().dimensions == ()  # this training was not for them


def test_dimensions_of_a_head_that_is_dropped_are_refused():
    for name, bare in BARE.items():
        with pytest.raises(ValidationError, match="a head that is dropped"):
            METHODS[name].Options(dimensions=(8, 4))
        assert METHODS[name].Options(dimensions=(8, 4), **bare).dimensions == (8, 4)
    assert METHODS["simcse"].Options(dimensions=(8, 4), keep_head=True).head
