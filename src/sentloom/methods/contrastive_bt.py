"""The self-guided paper's baseline: NT-Xent between a sentence and its back-translation, both from one encoder."""

from typing import Any, ClassVar

from pydantic import Field
from torch import Tensor, nn

from sentloom.data.batches import Batch
from sentloom.data.shapes import Shape
from sentloom.encoder import Encoder
from sentloom.losses import nt_xent
from sentloom.methods.method import Embeddings, Method, Options, Positive, count_equal, known_equal
from sentloom.methods.self_guided import TRAINING, distance, projection_head


class ContrastiveBtOptions(Options):
    """The head is the self-guided paper's f."""

    temperature: Positive = 0.01
    head_width: int | None = Field(4096, ge=1)  # None: no head
    regularizer: float = Field(0.1, ge=0)  # lambda: the paper's baseline is self-guided in all but its positives
    mask_duplicates: bool = True


class ContrastiveBt(Method):
    """SimCLR's loss over the 2b vectors of originals and back-translations + lambda * ||start - encoder||^2."""

    NAME = "contrastive-bt"
    Options = ContrastiveBtOptions
    options: ContrastiveBtOptions
    SHAPES = (Shape.PAIRS,)
    FROZEN = ("start",)
    PRESETS: ClassVar[dict[str, dict[str, Any]]] = {
        "default": TRAINING,
        "paper": TRAINING | {"mask_duplicates": False},
        "official-code": TRAINING | {"mask_duplicates": False, "weight_decay": 0.01, "eps": 1e-6},
    }

    def __init__(self, encoder: Encoder, options: ContrastiveBtOptions) -> None:
        super().__init__(encoder, options)
        self.start = encoder.copy().requires_grad_(False)
        self.f = projection_head(encoder.dimension, options.head_width) if options.head_width else nn.Identity()

    def embed(self, batch: Batch) -> Embeddings:
        """Both sides through encoder and f in one pass, each (n, e)."""
        ids = [*self.encoder.tokenize(batch.first), *self.encoder.tokenize(batch.second)]
        x, y = self.f(self.encoder(ids, raw=True)).chunk(2)
        return {"x": x, "y": y}

    def masked(self, batch: Batch) -> int:
        """Rows with an equal text."""
        return count_equal(batch, self.options.mask_duplicates)

    def loss(self, embeddings: Embeddings, batch: Batch) -> Tensor:
        """NT-Xent, and the distance from the start."""
        x = embeddings["x"]
        same = known_equal(batch, x, self.options.mask_duplicates)
        loss = nt_xent(x, embeddings["y"], temperature=self.options.temperature, same=same)
        strength = self.options.regularizer
        return loss + strength * distance(self.encoder, self.start) if strength else loss
