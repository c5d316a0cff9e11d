"""Cross-lingual: the loss with queue and masks by loops, the queue along steps, the source that never changes."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from sentloom.data.batches import Batch
from sentloom.data.shapes import Shape
from sentloom.encoder import Encoder
from sentloom.encoder.heads import Projection
from sentloom.errors import InputError
from sentloom.methods.cross_lingual import CrossLingual, CrossLingualOptions
from tests.encoder.small_models import SENTENCES
from tests.methods import oracles
from tests.methods.conftest import OTHERS, changed, optimise, states_of
from tests.small_data import build_dataset


@pytest.fixture(scope="module")
def wide(model_folder, tmp_path_factory):
    """A model of another width than the small BERT."""
    encoder, folder = Encoder.load(model_folder("bert"), pooling="mean"), tmp_path_factory.mktemp("wide") / "model"
    encoder.heads.append(Projection(encoder.dimension, 48))
    encoder.save(folder)
    return str(folder)


@pytest.fixture(scope="module")
def lasting(model_folder):
    return Encoder.load(model_folder("bert"), pooling="mean")


def build(encoder, **options):
    torch.manual_seed(0)
    return CrossLingual(encoder, CrossLingualOptions(**({"queue": 5, "temperature": 0.2} | options)))


def move(encoder, size=0.05):
    """Away from the source, which starts as a copy."""
    generator = torch.Generator().manual_seed(9)
    with torch.no_grad():
        for parameter in encoder.parameters():
            parameter.add_(size * torch.randn(parameter.shape, generator=generator, dtype=parameter.dtype))


def parallel(rows, step=0, sources=SENTENCES):
    texts = {"source": [sources[row] for row in rows], "target": [OTHERS[row] for row in rows]}
    return Batch(texts, np.array(rows), np.arange(len(rows)), (0, step))


def data():
    return build_dataset(Shape.PARALLEL, list(zip(SENTENCES, OTHERS, strict=True)))


def says_the_same(one, other):
    """Whether two (source, target) have a text in common, whatever its case and spaces."""
    return bool({" ".join(text.lower().split()) for text in one} & {" ".join(text.lower().split()) for text in other})


def oracle(t, s, texts, held, tau):
    """The formula: row i against the sources of the batch and of the queue, `held` being (vector, texts)."""
    losses = []
    for i in range(len(t)):
        others = [s[j] for j in range(len(s)) if j != i and not says_the_same(texts[i], texts[j])]
        others += [vector for vector, its in held if not says_the_same(texts[i], its)]
        logits = [oracles.cos(t[i], other) / tau for other in others]
        losses.append(oracles.minus_log_share(oracles.cos(t[i], s[i]) / tau, logits))
    return np.mean(losses)


def pairs_of(batch):
    return list(zip(batch.first, batch.second, strict=True))


TWINS = [*SENTENCES[:6], f" {SENTENCES[0].upper()} ", OTHERS[1]]  # row 6 is row 0 again; row 7 the target of row 1


def test_the_loss_equals_the_formula_with_queue_and_masks_over_many_steps(encoder):
    method = build(encoder, queue=5, learn_temperature=False).double().train()
    move(encoder)
    encoder.backbone.dropout = 0.0
    held, masked = [], 0
    for step, rows in enumerate([[0, 1, 2], [3, 6, 4], [5, 7], [0, 2, 1], [4, 3, 5, 7], [6, 1]]):  # with any batches
        batch = parallel(rows, step, sources=TWINS)
        with torch.no_grad():
            t = np.stack([encoder([ids], raw=True)[0] for ids in encoder.tokenize(batch.second)])
            s = np.stack([method.source.encoder([ids])[0] for ids in method.source.encoder.tokenize(batch.first)])
            loss = method.total_loss(method.embed(batch), batch).item()
        texts = pairs_of(batch)
        assert loss == pytest.approx(oracle(t, s, texts, held, 0.2), rel=1e-9), step
        alike = sum(says_the_same(one, its) for one in texts for _, its in held)
        within = sum(says_the_same(texts[i], texts[j]) for i in range(len(rows)) for j in range(i))
        assert method.masked(batch) == alike + within
        masked += alike
        method.after_step()
        held = (held + list(zip(s, texts, strict=True)))[-5:]
        assert len(method.queue) == len(held)
    assert masked > 3  # the rows of an earlier epoch, and texts that came twice


def test_the_first_dimensions_are_trained_too_against_those_of_the_queue(encoder):
    method = build(encoder, queue=5, learn_temperature=False, dimensions=(32, 8)).double().train()
    texts, (t, s, q) = pairs_of(parallel([0, 1, 2])), torch.randn(3, 3, encoder.dimension, dtype=torch.float64)
    method.total_loss((q, q), parallel([3, 4, 5]))
    method.after_step()
    assert torch.equal(method.queue.entries()[0], q.to(method.queue.vectors))  # whole vectors, once
    held = pairs_of(parallel([3, 4, 5]))
    cut = [[(vector[:m], its) for vector, its in zip(q.numpy(), held, strict=True)] for m in (32, 8)]
    parts = [(t[:, :m].numpy(), s[:, :m].numpy(), entries) for m, entries in zip((32, 8), cut, strict=True)]
    expected = sum(oracle(ours, theirs, texts, entries, 0.2) for ours, theirs, entries in parts)
    assert method.total_loss((t, s), parallel([0, 1, 2])).item() == pytest.approx(expected, rel=1e-6)
    with pytest.raises(ValidationError, match="a head that is dropped after training"):
        CrossLingualOptions(head="linear", dimensions=(32, 8))


def test_masking_can_be_turned_off(encoder):
    method = build(encoder, queue=0, learn_temperature=False, mask_duplicates=False).double().train()
    move(encoder)
    encoder.backbone.dropout = 0.0
    batch = parallel([0, 3, 0], sources=SENTENCES)  # two rows are equal
    with torch.no_grad():
        t, s = (vectors.numpy() for vectors in method.embed(batch))
        loss = method.total_loss(method.embed(batch), batch).item()
    logits = [[oracles.cos(t[i], s[j]) / 0.2 for j in range(3)] for i in range(3)]
    by_hand = np.mean([math.log(sum(math.exp(x) for x in row)) - row[i] for i, row in enumerate(logits)])
    assert loss == pytest.approx(by_hand, rel=1e-9)
    assert method.masked(batch) == 0


@settings(max_examples=25)
@given(size=st.integers(0, 9), batches=st.lists(st.integers(1, 8), min_size=1, max_size=6), parts=st.integers(1, 3))
def test_the_queue_holds_the_newest_sources_for_any_size_and_any_batches(lasting, size, batches, parts):
    """`parts`: batches of which one step is made."""
    method, newest = build(lasting, queue=size), []
    method.train()
    for step, rows in enumerate(batches):
        for part in range(parts):
            batch = parallel(list(range(rows)), step)
            source = torch.full((rows, lasting.dimension), float(step * parts + part + 1))
            before = method.queue.vectors.clone()
            method.total_loss((torch.randn(rows, lasting.dimension), source), batch)
            assert torch.equal(method.queue.vectors, before)  # not before the step is done
            newest = (newest + [step * parts + part + 1.0] * rows)[-size:] if size else []
        method.after_step()
        assert sorted(method.queue.entries()[0][:, 0].tolist()) == newest


def test_outside_training_nothing_waits_for_the_queue(encoder):
    method = build(encoder).eval()
    method.total_loss(method.embed(parallel([0, 1])), parallel([0, 1]))
    method.after_step()
    assert len(method.queue) == 0


def test_the_gradient_of_vectors_and_of_the_temperature(encoder):
    method = build(encoder, temperature=0.4).double().train()
    d = encoder.dimension
    earlier = parallel([3, 4, 5])
    method.total_loss(tuple(torch.randn(2, 3, d).double()), earlier)
    method.after_step()
    batch = parallel([0, 1, 2, 3])  # the source of row 3 is in the queue
    s, t = torch.randn(2, 4, d, dtype=torch.float64)

    def loss(t):
        return method.total_loss((t, s), batch)

    method.eval()
    assert torch.autograd.gradcheck(loss, t.requires_grad_())
    loss(t).backward()
    around = []
    for change in (1e-6, -2e-6):
        with torch.no_grad():
            method.theta += change
        around.append(loss(t).item())
    assert method.theta.grad.item() == pytest.approx((around[0] - around[1]) / 2e-6, rel=1e-6)


def test_a_learned_temperature_starts_as_given_moves_and_stays_in_its_bounds(encoder):
    method = build(encoder.copy(), temperature=0.5)
    assert method.theta.item() == pytest.approx(-math.log(0.5))
    assert method.temperature.item() == pytest.approx(0.5)
    vectors = torch.eye(3, method.encoder.dimension)
    optimizer = torch.optim.SGD([method.theta], lr=0.05)
    method.total_loss((vectors, vectors), parallel([0, 1, 2])).backward()
    optimizer.step()
    assert method.temperature.item() < 0.499  # right answers want it sharper
    method.zero_grad()
    with torch.no_grad():
        method.theta.fill_(50.0)
    method.after_step()
    assert method.temperature.item() == pytest.approx(0.01)
    fixed = build(encoder, temperature=0.5, learn_temperature=False)
    assert fixed.temperature == 0.5
    assert not hasattr(fixed, "theta")
    assert CrossLingualOptions().temperature == 1.0


@pytest.mark.parametrize("speed", [1.0, 5.0, 100.0])
def test_the_speed_of_a_learned_temperature_is_in_learning_rates(encoder, speed):
    """Adam moves a parameter by its rate in the first step: the logarithm of tau moves by `speed` times that."""
    method = build(encoder.copy(), temperature=0.5, temperature_speed=speed, queue=0)
    assert method.temperature.item() == pytest.approx(0.5)
    vectors = torch.eye(3, method.encoder.dimension)
    optimizer = torch.optim.Adam([method.theta], lr=1e-3)
    method.total_loss((vectors, vectors), parallel([0, 1, 2])).backward()
    optimizer.step()
    assert method.temperature.item() == pytest.approx(0.5 * np.exp(-1e-3 * speed), rel=1e-5)
    with torch.no_grad():
        method.theta.fill_(50.0)
    method.after_step()
    assert method.temperature.item() == pytest.approx(0.01)


@pytest.mark.parametrize(("preset", "steps"), [("paper", 12_150), ("large", 24_302)])
def test_the_temperature_of_the_papers_presets_can_come_near_their_fixed_one(preset, steps):
    """The sum of a cosine schedule's rates, half the steps times the rate, is what the logarithm can move by."""
    chosen = CrossLingual.PRESETS[preset]
    most = chosen["temperature_speed"] * chosen["learning_rate"] * steps / 2
    assert math.exp(-most) < 0.05
    assert math.exp(-most / chosen["temperature_speed"]) > 0.25  # without a speed it could not


