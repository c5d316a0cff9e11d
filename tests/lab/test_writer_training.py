"""Training a language model: the split, learning, and resuming."""

from types import SimpleNamespace

import pytest
import torch

from sentloom.data.shapes import Shape
from sentloom.errors import InputError
from sentloom.lab.denoising import DenoisingOptions
from sentloom.lab.synthesizer import Synthesizer, SynthesizerOptions
from sentloom.lab.writer_training import apart, fast_attention, train_denoising, train_synthesizer
from sentloom.methods.settings import Lora
from sentloom.training import Settings
from sentloom.writing.causal import GROUPED
from sentloom.writing.models import open_model
from sentloom.writing.text_to_text import TextToText
from tests.small_data import build_dataset
from tests.writing.small_causal import build_small_causal
from tests.writing.small_synthesizers import SHORT, labelled, triplets


def test_no_premise_is_on_both_sides():
    for data in (triplets(), labelled()):
        learned, held_out = apart(data, 0.2)
        name = "premise" if data.shape is Shape.NLI else "anchor"
        sides = [set(part.column(name).to_pylist()) for part in (learned, held_out)]
        assert not sides[0] & sides[1]
        assert 0.1 < len(sides[1]) / len(sides[0] | sides[1]) < 0.3
    assert learned.skipped["neutral rows"] == 192
    assert "neutral" not in learned.column("label").to_pylist()
    fewer = set(apart(triplets(100), 0.2)[1].column("anchor").to_pylist())
    assert fewer <= sides[1]  # what is held out does not depend on the other rows


def test_data_that_teach_nothing_are_refused():
    texts = build_dataset(Shape.TEXTS, [("a",), ("b",)])
    with pytest.raises(InputError, match="triplets or nli"):
        apart(texts, 0.5)
    with pytest.raises(InputError, match="no rows held out"):
        apart(triplets(3), 0.0)


@pytest.mark.parametrize(("precision", "during"), [("bf16", "eager"), ("no", GROUPED)])
def test_bf16_on_a_cpu_trains_without_fused_attention(tmp_path, precision, during):
    model = open_model(build_small_causal(tmp_path / "model")).model
    where = SimpleNamespace(device=torch.device("cpu"), mixed_precision=precision)
    with pytest.raises(RuntimeError), fast_attention(model, where):
        assert model.config._attn_implementation == during
        raise RuntimeError
    assert model.config._attn_implementation == GROUPED


@pytest.mark.long
def test_it_learns_to_write_and_to_judge(calm_folder, tmp_path):
    """A rule that a small model can learn: what follows is shorter, what contradicts begins with nobody."""
    settings = Settings(batch=24, steps=45, learning_rate=3e-3, log_every=20)
    warm = train_denoising(
        str(calm_folder),
        build_dataset(Shape.TEXTS, [(row,) for row in triplets().column("anchor").to_pylist()]),
        DenoisingOptions(),
        settings.model_copy(update={"steps": 6}),
        seed=1,
        folder=tmp_path / "warm",
    )
    assert warm["outcome"]["steps"] == 6
    options = SynthesizerOptions(wording=SHORT, held_out=0.2, every=30)
    base = str(tmp_path / "warm" / "model")
    facts = train_synthesizer(base, labelled(), options, settings, seed=1, folder=tmp_path / "run")
    before, after = facts["held_out"]["before"], facts["held_out"]["after"]
    assert after["accuracy"] > 0.85
    assert after["perplexity"] < 0.5 * before["perplexity"]
    assert TextToText.load(tmp_path / "run" / "model").sha256 == facts["fingerprint"]


@pytest.mark.long
def test_a_run_that_was_stopped_ends_the_same(calm_folder, tmp_path, monkeypatch):
    options = SynthesizerOptions(wording=SHORT, held_out=0.2, every=3)
    settings = Settings(batch=8, steps=8, learning_rate=1e-3, checkpoint_seconds=0)

    def run(name):
        return train_synthesizer(str(calm_folder), triplets(), options, settings, seed=1, folder=tmp_path / name)

    whole = run("whole")
    step, count = Synthesizer.after_step, iter(range(100))

    def die(self):
        if next(count) == 5:
            raise KeyboardInterrupt
        step(self)

    monkeypatch.setattr(Synthesizer, "after_step", die)
    with pytest.raises(KeyboardInterrupt):
        run("cut")
    monkeypatch.setattr(Synthesizer, "after_step", step)
    rest = run("cut")
    assert rest["outcome"]["resumed_at"] == 5
    assert rest["fingerprint"] == whole["fingerprint"]
    assert rest["held_out"] == whole["held_out"]


@pytest.fixture(scope="module")
def causal_folder(tmp_path_factory):
    return build_small_causal(tmp_path_factory.mktemp("causal") / "model", initializer_range=0.02)


@pytest.mark.parametrize("lora", [None, Lora(rank=2, alpha=4)], ids=["full", "lora"])
def test_a_causal_model_learns_what_a_text_to_text_model_learns(causal_folder, tmp_path, lora):
    options = SynthesizerOptions(wording=SHORT, held_out=0.2, every=10)
    settings = Settings(batch=12, steps=10, learning_rate=5e-3, lora=lora)
    facts = train_synthesizer(str(causal_folder), triplets(), options, settings, seed=1, folder=tmp_path)
    before, after = facts["held_out"]["before"], facts["held_out"]["after"]
    assert after["perplexity"] < 0.9 * before["perplexity"]
    trained = open_model(tmp_path / "model")
    assert trained.sha256 == facts["fingerprint"]  # adapters are added to the weights
    assert (trained.learned, trained.source_length) == (SHORT, 96)
    changed = {
        name
        for (name, before_training), after_training in zip(
            open_model(causal_folder).named_parameters(), trained.parameters(), strict=True
        )
        if not torch.equal(before_training, after_training)
    }
    assert any("q_proj" in name for name in changed)
    assert any("embed_tokens" in name for name in changed) == (lora is None)
    assert (tmp_path / "adapter/adapter_model.safetensors").is_file() == (lora is not None)


@pytest.mark.parametrize("lora", [None, Lora(rank=2, alpha=4)], ids=["full", "lora"])
def test_a_causal_run_that_was_stopped_ends_the_same(causal_folder, tmp_path, monkeypatch, lora):
    options = SynthesizerOptions(wording=SHORT, held_out=0.2, every=3, measured=4)
    settings = Settings(batch=4, steps=5, learning_rate=1e-3, checkpoint_seconds=0, lora=lora)

    def run(name):
        return train_synthesizer(str(causal_folder), triplets(40), options, settings, seed=1, folder=tmp_path / name)

    whole = run("whole")
    step, count = Synthesizer.after_step, iter(range(100))

    def die(self):
        if next(count) == 3:
            raise KeyboardInterrupt
        step(self)

    with monkeypatch.context() as patched:
        patched.setattr(Synthesizer, "after_step", die)
        with pytest.raises(KeyboardInterrupt):
            run("cut")
    rest = run("cut")
    assert rest["outcome"]["resumed_at"] == 3
    assert rest["fingerprint"] == whole["fingerprint"]
    assert rest["held_out"] == whole["held_out"]
