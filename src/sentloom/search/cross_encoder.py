"""Cross-encoders: models that read a query and a passage together and give the pair one score.

They are slower than encoders, which read each text once, and often more accurate, so they serve as teachers and judges.
A score is the model's logit, on the model's own scale: only scores of the same model can be compared. Scores are cached
like vectors.
"""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import torch
from tokenizers import Encoding, Tokenizer
from torch import Tensor
from transformers import AutoModelForSequenceClassification

from sentloom.encoder.backbone import Backbone
from sentloom.encoder.folder_checks import CONFIG
from sentloom.encoder.loading import TextModel, load_for_inference
from sentloom.encoder.model_files import inside, read_json
from sentloom.encoder.packing import pack
from sentloom.errors import ModelError
from sentloom.files import cache_folder
from sentloom.search.vectors import VectorCache

Pairs: TypeAlias = Sequence[tuple[str, str]]  # (query, passage)
Scores: TypeAlias = npt.NDArray[np.float32]  # (n,)
Arrays: TypeAlias = dict[str, npt.NDArray[np.int64]]  # by the names of a model's inputs, each (b, L)
PairScores: TypeAlias = Callable[[Pairs], Scores]

LONGEST = 512  # tokens of a pair
WINDOW = 1024  # pairs that are tokenised at a time
BATCH = 32  # pairs per forward pass of a torch model
PACKED = {"bert", "camembert", "roberta", "xlm-roberta"}  # families whose classifier reads the first token's state
TYPES = "token_type_ids"
BLOCK = 512  # pairs per shard: a killed run loses at most this many


@dataclass(frozen=True)
class CrossEncoder:
    """A tokenizer of pairs and a model with one output."""

    tokenizer: Tokenizer  # truncates the longer of the two texts first
    pad_id: int
    logits: Callable[[Arrays], Scores]
    batch: int
    workers: int
    identity: str  # a hash of all that scores depend on
    window: int = WINDOW
    weights_bytes: int = 0  # in memory

    @classmethod
    def load(cls, name: str | Path) -> "CrossEncoder":
        """Load `reranker`, a folder or a hub model: a classification model of transformers with one output.

        It has safetensors weights, and nothing that the folder brings is run.
        """
        expected = "a cross-encoder: a classification model with one output"
        loaded = load_for_inference(str(name), AutoModelForSequenceClassification, expected, outputs=1)
        return _of_pairs(str(name), loaded, lambda logits: logits[:, 0], "cross-encoder")

    def score(self, pairs: Pairs) -> Scores:
        """Return the score of each (query, passage), (n,); batches have pairs of similar length."""
        scores = np.empty(len(pairs), np.float32)
        with ThreadPoolExecutor(self.workers) as executor:
            for start in range(0, len(pairs), self.window):
                encodings = self.tokenizer.encode_batch(list(pairs[start : start + self.window]))
                batches = list(_by_length(encodings, self.batch))
                computed = executor.map(self._batch_scores, ([encodings[row] for row in rows] for rows in batches))
                for rows, part in zip(batches, computed, strict=True):
                    scores[start + rows] = part
        return _finite(scores, pairs)

    def _batch_scores(self, encodings: Sequence[Encoding]) -> Scores:
        shape = len(encodings), max(len(encoding.ids) for encoding in encodings)
        ids, mask, types = np.full(shape, self.pad_id, np.int64), np.zeros(shape, np.int64), np.zeros(shape, np.int64)
        for row, encoding in enumerate(encodings):
            end = len(encoding.ids)
            ids[row, :end], mask[row, :end], types[row, :end] = encoding.ids, 1, encoding.type_ids
        return self.logits({"input_ids": ids, "attention_mask": mask, TYPES: types})


def _by_length(encodings: Sequence[Encoding], size: int) -> Iterator[npt.NDArray[np.int64]]:
    """Yield row numbers, the longest pairs first: if memory is short, the first batch shows it."""
    order = np.argsort([-len(encoding.ids) for encoding in encodings], kind="stable")
    for start in range(0, len(order), size):
        yield order[start : start + size]


def _finite(scores: Scores, pairs: Pairs) -> Scores:
    broken = np.flatnonzero(~np.isfinite(scores))
    if len(broken):
        problem = f"{len(broken)} of {len(scores)} scores are not finite, first for {pairs[broken[0]][0][:80]!r}"
        raise ModelError("cross-encoder", problem, "finite scores", "check the model's weights and its precision")
    return scores