def test_a_learned_temperature_leaves_its_bound_when_the_gradient_points_inward(encoder):
    method = build(encoder, temperature=0.01, queue=0).double()
    vectors = torch.eye(3, encoder.dimension).double()
    optimizer = torch.optim.SGD([method.theta], lr=1e-3)
    method.total_loss((vectors, vectors.roll(1, 0)), parallel([0, 1, 2])).backward()  # wrong answers want it softer
    # at 1 / tau = x: loss = log(2 + exp(x)) for cosines 0 (own), 1 (one other) and 0; its slope in log x is
    # x exp(x) / (2 + exp(x)), almost x
    assert method.theta.grad.item() == pytest.approx(100.0, rel=1e-6)
    optimizer.step()
    method.after_step()
    assert method.temperature.item() == pytest.approx(0.01 * np.exp(0.1), rel=1e-6)


def test_the_source_is_frozen_in_evaluation_mode_and_no_part_of_checkpoints(encoder):
    from sentloom.training.checkpoints import changing_state

    method = build(encoder)
    before = states_of(method.source)
    optimise(method, [parallel([0, 1, 2, 3], step) for step in range(3)])
    assert method.training
    assert not any(module.training for module in method.source.modules())
    assert not changed(method.source, before)
    assert changed(method.encoder, states_of(method.source.encoder))
    names = set(changing_state(method))
    assert {"queue.vectors", "queue.keys", "queue.count", "theta"} <= names
    assert not any(name.startswith("source.") for name in names)
    batch = parallel([0, 1])
    assert torch.equal(method.embed(batch)[1], method.embed(batch)[1])  # no dropout
    assert not method.embed(batch)[1].requires_grad


