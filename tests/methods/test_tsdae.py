"""TSDAE: a sentence from the vector of what is left of it."""

import numpy as np
import pytest
import torch

from sentloom.encoder import Encoder
from sentloom.encoder.heads import Projection
from sentloom.errors import InputError
from sentloom.methods.tsdae import DECODERS, Tsdae, TsdaeOptions
from tests.encoder.small_models import FAMILIES, SENTENCES
from tests.methods.conftest import texts_batch


def build(encoder, **options):
    torch.manual_seed(0)
    return Tsdae(encoder, TsdaeOptions(**options))


@torch.no_grad()
def oracle(method, batch):
    """Token by token: the decoder reads the tokens before it, without padding, and the sentence vector."""
    total, x = 0.0, method.encoder.tokenize(batch.first)
    for ids, left in zip(x, method.noisy(batch, x), strict=True):
        c = method.encoder([left], raw=True)
        for t in range(1, len(ids)):
            states = method.decoder(input_ids=torch.tensor([ids[:t]]), encoder_hidden_states=c[:, None])
            logits = method.head(inputs_embeds=states.last_hidden_state[:, -1:]).logits[0, 0]
            total -= torch.log_softmax(logits, dim=0)[ids[t]].item()
    return total


@pytest.mark.parametrize("family", ["bert", "roberta", "electra"])
def test_the_loss_is_that_of_every_token_from_those_before_it_and_the_vector(family, model_folder):
    method = build(Encoder.load(model_folder(family), pooling="mean")).double().eval()
    batch = texts_batch(SENTENCES[:4], key=(1, 3))
    assert method.summed_loss(batch).item() == pytest.approx(oracle(method, batch), rel=1e-6)
    assert method.weight(batch) == sum(len(ids) - 1 for ids in method.encoder.tokenize(batch.first))


def test_a_long_sentence_makes_no_padding_for_short_ones(encoder):
    """The loss and its gradient are those of one padded batch."""
    method, shapes = build(encoder).double().eval(), []
    texts = [*SENTENCES[5:7] * 3, " ".join(SENTENCES[:3])]
    batch, x = texts_batch(texts, key=(1, 3)), encoder.tokenize(texts)
    hook = method.decoder.register_forward_pre_hook(
        lambda _, __, given: shapes.append(tuple(given["input_ids"].shape)), with_kwargs=True
    )
    loss = method.summed_loss(batch)
    hook.remove()
    assert shapes == [(1, len(x[6]) - 1), (3, len(x[0]) - 1), (3, len(x[1]) - 1)]
    padded = method.reconstruction(x, encoder(method.noisy(batch, x), raw=True))
    assert loss.item() == pytest.approx(padded.item(), rel=1e-12)
    parameters = [p for p in method.parameters() if p.requires_grad]
    ours, theirs = (torch.autograd.grad(one, parameters, allow_unused=True) for one in (loss, padded))
    for mine, other in zip(ours, theirs, strict=True):
        assert (mine is None) == (other is None)
        if mine is not None:
            torch.testing.assert_close(mine, other, rtol=1e-9, atol=1e-12)


def test_the_vector_matters_and_learns(encoder):
    method, batch = build(encoder).double().eval(), texts_batch()
    vectors = method.encoder.forward(method.noisy(batch, encoder.tokenize(batch.first)), raw=True).detach()
    losses = []
    for one in (vectors, vectors.flip(0)):
        method.encoder.forward = lambda ids, raw, one=one: one.requires_grad_()
        losses.append(method.summed_loss(batch))
    losses[0].backward()
    assert vectors.grad.abs().sum(dim=1).min() > 0  # of every sentence
    assert losses[0].item() != losses[1].item()


def test_deletion_leaves_special_tokens_and_at_least_one_other(encoder):
    method = build(encoder)
    batch = texts_batch(key=(1, 5))
    x = encoder.tokenize(batch.first)
    kept = method.noisy(batch, x)
    specials = set(encoder.tokens.tokenizer.all_special_ids)
    for ids, left in zip(x, kept, strict=True):
        assert (left[0], left[-1]) == (ids[0], ids[-1])
        assert set(left) - specials
        rest = iter(ids)
        assert all(token in rest for token in left)  # in their order
    assert method.noisy(batch.part(2, 5), x[2:5]) == kept[2:5]  # whatever the chunks
    assert method.noisy(texts_batch(key=(1, 6)), x) != kept
    assert [len(left) for left in build(encoder, deletion=1).noisy(batch, x)] == [3] * 8
    assert build(encoder, deletion=0).noisy(batch, x) == x


def test_six_of_ten_tokens_are_deleted(encoder):
    method, counts = build(encoder), []
    x = [[2, *range(10, 210), 3]] * 8
    for step in range(5):
        counts += [len(left) - 2 for left in method.noisy(texts_batch(key=(0, step)), x)]
    assert np.mean(counts) == pytest.approx(80, abs=4)  # of 200, with a deviation of about 7 / sqrt(40)


def test_the_decoder_shares_the_encoders_weights_and_is_dropped(encoder, tmp_path):
    method = build(encoder)
    own = {id(p) for p in encoder.parameters()}
    names = [name for name, p in method.decoder.named_parameters() if id(p) not in own]
    assert names
    assert all("crossattention" in name for name in names)
    assert id(method.head.get_output_embeddings().weight) in own
    assert not encoder.backbone.model.config.is_decoder
    method.save(tmp_path / "model")
    again = Encoder.load(tmp_path / "model")
    np.testing.assert_allclose(again.encode(SENTENCES), encoder.encode(SENTENCES), atol=1e-6)
    assert not list((tmp_path / "model").rglob("*decoder*"))


def test_it_learns(encoder):
    encoder.backbone.dropout = 0.0
    method, batch = build(encoder, deletion=0.2).train(), texts_batch()
    optimizer, losses = torch.optim.AdamW(method.parameters(), lr=3e-3), []
    for _ in range(12):
        optimizer.zero_grad()
        loss = method.summed_loss(batch) / method.weight(batch)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.8 * losses[0]


@pytest.mark.parametrize("family", [name for name in FAMILIES if name not in DECODERS][:2])
def test_a_family_without_a_decoder_is_refused(family, model_folder):
    with pytest.raises(InputError, match=f"no decoder for a {family} model"):
        build(Encoder.load(model_folder(family)))


def test_a_projection_is_refused(encoder):
    encoder.heads.append(Projection(encoder.dimension, 8))
    with pytest.raises(InputError, match="the vectors have 8 dimensions"):
        build(encoder)
