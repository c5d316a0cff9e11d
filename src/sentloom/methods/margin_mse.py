"""MarginMSE: the student's margins equal the teacher's (Hofstätter et al., 2020; GPL: Wang et al., NAACL 2022).

Symbols: q_i is an anchor, p_i its positive, n_ik its hard negatives; s is the student's similarity over tau, t the
cross-encoder's score.
"""

from torch import Tensor

from sentloom.data.batches import Batch
from sentloom.losses import margin_mse
from sentloom.methods.cross_encoder import TaughtMethod, TaughtOptions
from sentloom.methods.method import Embeddings
from sentloom.methods.registry import read_presets
from sentloom.methods.settings import Positive


class MarginMseOptions(TaughtOptions):
    """GPL compares dot products with the teacher's scores; cosines, which end at 1, are divided by tau first."""

    temperature: Positive = 0.05  # tau


class MarginMse(TaughtMethod):
    """((s(q_i, p_i) - s(q_i, n_ik)) - (t(q_i, p_i) - t(q_i, n_ik)))^2, mean over i and k."""

    NAME = "margin-mse"
    Options = MarginMseOptions
    options: MarginMseOptions
    PRESETS = read_presets(__file__)

    def loss(self, embeddings: Embeddings, batch: Batch) -> Tensor:
        """The squared differences of margins."""
        s = self.student_scores(embeddings) / self.options.temperature
        return margin_mse(s, self.teacher_scores(batch, s))