def test_a_trained_source_and_a_shared_encoder_have_gradients_on_both_sides(encoder):
    from sentloom.training.checkpoints import changing_state

    for kind in ("trained", "shared"):
        method = build(encoder.copy(), queue=0, source_encoder=kind)
        before = states_of(method)
        batch = parallel([0, 1, 2, 3])
        vectors = tuple(x.detach().requires_grad_() for x in method.train().embed(batch))
        method.total_loss(vectors, batch).backward()
        assert all(x.grad.abs().max() > 0 for x in vectors)
        optimise(method, [batch] * 2)
        moved = changed(method, before)
        assert any(name.startswith("encoder.") for name in moved)
        assert any(name.startswith("source.") for name in moved) == (kind == "trained")
        assert moved <= set(changing_state(method)) | {name for name in before if "position_ids" in name}
        assert len(method.queue) == 0


def test_a_shared_encoder_sees_both_sides_as_one_would_alone(encoder):
    method, batch = build(encoder, queue=0, source_encoder="shared").eval(), parallel([0, 1, 2])
    t, s = method.embed(batch)
    torch.testing.assert_close(s, encoder(encoder.tokenize(batch.first), raw=True))
    torch.testing.assert_close(t, encoder(encoder.tokenize(batch.second), raw=True))


def test_a_head_joins_the_widths_and_is_dropped_or_kept(model_folder, wide, tmp_path):
    for keep in (False, True):
        encoder = Encoder.load(model_folder("bert"), pooling="mean")
        method = build(encoder, source=wide, head="linear-tanh", keep_head=keep)
        assert method.embed(parallel([0, 1]))[0].shape == (2, 48)
        optimise(method, [parallel([0, 1, 2, 3])] * 2, rate=1e-3)
        method.eval()
        finished = method.finished()
        assert finished.dimension == (48 if keep else 32)
        with torch.no_grad():
            seen = method.target(SENTENCES).numpy()  # what training compares
            bare = encoder(encoder.tokenize(SENTENCES), raw=True).numpy()
        finished.save(tmp_path / str(keep))
        vectors = Encoder.load(tmp_path / str(keep)).encode(SENTENCES)
        np.testing.assert_allclose(vectors, seen if keep else bare, atol=1e-5)
        assert seen.shape[1] == 48
    with pytest.raises(InputError, match="Set head: linear"):
        build(Encoder.load(model_folder("bert")), source=wide)


