"""Joint training: the loss equals a computation of one instance at a time."""

import pytest

from sentloom.data.batches import Batches
from sentloom.lab.synthesizer import Synthesizer, SynthesizerOptions
from tests.writing.oracles import slow_losses
from tests.writing.small_synthesizers import SHORT, triplets


@pytest.mark.parametrize("judge_weight", [1.0, 3.0])
def test_the_loss_by_hand(model, judge_weight):
    method = Synthesizer(model, SynthesizerOptions(wording=SHORT, judge_weight=judge_weight)).eval()
    batch = Batches(triplets(), 5, seed=1).batch(0)
    weighed = [
        (loss, instance, judge_weight if instance.judged else 1.0) for loss, instance, _ in slow_losses(model, batch)
    ]
    tokens = sum(len(instance.target) * weight for _, instance, weight in weighed)
    assert method.weight(batch) == tokens
    assert method.summed_loss(batch).item() == pytest.approx(sum(loss * w for loss, _, w in weighed), rel=1e-5)
    halves = sum(method.summed_loss(batch.part(at, at + 2)).item() for at in (0, 2, 4))
    assert halves == pytest.approx(method.summed_loss(batch).item(), rel=1e-5)
