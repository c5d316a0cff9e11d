"""The gradient cache: whatever the chunk, the gradient is that of the whole batch with all graphs kept."""

import numpy as np
import pytest
import torch
from accelerate import Accelerator
from accelerate.state import AcceleratorState

from sentloom.data.batches import Batches
from sentloom.encoder import Encoder
from sentloom.encoder.lora import add_lora
from sentloom.encoder.pooling import Pooling
from sentloom.errors import InputError
from sentloom.methods import METHODS, TokenMethod
from sentloom.training.gradients import add_gradients, own_share
from tests.encoder.small_models import SENTENCES, build_model_folder
from tests.training.small_runs import CASES, build, data_for, far, gradients, nudge, pairs, quick_first, whole_loss

QUICK = ("simcse", "bootstrapped", "self-guided", "mlm", "contrastive", "cross-lingual")


def batch_of(case, number=0):
    return Batches(data_for(case), 8, seed=5).batch(number)


@pytest.mark.parametrize("case", quick_first(CASES, QUICK))
def test_without_dropout_any_chunk_gives_the_gradient_of_the_whole(case, bert, accelerator):
    method, batch = nudge(build(case, bert, dropout=0.0)), batch_of(case)
    loss = whole_loss(method, batch)
    loss.backward()
    expected = gradients(method)
    assert expected.norm() > 0
    for chunk in (None, 100, 3, 1):  # 3 leaves a rest of 2
        method.zero_grad()
        added = add_gradients(method, batch, accelerator, chunk)
        assert added == pytest.approx(loss.item(), rel=1e-5)
        assert far(gradients(method), expected) < 1e-5, chunk


def test_chunks_of_a_causal_model_give_the_gradient_of_the_whole(accelerator, tmp_path):
    method = nudge(build("contrastive", build_model_folder("qwen3", tmp_path / "qwen3")))
    method.encoder.pooling = Pooling("last")
    batch = batch_of("contrastive")
    whole_loss(method, batch).backward()
    expected = gradients(method)
    method.zero_grad()
    add_gradients(method, batch, accelerator, chunk=3)
    assert far(gradients(method), expected) < 1e-5


def kept_bytes(encoder, ids):
    """What a forward pass keeps for the backward pass, which then runs."""
    kept = {}

    def keep(tensor):
        kept[tensor.data_ptr()] = tensor.nbytes
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        loss = encoder(ids, raw=True).square().sum()
    loss.backward()
    return sum(kept.values())


@pytest.mark.parametrize("name", ["bert", "modernbert", "qwen3", "gemma3_text"])
def test_activation_checkpointing_gives_the_same_gradient_from_less_memory(name, tmp_path):
    encoder = Encoder.load(build_model_folder(name, tmp_path / name), pooling="last", max_length=60).train()
    encoder.backbone.dropout = 0.3
    ids, runs = encoder.tokenize([*SENTENCES, " ".join(SENTENCES)]), []
    for checkpointed in (False, True):
        if checkpointed:
            encoder.backbone.checkpoint_activations()
        encoder.zero_grad()
        torch.manual_seed(4)
        kept = kept_bytes(encoder, ids)
        weights = [parameter.grad.flatten() for parameter in encoder.parameters() if parameter.grad is not None]
        runs.append((kept, torch.cat(weights)))
    (plain, expected), (less, gradient) = runs
    assert torch.equal(gradient, expected)
    assert less < plain / 3


def test_activation_checkpointing_is_refused_where_transformers_lacks_it(tmp_path, monkeypatch):
    encoder = Encoder.load(build_model_folder("bert", tmp_path / "bert"))
    monkeypatch.setattr(type(encoder.backbone.model), "supports_gradient_checkpointing", False)
    with pytest.raises(InputError, match="activation_checkpointing: transformers' bert models do not support it"):
        encoder.backbone.checkpoint_activations()


@pytest.mark.parametrize("chunk", [None, 3])
@pytest.mark.parametrize("case", quick_first(CASES, QUICK))
def test_with_dropout_chunks_are_replayed_under_the_same_masks(case, chunk, bert, accelerator):
    """The same chunks, seeded alike, embedded once with their graphs kept until the loss."""
    method, batch = nudge(build(case, bert, dropout=0.3)), batch_of(case)
    size = chunk or len(batch)
    parts = []
    for number, start in enumerate(range(0, len(batch), size)):
        state = np.random.SeedSequence([*batch.key, 1, number]).generate_state(1, np.uint64)
        torch.manual_seed(int(state[0]))
        part = batch.part(start, start + size)
        parts.append(method.summed_loss(part) if isinstance(method, TokenMethod) else method.embed(part))
    if isinstance(method, TokenMethod):
        loss = torch.stack(parts).sum() / method.weight(batch)
    else:
        loss = method.total_loss(tuple(map(torch.cat, zip(*parts, strict=True))), batch)
    loss.backward()
    expected = gradients(method)
    method.zero_grad()
    torch.manual_seed(0)  # whatever was drawn before does not matter
    assert add_gradients(method, batch, accelerator, chunk) == pytest.approx(loss.item(), rel=1e-5)
    assert far(gradients(method), expected) < 1e-5


