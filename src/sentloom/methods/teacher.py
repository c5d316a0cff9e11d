"""A teacher: the trained target encoder learns the neighbourhoods of frozen sources, from raw text alone.

The frozen source and the queue are those of cross_lingual.py. The vectors themselves are not compared, but what is near
what: so widths may differ, and several sources are joined. Symbols: t_i and s_i are the target's and the sources'
vectors of a text; q are the earlier ones in the queue, of both; tau is the temperature. Of triplets, q_i is a short
text (a sentence, a title, a written query) and the others are passages, which the target learns to rank as the sources
do.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from pydantic import Field
from torch import Tensor, nn

from sentloom.data.batches import Batch, text_keys
from sentloom.data.dataset import Dataset
from sentloom.data.shapes import Shape
from sentloom.encoder import Encoder
from sentloom.encoder.tokens import Role
from sentloom.losses import ranking_kl
from sentloom.methods.frozen_source import Guide
from sentloom.methods.method import Embeddings, Log, MatryoshkaOptions, Method
from sentloom.methods.negatives import Queue, encode_candidates, sample_batch
from sentloom.methods.registry import read_presets
from sentloom.methods.settings import Positive


class TeacherOptions(MatryoshkaOptions):
    """The queue holds texts of earlier batches, which are further neighbours; triplets need none."""

    MODELS = ("sources",)
    sources: tuple[str, ...] = Field(("bge-small",), min_length=1)  # encoders: folders, names of the catalogue or hub
    queue: int = Field(512, ge=0)
    temperature: Positive = 0.05
    negatives: int = Field(1, ge=1)  # of triplets: passages of each short text besides its own, sampled at each step
    asymmetric: bool = False  # a short text is a query, the others are documents: for targets with such prompts


class Teacher(Method):
    """Raw text: KL(softmax_j cos(s_i, s_j)/tau || softmax_j cos(t_i, t_j)/tau), j != i in batch and queue.

    Triplets: the same from every short text to all passages of the batch, and from every passage to all short texts.
    """

    NAME = "teacher"
    Options = TeacherOptions
    options: TeacherOptions
    PRESETS = read_presets(__file__)
    SHAPES = (Shape.TEXTS, Shape.TRIPLETS)

    def __init__(self, encoder: Encoder, options: TeacherOptions) -> None:
        super().__init__(encoder, options)
        self.sources = nn.ModuleList(Guide(Encoder.load(name)) for name in options.sources)
        self.width = encoder.dimension
        width_of_sources = sum(source.encoder.dimension for source in self.guides)
        self.queue = Queue(options.queue, self.width + width_of_sources, keys=1)
        self.waiting: list[tuple[Tensor, Tensor]] = []  # vectors and keys that enter the queue after the step

    @property
    def guides(self) -> list[Guide]:
        """The sources with their stored vectors."""
        return [source for source in self.sources if isinstance(source, Guide)]

    @property
    def frozen(self) -> tuple[str, ...]:
        """The sources."""
        return ("sources",)

    def prepare(self, data: Dataset, folder: Path, log: Log = lambda text: None) -> None:
        """Store the sources' vectors."""
        for source in self.guides:
            if data.shape is Shape.TEXTS:
                source.roles = ("symmetric", "symmetric")
            source.prepare(data, folder, log)

    def rehearse(self, data: Dataset) -> float:
        """Time the sources."""
        return sum(source.rehearse(data) for source in self.guides)

    # --- vectors ---

    def embed(self, batch: Batch) -> Embeddings:
        """T and s: (n, d) of texts; (n, 2 + m, d) of a short text, its passage and m others."""
        if "negatives" not in batch.texts:
            return self.encode(batch.first), self.joined(batch.first, "symmetric")
        q, p, n = encode_candidates(self.encoder, batch, self.sampled(batch), self.options.asymmetric)
        short, long = self.joined(batch.first, "query"), self.joined(self.passages(batch), "document")
        s = torch.cat([short[:, None], long.view(len(batch), -1, long.shape[1])], dim=1)
        return torch.cat([q[:, None], p[:, None], n], dim=1), s

    def joined(self, texts: Sequence[str], role: Role) -> Tensor:
        """The unit vectors of all sources side by side, (n, sum of d): their cosine is the mean of the cosines."""
        return torch.cat([source(texts, _role(source, role)) for source in self.guides], dim=1)

    def sampled(self, batch: Batch) -> list[list[str]]:
        """For each of the n short texts, m passages besides its own; "" where it has fewer."""
        return sample_batch(batch, self.options.negatives)

    def passages(self, batch: Batch) -> list[str]:
        """The own passage of each short text, followed by its m others: n (1 + m) texts."""
        rows = zip(batch.second, self.sampled(batch), strict=True)
        return [text for own, others in rows for text in (own, *others)]

    # --- losses ---

    def total_loss(self, embeddings: Embeddings, batch: Batch) -> Tensor:
        """The sum over the dimensions that the target's vectors can be cut to; the sources' stay whole."""
        t, s = embeddings
        dimensions = self.options.dimensions or (self.width,)
        loss = torch.stack([self.loss((t[..., :m], s), batch) for m in dimensions]).sum()
        if self.training and self.options.queue and s.dim() == 2:
            self.waiting.append((torch.cat([t, s], dim=1).detach(), keys_of(batch.first).to(s.device)))
        return loss

    def loss(self, embeddings: Embeddings, batch: Batch) -> Tensor:
        """How far the target's neighbourhoods are from those of the sources."""
        t, s = embeddings
        return self.among_texts(t, s, batch) if s.dim() == 2 else self.among_passages(t, s, batch)

    def among_texts(self, t: Tensor, s: Tensor, batch: Batch) -> Tensor:
        """Every text among the others of the batch and those in the queue."""
        earlier, old_keys = self.queue.entries()
        targets, sources = earlier[:, : t.shape[1]], earlier[:, self.width :]
        keys = keys_of(batch.first).to(old_keys.device)
        same = (keys == torch.cat([keys, old_keys]).T).to(t.device)  # a text itself, and its copies
        t_all, s_all = torch.cat([t, targets.to(t)]), torch.cat([s, sources.to(s)])
        return ranking_kl(t, t_all, s, s_all, temperature=self.options.temperature, absent=same)

    def among_passages(self, t: Tensor, s: Tensor, batch: Batch) -> Tensor:
        """Short texts among passages, and passages among short texts; a passage counts once."""
        passages = self.passages(batch)
        _, first = np.unique(text_keys(passages), return_index=True)
        chosen = [place for place in sorted(first) if passages[place]]
        (t_short, t_long), (s_short, s_long) = ((x[:, 0], x[:, 1:].flatten(0, 1)[chosen]) for x in (t, s))
        forth = ranking_kl(t_short, t_long, s_short, s_long, temperature=self.options.temperature)
        back = ranking_kl(t_long, t_short, s_long, s_short, temperature=self.options.temperature)
        return forth + back

    @torch.no_grad()
    def after_step(self) -> None:
        """Fill the queue."""
        for vectors, keys in self.waiting:
            self.queue.enqueue(vectors, keys)
        self.waiting.clear()


def _role(source: Guide, role: Role) -> Role:
    """The role that a text has for a source: one without prompts, or that has read raw text, knows no queries."""
    query, document = source.roles
    return query if role == "query" else document if role == "document" else role


def keys_of(texts: Sequence[str]) -> Tensor:
    """(n, 1): a hash of each text."""
    return torch.from_numpy(text_keys(texts).view(np.int64))[:, None]
