"""SimCSE: two dropout masks, one loss."""

import numpy as np
import pytest
import torch
from pydantic import ValidationError
from torch.func import functional_call
from transformers import AutoModel

from sentloom.encoder import Encoder, Prompt
from sentloom.encoder.heads import Projection
from sentloom.errors import InputError
from sentloom.methods.simcse import Simcse, SimcseOptions
from tests.encoder.small_models import SENTENCES
from tests.methods import oracles
from tests.methods.conftest import changed, optimise, states_of, texts_batch


def simcse(encoder, **options):
    torch.manual_seed(0)
    return Simcse(encoder, SimcseOptions(**options)).double()


def test_the_loss_equals_the_formula_over_transformers_own_states(encoder, model_folder):
    method = simcse(encoder, temperature=0.07).eval()
    states = oracles.hidden_states(model_folder("bert"), encoder.tokenize(SENTENCES))
    weight, bias = (p.detach().numpy() for p in (method.head.linear.weight, method.head.linear.bias))
    z = [np.tanh(weight @ layers[-1][0] + bias) for layers in states]
    batch = texts_batch()
    loss = method.loss(method.embed(batch), batch).item()
    assert loss == pytest.approx(oracles.info_nce(z, z, 0.07), rel=1e-9)


def test_the_views_differ_under_dropout_and_are_equal_without(family, model_folder):
    encoder = Encoder.load(model_folder(family))
    method, batch = Simcse(encoder, SimcseOptions()), texts_batch()
    with torch.no_grad():
        z, other = method.eval().embed(batch)
        torch.testing.assert_close(z, other, atol=1e-6, rtol=1e-5)
        encoder.backbone.dropout = 0.1
        z, other = method.train().embed(batch)
    assert ((z - other).abs().amax(dim=1) > 1e-4).all()


def test_rows_have_masks_of_their_own(encoder):
    method = simcse(encoder, head=False).train()
    z, other = method.embed(texts_batch([SENTENCES[0]] * 4))
    rows = torch.cat([z, other]).detach()
    assert len(torch.unique(rows, dim=0)) == 8


def test_the_loss_of_training_vectors_goes_from_the_first_view_to_the_second(encoder):
    method, batch = simcse(encoder).train(), texts_batch()
    embeddings = method.embed(batch)
    z, other = (vectors.detach().numpy() for vectors in embeddings)
    loss = method.loss(embeddings, batch).item()
    assert loss == pytest.approx(oracles.info_nce(z, other, 0.05), rel=1e-9)
    assert abs(loss - oracles.info_nce(other, z, 0.05)) > 1e-6  # the order of the two does matter


def test_equal_sentences_are_no_negatives_of_each_other(encoder):
    sentences = [SENTENCES[0], SENTENCES[1], f"  {SENTENCES[0].upper()} ", SENTENCES[2]]
    batch = texts_batch(sentences)
    masking, plain = simcse(encoder), simcse(encoder, mask_duplicates=False)
    embeddings = masking.train().embed(batch)
    z, other = (vectors.detach().numpy() for vectors in embeddings)

    def equal(i, j):
        return {i, j} == {0, 2}

    assert masking.loss(embeddings, batch).item() == pytest.approx(oracles.info_nce(z, other, 0.05, equal), rel=1e-9)
    assert plain.loss(embeddings, batch).item() == pytest.approx(oracles.info_nce(z, other, 0.05), rel=1e-9)


def test_the_head_is_left_out_or_kept_as_asked(model_folder):
    def dimension_and_heads(**options):
        encoder = Encoder.load(model_folder("bert"))
        method = Simcse(encoder, SimcseOptions(**options))
        optimise(method, [texts_batch()])
        return isinstance(method.head, Projection), len(method.finished().heads)

    assert dimension_and_heads() == (True, 0)
    assert dimension_and_heads(keep_head=True) == (False, 1)
    assert dimension_and_heads(head=False) == (False, 0)
    assert dimension_and_heads(head=False, keep_head=True) == (False, 0)


