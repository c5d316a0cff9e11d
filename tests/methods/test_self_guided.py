"""Self-guided: every objective over transformers' own states, the guide untouched, the regulariser by hand."""

from itertools import product

import numpy as np
import pytest
import torch

from sentloom.encoder import Encoder
from sentloom.errors import InputError
from sentloom.methods.self_guided import SelfGuided, SelfGuidedOptions, distance, projection_head
from tests.encoder.small_models import SENTENCES
from tests.methods import oracles
from tests.methods.conftest import OTHERS, changed, optimise, pairs_batch, states_of, texts_batch

POOL = {"max": lambda states: states.max(axis=0), "mean": lambda states: states.mean(axis=0), "first": lambda s: s[0]}


def self_guided(encoder, **options):
    torch.manual_seed(0)
    return SelfGuided(encoder, SelfGuidedOptions(**({"head_width": 24, "temperature": 0.1} | options))).double()


def f_of(method):
    """The method's head as numpy's weights."""
    first, second = method.f[0], method.f[2]
    return [(layer.weight.detach().numpy(), layer.bias.detach().numpy()) for layer in (first, second)]


def expected_loss(method, folder, batch, chosen=None, skip=oracles.nobody):
    """The objective from transformers' own states; `chosen` is each sentence's layer."""
    options, tokenize = method.options, method.encoder.tokenize
    f = f_of(method)
    c = [oracles.mlp(f, layers[-1][0]) for layers in oracles.hidden_states(folder, tokenize(batch.first))]
    h = [
        [oracles.mlp(f, POOL[options.layer_pooling](layers[k])) for k in method.layers]
        for layers in oracles.hidden_states(folder, tokenize(batch.second))
    ]
    if options.objective == "opt3":
        return oracles.opt3(c, h, options.temperature, skip)
    guides = [own[k] for own, k in zip(h, chosen, strict=True)]
    oracle = {"sg": oracles.nt_xent, "opt1": oracles.opt1, "opt2": oracles.info_nce}[options.objective]
    return oracle(c, guides, options.temperature, skip)


# Every objective with one pooling and one choice of layers; `make faults` has every combination.
QUICK = {("sg", "mean", None), ("opt1", "first", (1, 3)), ("opt2", "max", (2, 3)), ("opt3", "mean", (1, 3))}


@pytest.mark.parametrize(
    ("objective", "pooling", "layers"),
    [
        pytest.param(*case, marks=() if case in QUICK else pytest.mark.long)
        for case in product(("sg", "opt1", "opt2", "opt3"), POOL, (None, (1, 3), (2, 3)))
    ],
)
def test_the_objectives_over_transformers_own_states(encoder, model_folder, objective, pooling, layers):
    method = self_guided(encoder, objective=objective, layer_pooling=pooling, layers=layers).eval()
    with torch.no_grad():  # f starts with zero biases and small weights: make it matter
        for parameter in method.f.parameters():
            parameter.add_(torch.randn(parameter.shape, dtype=torch.float64))
    for batch in (texts_batch(key=(1, 2)), pairs_batch(key=(3, 4))):
        loss = method.loss(method.embed(batch), batch).item()
        expected = expected_loss(method, model_folder("bert"), batch, method.sampled(batch).tolist())
        assert loss == pytest.approx(expected, rel=1e-8)


def test_duplicates_are_no_negatives(encoder, model_folder):
    batch = texts_batch([SENTENCES[0], SENTENCES[1], SENTENCES[0].lower(), SENTENCES[2]])
    for objective in ("sg", "opt1", "opt2", "opt3"):
        method = self_guided(encoder, objective=objective).eval()
        loss = method.loss(method.embed(batch), batch).item()
        chosen = method.sampled(batch).tolist()
        masked = expected_loss(method, model_folder("bert"), batch, chosen, lambda i, j: {i, j} == {0, 2})
        assert loss == pytest.approx(masked, rel=1e-8)
        plain = self_guided(encoder, objective=objective, mask_duplicates=False).eval()
        loss = plain.loss(plain.embed(batch), batch).item()
        assert loss == pytest.approx(expected_loss(plain, model_folder("bert"), batch, chosen), rel=1e-8)


def test_every_family_has_a_layer_more_than_blocks(family, model_folder):
    method = SelfGuided(Encoder.load(model_folder(family)), SelfGuidedOptions(head_width=8))
    embeddings = method.train().embed(texts_batch())
    assert embeddings[1].shape == (len(SENTENCES), 4, 8)
    loss = method.loss(embeddings, texts_batch())
    loss.backward()
    assert torch.isfinite(loss)


