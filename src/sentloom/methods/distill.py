"""Listwise distillation: the student ranks the candidates of an anchor with the teacher's probabilities.

RocketQAv2 (Ren et al., EMNLP 2021), here with a frozen teacher. Symbols: q_i is an anchor, whose candidates are its
positive p_i and its hard negatives n_ik; s is the student's similarity, t the cross-encoder's score; tau and T are
their temperatures.
"""

from pydantic import Field
from torch import Tensor

from sentloom.data.batches import Batch
from sentloom.losses import listwise_kl
from sentloom.methods.cross_encoder import TaughtMethod, TaughtOptions
from sentloom.methods.method import Embeddings
from sentloom.methods.registry import read_presets
from sentloom.methods.settings import Positive


class DistillOptions(TaughtOptions):
    """A higher T makes the teacher less certain of its first candidate."""

    negatives: int = Field(4, ge=1)
    temperature: Positive = 0.05  # tau
    teacher_temperature: Positive = 1.0  # T


class Distill(TaughtMethod):
    """KL(softmax(t/T) || softmax(s/tau)) over the candidates of q_i, mean over i."""

    NAME = "distill"
    Options = DistillOptions
    options: DistillOptions
    PRESETS = read_presets(__file__)

    def loss(self, embeddings: Embeddings, batch: Batch) -> Tensor:
        """The divergence of the student's probabilities from the teacher's."""
        s = self.student_scores(embeddings)
        temperatures = {
            "temperature": self.options.temperature,
            "teacher_temperature": self.options.teacher_temperature,
        }
        return listwise_kl(s, self.teacher_scores(batch, s), **temperatures)