def test_poolings_of_training_inference_and_source_are_chosen_apart(model_folder):
    encoder = Encoder.load(model_folder("bert"), pooling="first")
    like = {how: Encoder.load(model_folder("bert"), pooling=how) for how in ("first", "mean", "max")}
    method, batch = build(encoder, inference_pooling="mean", source_pooling="max").eval(), parallel([0, 1, 2])
    t, s = method.embed(batch)
    first, largest = like["first"], like["max"]
    torch.testing.assert_close(t, first(first.tokenize(batch.second), raw=True))
    torch.testing.assert_close(s, largest(largest.tokenize(batch.first)))
    np.testing.assert_allclose(method.finished().encode(SENTENCES), like["mean"].encode(SENTENCES), atol=1e-6)
    assert str(method.finished().pooling) == "mean"


def test_vectors_of_the_source_are_kept_and_give_the_same_loss(encoder, tmp_path):
    batch = parallel([6, 1, 3])
    fly, kept = build(encoder.copy()).eval(), build(encoder.copy()).eval()
    kept.prepare(data(), tmp_path)
    (file,) = tmp_path.glob("*.npy")
    np.testing.assert_allclose(np.load(file), kept.source.encoder.encode(SENTENCES), atol=1e-6)
    np.testing.assert_array_equal(kept.embed(batch)[1].numpy(), np.load(file)[[6, 1, 3]])
    expected = fly.loss(fly.embed(batch), batch).item()
    assert kept.loss(kept.embed(batch), batch).item() == pytest.approx(expected, rel=1e-5)
    made = file.stat().st_mtime_ns
    again = build(encoder.copy())
    again.prepare(data(), tmp_path)
    assert [path.stat().st_mtime_ns for path in tmp_path.glob("*.npy")] == [made]  # found, not made again
    build(encoder.copy(), source_pooling="mean").prepare(data(), tmp_path)
    again.prepare(replace(data(), sha256="other"), tmp_path)
    assert len(list(tmp_path.glob("*.npy"))) == 3  # another source, other data
    build(encoder.copy(), queue=0, source_encoder="shared").prepare(data(), tmp_path)
    build(encoder.copy(), queue=0, source_encoder="trained").prepare(data(), tmp_path)
    assert len(list(tmp_path.glob("*.npy"))) == 3


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ({"source_encoder": "shared"}, "queue: 0"),
        ({"source_encoder": "trained"}, "queue: 0"),
        ({"source_encoder": "shared", "queue": 0, "source": "embedded"}, "no source"),
        ({"source_encoder": "shared", "queue": 0, "source_pooling": "mean"}, "no source"),
        ({"temperature": 0.005}, r"0\.01 or above"),
        ({"queue": -1}, "greater"),
        ({"head": "mlp"}, "linear"),
    ],
)
def test_what_makes_no_sense_is_refused(wrong, why):
    with pytest.raises(ValidationError, match=why):
        CrossLingualOptions(**wrong)
    assert CrossLingualOptions(temperature=0.005, learn_temperature=False).temperature == 0.005