def test_the_guide_is_bit_for_bit_the_start_and_gets_no_gradient(encoder):
    method = self_guided(encoder)
    before = states_of(method)
    optimise(method, [texts_batch(key=(0, step)) for step in range(4)])
    moved = changed(method, before)
    assert not any(name.startswith("guide.") for name in moved)
    assert any(name.startswith("encoder.") for name in moved)
    assert any(name.startswith("f.") for name in moved)
    assert all(p.grad is None and not p.requires_grad for p in method.guide.parameters())


def test_the_gradient_of_f_comes_from_both_sides(encoder):
    method, batch = self_guided(encoder, regularizer=0).eval(), texts_batch()
    c, h = embeddings = method.embed(batch)
    assert h.requires_grad  # through the shared f, not through the guide

    def gradient(loss):
        return torch.autograd.grad(loss, method.f[0].weight, retain_graph=True)[0]

    whole = gradient(method.loss(embeddings, batch))
    from_c = gradient(method.loss((c, h.detach()), batch))
    from_h = gradient(method.loss((c.detach(), h), batch))
    torch.testing.assert_close(whole, from_c + from_h)
    assert from_c.abs().max() > 0
    assert from_h.abs().max() > 0


def test_the_guides_dropout_is_off_unless_asked_for(encoder):
    batch = texts_batch()

    def layers_twice(method):
        method.train()
        return [method.guide.layers(method.guide.tokenize(batch.first), "mean", (1, 3)) for _ in range(2)]

    off, on = self_guided(encoder), self_guided(encoder, guide_dropout=True)
    assert torch.equal(*layers_twice(off))
    assert not torch.equal(*layers_twice(on))
    assert off.encoder.training
    on.eval()
    assert not on.guide.training
    off.eval().train()
    assert not off.guide.training


def test_frozen_layer_0_stays_bit_for_bit(encoder):
    method = self_guided(encoder)
    encoder.backbone.freeze(0)
    before = states_of(method)
    optimise(method, [texts_batch(key=(0, step)) for step in range(4)])
    moved = changed(method, before)
    assert not any("embeddings" in name for name in moved)
    assert any("encoder.layer.0" in name for name in moved)
    assert torch.equal(
        method.eval().encoder.layers(encoder.tokenize(SENTENCES), "mean", (0,)),
        method.guide.layers(encoder.tokenize(SENTENCES), "mean", (0,)),
    )


def test_f_is_dropped_from_what_is_kept(encoder, model_folder):
    kept = self_guided(encoder).finished()
    assert kept is encoder
    assert len(kept.heads) == 0
    assert kept.state_dict().keys() == Encoder.load(model_folder("bert")).state_dict().keys()


def test_the_regulariser_is_the_sum_of_squares(encoder):
    method = self_guided(encoder, regularizer=0.1)
    assert distance(method.encoder, method.guide).item() == 0
    layers = method.encoder.backbone.model.encoder.layer
    with torch.no_grad():
        layers[0].output.dense.weight[0, :3] += torch.tensor([3.0, 0.0, -1.0])
        layers[2].output.dense.bias[5] += 2
        method.f[0].weight += 1  # f is no part of it
    assert distance(method.encoder, method.guide).item() == pytest.approx(9 + 1 + 4)
    batch, plain = texts_batch(), self_guided(encoder, regularizer=0)
    plain.load_state_dict(method.state_dict())
    with_it, without = (m.eval().total_loss(m.embed(batch), batch).item() for m in (method, plain))
    assert with_it - without == pytest.approx(0.1 * 14)
    distance(method.encoder, method.guide).backward()
    gradient = layers[0].output.dense.weight.grad
    assert gradient[0, :3].tolist() == pytest.approx([6, 0, -2])
    assert gradient.abs().sum().item() == pytest.approx(8)


def test_first_dimensions_agree_with_those_of_the_layers_and_the_regulariser_counts_once(encoder, model_folder):
    method, batch = self_guided(encoder, head_width=None, dimensions=(32, 8, 4)).eval(), texts_batch()
    with torch.no_grad():
        method.encoder.backbone.model.encoder.layer[2].output.dense.bias[5] += 2
    folder, ids = model_folder("bert"), encoder.tokenize(batch.first)
    c = encoder(ids, raw=True).detach().numpy()
    h = [[states.max(axis=0) for states in layers] for layers in oracles.hidden_states(folder, ids)]
    parts = [oracles.opt3([v[:m] for v in c], [[v[:m] for v in own] for own in h], 0.1) for m in (32, 8, 4)]
    loss = method.total_loss(method.embed(batch), batch).item()
    assert loss == pytest.approx(sum(parts) + 0.1 * 4, rel=1e-8)


