"""Generator and discriminator in one model, trained together (GenSE, Chen et al., 2022, section 3.1)."""

from pydantic import Field
from torch import Tensor

from sentloom.data.batches import Batch
from sentloom.data.shapes import Shape
from sentloom.methods import Options
from sentloom.methods.presets import read_presets
from sentloom.methods.settings import Positive, Share
from sentloom.writing.instances import Instance, instances, losses
from sentloom.writing.language_model import SOURCE_LENGTH, TARGET_LENGTH
from sentloom.writing.measure import PerplexityBy
from sentloom.writing.prompts import Wording
from sentloom.writing.text_learner import TextLearner


class SynthesizerOptions(Options):
    """The prompts and lengths that the model learns, and how its best weights are selected."""

    wording: Wording = Wording()
    source_length: int = Field(SOURCE_LENGTH, ge=1)  # tokens of each sentence that it reads
    target_length: int = Field(TARGET_LENGTH, ge=2)  # tokens of the sentence that it writes
    judge_weight: Positive = 1.0  # weight of a judgement's tokens relative to those of a sentence; 1 in the paper
    held_out: Share = 0.05  # share of the premises that is not trained on but measured
    measured: int = Field(1000, ge=1)  # held-out rows, at most, that are measured during training
    every: int = Field(500, ge=1)  # steps between measurements
    perplexity_by: PerplexityBy = "token"  # what it is averaged over; batch: as in the official code


class Synthesizer(TextLearner):
    """Token cross-entropy over sentences to write and judgements to give, averaged over their tokens."""

    NAME = "synthesizer"
    Options = SynthesizerOptions
    options: SynthesizerOptions
    SHAPES = (Shape.TRIPLETS, Shape.NLI)
    PRESETS = read_presets(__file__)

    def weight(self, batch: Batch) -> float:
        """The weighted number of tokens to predict."""
        return max(1.0, sum(len(one.target) * self._share(one) for one in instances(self.model, batch)))

    def summed_loss(self, batch: Batch) -> Tensor:
        """The sum over all instances of these rows."""
        total = next(self.model.parameters()).new_zeros(())
        for group, each, _ in losses(self.model, instances(self.model, batch)):
            total = total + (each * each.new_tensor([self._share(one) for one in group])).sum()
        return total

    def _share(self, one: Instance) -> float:
        return self.options.judge_weight if one.judged else 1.0
