"""The self-guided paper's baseline: NT-Xent between a sentence and its back-translation, both from one encoder."""

from typing import Any, ClassVar

from torch import Tensor, nn

from sentloom.data.batches import Batch
from sentloom.data.shapes import Shape
from sentloom.encoder import Encoder
from sentloom.losses import nt_xent
from sentloom.methods.method import Embeddings, Method, Options, known_equal
from sentloom.methods.self_guided import TRAINING, projection_head


class ContrastiveBtOptions(Options):
    """The head is the self-guided paper's f."""

    temperature: float = 0.01
    head_width: int | None = 4096  # None: no head
    mask_duplicates: bool = True


class ContrastiveBt(Method):
    """SimCLR's loss over the 2b vectors of originals and back-translations."""

    NAME = "contrastive-bt"
    Options = ContrastiveBtOptions
    SHAPES = (Shape.PAIRS,)
    PRESETS: ClassVar[dict[str, dict[str, Any]]] = {
        "default": TRAINING,
        "paper": TRAINING | {"mask_duplicates": False},
        "official-code": TRAINING | {"mask_duplicates": False, "weight_decay": 0.01},
    }

    def __init__(self, encoder: Encoder, options: ContrastiveBtOptions) -> None:
        super().__init__(encoder)
        self.options = options
        self.f = projection_head(encoder.dimension, options.head_width) if options.head_width else nn.Identity()

    def embed(self, batch: Batch) -> Embeddings:
        """Both sides through encoder and f in one pass, each (n, e)."""
        ids = [*self.encoder.tokenize(batch.first), *self.encoder.tokenize(batch.second)]
        x, y = self.f(self.encoder(ids, raw=True)).chunk(2)
        return {"x": x, "y": y}

    def loss(self, embeddings: Embeddings, batch: Batch) -> Tensor:
        """NT-Xent."""
        x = embeddings["x"]
        same = known_equal(batch, x, self.options.mask_duplicates)
        return nt_xent(x, embeddings["y"], temperature=self.options.temperature, same=same)