def test_dropout_is_on_and_differs_between_steps_and_chunks(bert, accelerator):
    method, kept = build("simcse", bert, dropout=0.3), []
    for number, chunk in [(0, None), (0, None), (0, 4), (1, None)]:
        method.zero_grad()
        add_gradients(method, batch_of("simcse", number), accelerator, chunk)
        kept.append(gradients(method))
    assert torch.equal(kept[0], kept[1])
    assert far(kept[2], kept[0]) > 1e-2
    assert far(kept[3], kept[0]) > 1e-2


@pytest.mark.parametrize("depth", [1, 2])
def test_batch_norm_sees_the_whole_batch_once(depth, bert, accelerator):
    def statistics(work):
        method = build("bootstrapped", bert, dropout=0.0, predictor_depth=depth)
        work(method, batch_of("bootstrapped"))
        return {name: buffer.clone() for name, buffer in method.predictor.named_buffers()}

    whole = statistics(lambda method, batch: whole_loss(method, batch).backward())
    assert whole["1.num_batches_tracked"] == 2  # once for either view
    for chunk in (3, 1):
        cached = statistics(lambda method, batch, chunk=chunk: add_gradients(method, batch, accelerator, chunk))
        for name, value in whole.items():
            torch.testing.assert_close(cached[name], value, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("case", ["self-guided", "bootstrapped", "mlm"])
def test_accumulated_batches_are_averaged(case, bert, accelerator):
    method, both = nudge(build(case, bert, dropout=0.0)), []
    batches = [batch_of(case, number) for number in (0, 1)]
    for batch in batches:
        method.zero_grad()
        whole_loss(method, batch).backward()
        both.append(gradients(method))
    method.zero_grad()
    for batch in batches:
        add_gradients(method, batch, accelerator, 3, factor=1 / 2)
    assert far(gradients(method), (both[0] + both[1]) / 2) < 1e-4  # large parts of the two cancel each other


def test_frozen_vectors_get_no_gradient(bert, accelerator):
    method = build("self-guided", bert, head_width=None)  # h then comes from the guide alone
    add_gradients(method, batch_of("self-guided"), accelerator, 3)
    assert all(p.grad is None for p in method.guide.parameters())
    assert gradients(method).norm() > 0


def test_shares_are_the_batch_in_order():
    batch = Batches(pairs(), 8, seed=1).batch(0)
    shares = [own_share(batch, process, 4) for process in range(4)]
    assert [list(share.places) for share in shares] == [[0, 1], [2, 3], [4, 5], [6, 7]]
    assert [text for share in shares for text in share.second] == batch.second
    with pytest.raises(InputError, match=r"8 rows cannot be divided among 3 processes\. Expected a multiple of 3"):
        own_share(batch, 0, 3)


@pytest.fixture
def in_bf16():
    AcceleratorState._reset_state(reset_partial_state=True)
    yield Accelerator(cpu=True, mixed_precision="bf16")
    AcceleratorState._reset_state(reset_partial_state=True)


@pytest.mark.parametrize("case", ["self-guided", "bootstrapped", "mlm"])
def test_mixed_precision_is_near_the_full_one(case, bert, in_bf16):
    """Eight bits of mantissa in the encoder; the loss and the weights stay in full precision."""
    method, batch = nudge(build(case, bert, dropout=0.0)), batch_of(case)
    whole_loss(method, batch).backward()
    expected = gradients(method)
    for chunk in (None, 3):
        method.zero_grad()
        add_gradients(method, batch, in_bf16, chunk)
        assert 1e-4 < far(gradients(method), expected) < 0.1
        assert all(p.dtype == torch.float32 for p in method.parameters())


def test_a_causal_model_with_adapters_has_the_gradient_of_the_whole(tmp_path, accelerator):
    pytest.importorskip("peft")
    encoder = Encoder.load(build_model_folder("qwen3", tmp_path), pooling="last")
    add_lora(encoder, rank=2, alpha=4)
    method = nudge(METHODS["contrastive"](encoder, METHODS["contrastive"].Options()).train())
    batch = Batches(pairs(), 8, seed=5).batch(0)
    whole_loss(method, batch).backward()
    expected = gradients(method)
    assert expected.norm() > 0
    method.zero_grad()
    add_gradients(method, batch, accelerator, chunk=3)
    assert far(gradients(method), expected) < 1e-5
