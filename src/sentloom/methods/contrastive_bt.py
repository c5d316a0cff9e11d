"""BT, the self-guided paper's baseline: NT-Xent between sentences and back-translations (Kim, Yoo and Lee, ACL 2021).

Symbols: x_i and y_i are the vectors of a sentence and of its back-translation, from the same encoder; f is the
self-guided paper's projection head; tau is the temperature. Without head and regulariser it is the contrastive baseline
of the BSL paper's Table 7.
"""

from pydantic import Field, model_validator
from torch import Tensor

from sentloom.data.batches import Batch
from sentloom.data.shapes import Shape
from sentloom.encoder import Encoder
from sentloom.losses import nt_xent
from sentloom.methods.method import Embeddings, MatryoshkaOptions, Method, NegativesOptions
from sentloom.methods.registry import read_presets
from sentloom.methods.self_guided import distance, projection_head, refuse_cut_head
from sentloom.methods.settings import Positive


class ContrastiveBtOptions(NegativesOptions, MatryoshkaOptions):
    """As in self-guided: the baseline differs in its positives only."""

    temperature: Positive = 0.01  # tau
    head_width: int | None = Field(4096, ge=1)  # of f; None: no head
    regularizer: float = Field(0.1, ge=0)  # lambda

    @model_validator(mode="after")
    def _dimensions_that_stay(self) -> "ContrastiveBtOptions":
        refuse_cut_head(self.dimensions, self.head_width)
        return self


class ContrastiveBt(Method):
    """L = NT-Xent over the 2b vectors f(x_i) and f(y_i) + lambda * ||start - encoder||^2."""

    NAME = "contrastive-bt"
    Options = ContrastiveBtOptions
    options: ContrastiveBtOptions
    PRESETS = read_presets(__file__)
    SHAPES = (Shape.PAIRS,)

    def __init__(self, encoder: Encoder, options: ContrastiveBtOptions) -> None:
        super().__init__(encoder, options)
        self.start = encoder.copy().requires_grad_(False)
        self.f = projection_head(encoder.dimension, options.head_width)

    @property
    def frozen(self) -> tuple[str, ...]:
        """The encoder as it was before training."""
        return ("start",)

    def embed(self, batch: Batch) -> Embeddings:
        """f(x) and f(y), each (n, e)."""
        x, y = self.f(self.encode(batch.first, batch.second)).chunk(2)
        return x, y

    def loss(self, embeddings: Embeddings, batch: Batch) -> Tensor:
        """NT-Xent."""
        x, y = embeddings
        return nt_xent(x, y, temperature=self.options.temperature, same=self.same(batch))

    def total_loss(self, embeddings: Embeddings, batch: Batch) -> Tensor:
        """NT-Xent, summed over the dimensions that vectors can be cut to, plus the distance from the start, once."""
        loss, strength = super().total_loss(embeddings, batch), self.options.regularizer
        return loss + strength * distance(self.encoder, self.start) if strength else loss