def test_a_kept_head_gives_the_same_training_vectors(model_folder):
    outer, inner = (simcse(Encoder.load(model_folder("bert")), keep_head=keep).eval() for keep in (False, True))
    batch = texts_batch()
    torch.testing.assert_close(outer.embed(batch)[0], inner.embed(batch)[0])


def test_training_moves_all_that_has_a_part_in_it(encoder):
    method = simcse(encoder)
    before = states_of(method)
    first, *_, last = optimise(method, [texts_batch()] * 25, rate=3e-3)
    assert last < first
    still = {name for name in before if name not in changed(method, before)}
    assert all("pooler" in name or "position_ids" in name for name in still)


TEMPLATE, OTHER = Prompt('This sentence of "', '" means [MASK] .'), Prompt('The sentence : "', '" means [MASK] .')


def mask_states(model, tokens, ids, positions):
    """The state at the mask token of one sentence."""
    states = model(input_ids=torch.tensor([ids]), position_ids=torch.tensor([positions])).last_hidden_state[0]
    return states[ids.index(tokens.mask)].numpy()


@torch.no_grad()
def test_denoising_equals_promptberts_formula_over_transformers_own_states(model_folder):
    """h - h^ of each view: the state at the mask, less that of the template whose end stays where it is."""
    encoder = Encoder.load(model_folder("bert"), pooling="mask", prompts={"symmetric": TEMPLATE})
    method = simcse(encoder, head=False, denoise=True, other_prompt=OTHER).eval()
    model, tokens, views = AutoModel.from_pretrained(model_folder("bert")).double().eval(), encoder.tokens, []
    for prompt in (TEMPLATE, OTHER):
        alone, behind = (
            tokens.tokenizer(prompt.prefix + prompt.suffix)["input_ids"],
            len(tokens.bare([prompt.suffix])[0]) + 1,
        )
        view = []
        for ids in tokens(SENTENCES, prompt):
            places = list(range(len(ids)))
            h = mask_states(model, tokens, ids, places)
            view.append(h - mask_states(model, tokens, alone, places[: len(alone) - behind] + places[-behind:]))
        views.append(view)
    batch = texts_batch()
    loss = method.loss(method.embed(batch), batch).item()
    assert loss == pytest.approx(oracles.info_nce(*views, 0.05), rel=1e-9)


def test_the_gradient_of_the_denoised_loss_is_that_of_finite_differences(model_folder):
    encoder = Encoder.load(model_folder("bert"), pooling="mask", prompts={"symmetric": TEMPLATE})
    method, batch = simcse(encoder, denoise=True, other_prompt=OTHER).eval(), texts_batch(SENTENCES[:3])
    words = encoder.backbone.model.get_input_embeddings().weight
    rows = torch.tensor(sorted({encoder.tokens.mask, *encoder.tokens.bare(["sentence"])[0]}))

    class Loss(torch.nn.Module):
        method: Simcse

        def forward(self):
            return self.method.loss(self.method.embed(batch), batch)

    whole = Loss()
    whole.method = method

    def loss(moved):
        weights = words.detach().index_copy(0, rows, moved)
        states = {"method.encoder.backbone.model.embeddings.word_embeddings.weight": weights}
        return functional_call(whole, states, ())

    assert torch.autograd.gradcheck(loss, words.detach()[rows].requires_grad_(), fast_mode=True)


def test_denoising_is_refused_where_the_templates_part_is_unknown(model_folder):
    with pytest.raises(InputError, match="denoise: the pooling is mean"):
        simcse(Encoder.load(model_folder("bert")), denoise=True)
    with pytest.raises(InputError, match="positions cannot be given to a mpnet model"):
        simcse(Encoder.load(model_folder("mpnet"), pooling="mask"), denoise=True)
    encoder = Encoder.load(model_folder("bert"), pooling="mask")
    with pytest.raises(InputError, match=r"has no \[MASK\]"):
        simcse(encoder, other_prompt=Prompt("a", "b"))
    encoder.heads.append(Projection(32, 32))
    with pytest.raises(InputError, match="a projection behind its pooling"):
        simcse(encoder, denoise=True)
    with pytest.raises(ValidationError, match="inference, which subtracts nothing"):
        SimcseOptions(denoise=True, keep_head=True)