def test_an_unknown_pooling_is_told(encoder):
    with pytest.raises(InputError, match="median"):
        build(encoder, inference_pooling="median")


def test_it_brings_translations_together(lasting):
    encoder = lasting.copy()
    encoder.backbone.dropout = 0.0
    method = build(encoder, temperature=0.02, learn_temperature=False, queue=4)
    draws = [np.random.default_rng(number).permutation(8)[:4] for number in range(150)]
    optimise(method, [parallel(rows.tolist(), step) for step, rows in enumerate(draws)], rate=3e-3)
    nearest = (encoder.eval().encode(OTHERS) @ method.source.encoder.encode(SENTENCES).T).argmax(axis=1)
    before = (lasting.encode(OTHERS) @ lasting.encode(SENTENCES).T).argmax(axis=1)
    assert (before == np.arange(8)).sum() < 4
    assert (nearest == np.arange(8)).sum() >= 6  # all eight on most machines: 150 steps magnify the last bit


def test_a_snapshot_of_a_dual_encoder_has_both(lasting, tmp_path):
    dual = build(lasting.copy(), source_encoder="trained", queue=0)
    move(dual.source.encoder)
    dual.save(tmp_path / "step")
    target, source = (Encoder.load(tmp_path / place).encode(SENTENCES) for place in ("step", "step/source"))
    assert np.allclose(target, dual.encoder.encode(SENTENCES), atol=1e-6)
    assert np.allclose(source, dual.source.encoder.encode(SENTENCES), atol=1e-6)
    assert not np.allclose(source, target, atol=1e-3)
    build(lasting.copy()).save(tmp_path / "frozen")
    assert not (tmp_path / "frozen" / "source").exists()