def test_the_regulariser_of_a_wholly_frozen_encoder_is_nothing(model_folder):
    method = self_guided(Encoder.load(model_folder("distilbert")))
    method.encoder.backbone.freeze(3)
    assert not any(p.requires_grad for p in method.encoder.parameters())
    assert float(distance(method.encoder, method.guide)) == 0
    assert all(np.isfinite(optimise(method, [texts_batch()])))


def test_pairs_feed_the_second_column_to_the_guide(encoder):
    method = self_guided(encoder).eval()
    pairs, first, second = pairs_batch(), texts_batch(SENTENCES), texts_batch(OTHERS)
    both = method.embed(pairs)
    torch.testing.assert_close(both[0], method.embed(first)[0])
    torch.testing.assert_close(both[1], method.embed(second)[1])


@pytest.mark.parametrize("layers", [(0, 1, 2, 3), (2, 3), (3,), (1, 3)])
def test_the_sampler_is_uniform_over_the_chosen_layers_and_in_range(encoder, layers):
    method = self_guided(encoder, objective="sg", layers=layers)
    drawn = torch.cat([method.sampled(texts_batch(key=(5, step))) for step in range(250)])  # 2000 draws
    counts = torch.bincount(drawn, minlength=len(layers))
    assert len(counts) == len(layers)
    share = 1 / len(layers)
    assert (counts - 2000 * share).abs().max() <= 5 * (2000 * share * (1 - share)) ** 0.5
    # each sentence by itself, each step anew
    assert len(layers) == 1 or len({tuple(method.sampled(texts_batch(key=(5, s))).tolist()) for s in range(9)}) > 1


def test_what_is_sampled_is_the_layer_of_the_model(encoder):
    """With layers (2, 3), index 0 is layer 2."""
    method, batch = self_guided(encoder, objective="opt2", layers=(2, 3)).eval(), texts_batch(key=(1, 1))
    every = method.guide.layers(encoder.tokenize(batch.first), "max", (0, 1, 2, 3))
    expected = torch.stack([every[i, 2 + k] for i, k in enumerate(method.sampled(batch).tolist())])
    assert set(method.sampled(batch).tolist()) == {0, 1}
    torch.testing.assert_close(method.embed(batch)[1], method.f(expected))


@pytest.mark.parametrize("objective", ["sg", "opt3"])
def test_vectors_do_not_depend_on_how_the_batch_is_cut(encoder, objective):
    method, batch = self_guided(encoder, objective=objective).eval(), texts_batch(key=(2, 3))
    whole = method.embed(batch)
    parts = [method.embed(batch.part(start, start + 3)) for start in (0, 3, 6)]
    for cut, uncut in zip(zip(*parts, strict=True), whole, strict=True):
        torch.testing.assert_close(torch.cat(cut), uncut)


def test_no_head_compares_the_states_themselves(encoder):
    method = self_guided(encoder, head_width=None).eval()
    embeddings = method.embed(texts_batch())
    torch.testing.assert_close(embeddings[0], encoder(encoder.tokenize(SENTENCES), raw=True))
    assert not list(method.f.parameters())


def test_the_head_is_the_papers():
    torch.manual_seed(0)
    f = projection_head(768, 4096)
    assert sum(p.numel() for p in f.parameters()) == 768 * 4096 + 4096 + 4096 * 4096 + 4096  # about 20 million
    for layer in (f[0], f[2]):
        assert layer.weight.std().item() == pytest.approx(0.02, rel=0.01)
        assert layer.bias.abs().max() == 0


def test_layers_that_are_not_there_and_projections_are_refused(encoder):
    for layers in ((4,), (-1,), (0, 7)):
        with pytest.raises(InputError, match="layers from 0 to 3"):
            self_guided(encoder, layers=layers)
    from sentloom.encoder.heads import Projection

    encoder.heads.append(Projection(32, 8))
    with pytest.raises(InputError, match="a projection after its pooling"):
        self_guided(encoder)


def test_training_brings_c_to_its_guide(encoder):
    encoder.backbone.dropout = 0.0
    losses = optimise(self_guided(encoder, regularizer=0), [texts_batch()] * 15, rate=3e-3)
    assert losses[-1] < losses[0]
