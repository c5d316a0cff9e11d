"""Judge whether one sentence follows from another: the probability of "true" against "false" (GenSE, section 3.2)."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from sentloom.encoder.workers import pack_workers
from sentloom.errors import ModelError
from sentloom.writing.language_model import Ids, LanguageModel
from sentloom.writing.writer import Pair


def judge(model: LanguageModel, pairs: Sequence[Pair], batch: int = 64) -> NDArray[np.float64]:
    """P(true) (n,) of each pair: the softmax over the two answers alone, at the first decoded position."""
    ids = judging_ids(model, pairs)
    batches = by_length(ids, batch)
    found = np.empty(len(pairs))
    prefix = model.prefix(model.opening(model.judge_ids)) if pairs else None
    with pack_workers(model.model.device) as executor:
        parts = executor.map(lambda rows: _judged(model, [ids[row] for row in rows], prefix), batches)
        for rows, part in zip(batches, parts, strict=True):
            found[rows] = part
    return found


def judging_ids(model: LanguageModel, pairs: Sequence[Pair]) -> list[Ids]:
    """What the model reads to judge each pair."""
    prompt = model.judge_ids
    premises, hypotheses = (model.sentences([pair[side] for pair in pairs]) for side in (0, 1))
    return [model.framed(prompt, both) for both in zip(premises, hypotheses, strict=True)]


def by_length(ids: Sequence[Ids], size: int) -> list[NDArray[np.int64]]:
    """The rows of each batch, longest first: similar lengths share a batch, so that there is little padding."""
    order = np.argsort([-len(row) for row in ids], kind="stable")
    return [order[at : at + size] for at in range(0, len(order), size)]


def chance_of_true(true: NDArray[np.float64], false: NDArray[np.float64]) -> NDArray[np.float64]:
    """The softmax over two logits, which is the logistic function of their difference."""
    if not (np.isfinite(true).all() and np.isfinite(false).all()):
        found, fix = "its verdicts are NaN or infinite", "check the model: its weights may be damaged"
        raise ModelError("judge", found, "finite numbers", fix)
    return np.exp(-np.logaddexp(0, false - true))


@torch.inference_mode()
def _judged(model: LanguageModel, ids: Sequence[Ids], prefix: Any) -> NDArray[np.float64]:
    logits = model.first_logits(ids, prefix)
    true, false = logits[:, list(model.verdict_ids)].double().cpu().numpy().T
    return chance_of_true(true, false)