def load_nli_judge(name: str) -> CrossEncoder:
    """Load a classification model for NLI, a folder or a hub model: a score is the probability of entailment."""
    expected = "an NLI model: a classification model with three outputs, one of which is called entailment"
    loaded = load_for_inference(name, AutoModelForSequenceClassification, expected, outputs=3)
    names = read_json(inside(loaded.folder, CONFIG)).get("id2label") or {}  # transformers has replaced them by now
    places = {str(label).casefold(): int(place) for place, label in names.items()}
    if "entailment" not in places:
        problem = f"its outputs are called {', '.join(places)}" if places else "its outputs have no names"
        raise ModelError(name, problem, expected, "choose another model")
    place = places["entailment"]
    return _of_pairs(name, loaded, lambda logits: logits.softmax(dim=1)[:, place], "nli judge")


def _of_pairs(name: str, loaded: TextModel, score: Callable[[Tensor], Tensor], kind: str) -> CrossEncoder:
    """A model that reads pairs; `score` makes one number of a pair's outputs."""
    backend = getattr(loaded.tokenizer, "backend_tokenizer", None)
    if backend is None:
        problem = f"{type(loaded.tokenizer).__name__} is a slow tokenizer, written in Python"
        raise ModelError(name, problem, "a tokenizer of the tokenizers library", "choose another model")
    backend.enable_truncation(min(LONGEST, loaded.longest))
    model: Any = loaded.model
    names = [key for key in ("input_ids", "attention_mask", TYPES) if key in loaded.tokenizer.model_input_names]
    forward = _packed(model, TYPES in names) if model.config.model_type in PACKED else _padded(model, names)

    def logits(arrays: Arrays) -> Scores:
        with torch.inference_mode():
            scores: Scores = score(forward(arrays).float()).cpu().numpy()
        return scores

    pad_id = loaded.tokenizer.pad_token_id or 0
    size = sum(weights.numel() * weights.element_size() for weights in model.parameters())
    identity = f"{kind} {loaded.sha256} {backend.truncation}"
    return CrossEncoder(backend, pad_id, logits, BATCH, 1, identity, weights_bytes=size)


def _padded(model: Any, names: Sequence[str]) -> Callable[[Arrays], Tensor]:
    """The outputs (b, outputs) of a whole model, whatever it is."""
    return lambda arrays: model(**{key: torch.from_numpy(arrays[key]).to(model.device) for key in names}).logits


def _packed(model: Any, typed: bool) -> Callable[[Arrays], Tensor]:
    """The same for BERT-like models, whose pairs run side by side without padding, as the texts of an encoder do."""
    backbone, pooler = Backbone(model.base_model), getattr(model.base_model, "pooler", None)

    def forward(arrays: Arrays) -> Tensor:
        lengths = arrays["attention_mask"].sum(axis=1)  # falling
        ids, types = (
            [row[:length] for row, length in zip(arrays[key], lengths, strict=True)] for key in ("input_ids", TYPES)
        )
        packed = pack(ids, np.arange(len(ids)), model.device)
        if typed:
            packed = replace(packed, types=torch.from_numpy(np.concatenate(types))[None].to(model.device))
        (states,) = backbone.states(packed)
        first = states[torch.from_numpy(np.cumsum(lengths) - lengths).to(model.device)][:, None]  # (b, 1, d)
        outputs: Tensor = model.classifier(pooler(first) if pooler else first)
        return outputs

    return forward


def pair_scores(
    model: CrossEncoder, pairs: Pairs, cache: VectorCache | None = None, show_progress: bool = False
) -> Scores:
    """Return the score of each pair, (n,): those in the cache as they are, the others computed and stored."""
    if not pairs:
        return np.empty(0, np.float32)
    keys = [_key(*pair) for pair in pairs]
    by_key = dict(zip(keys, pairs, strict=True))
    scores = (cache or VectorCache(cache_folder() / "vectors", block=BLOCK)).vectors(
        model.identity,
        keys,
        lambda missing: model.score([by_key[key] for key in missing])[:, None],
        show_progress=show_progress,
        work=("scoring", "pairs"),
    )
    return scores[:, 0]


def _key(query: str, passage: str) -> str:
    """One text for both, from which neither can be read as the other."""
    return f"{len(query)} {query}{passage}"
