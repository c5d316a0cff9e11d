"""What every method inherits: encoding columns, masks of duplicates, and the encoder as its result."""

import torch

from sentloom.encoder import Encoder
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
    assert method.kept is method.finished() is encoder
    method.save(tmp_path / "model")
    assert Encoder.load(tmp_path / "model").fingerprint() == encoder.fingerprint()
