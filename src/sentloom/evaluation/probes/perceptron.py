"""SentEval's classifier with a hidden layer, many models at once as batched matrix products.

Linear, sigmoid, linear; Adam or RMSprop on batches of each model's rows, in SentEval's random order and from its
initial weights (seed 1111). Every few epochs the accuracy on held-out rows is computed, and the best weights are kept.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from sentloom.progress import progress

SEED = 1111
LAST_EPOCH = 200
HELD_OUT = 0.05  # share of the training rows, if a split has no held-out rows
TOGETHER = 50_000_000  # weights that train at once; memory holds five copies

Rows = npt.NDArray[np.int64]
Weights = list[Tensor]  # (models, f, hidden), (models, 1, hidden), (models, hidden, classes), (models, 1, classes)


@dataclass(frozen=True)
class Training:
    """Training options. `tenacity` is how often the accuracy may fail to improve before training stops."""

    optimizer: str
    batch: int
    epochs: int  # between two evaluations of the accuracy
    tenacity: int
    hidden: int = 50  # units
    seed: int = SEED


@dataclass
class _Job:
    """One model: training rows, held-out rows for early stopping, and its own random state."""

    place: tuple[int, int]
    train: Rows
    held: Rows
    l2: float
    random: np.random.RandomState

    @classmethod
    def of(cls, place: tuple[int, int], train: Rows, held: Rows | None, l2: float, seed: int) -> "_Job":
        random = np.random.RandomState(seed)
        if held is None:
            order = random.permutation(len(train))
            size = max(1, int(HELD_OUT * len(train)))
            train, held = train[order[size:]], train[order[:size]]
        return cls(place, train, held, l2, random)


def predict(
    features: Tensor,
    classes: Tensor,
    splits: Sequence[tuple[Rows, Rows | None]],
    penalties: Sequence[float],
    training: Training,
    together: int = TOGETHER,
) -> Rows:
    """Predict the class of every row with each model (penalties, splits, n).

    A split has training rows and held-out rows for early stopping; without the latter, a share of the former is used.
    """
    jobs = [
        _Job.of((place, number), *split, l2, training.seed)
        for place, l2 in enumerate(penalties)
        for number, split in enumerate(splits)
    ]
    answers = np.empty((len(penalties), len(splits), len(features)), np.int64)
    targets = torch.eye(int(classes.max()) + 1)[classes]
    start = _initial(features.shape[1], training.hidden, targets.shape[1], training.seed)
    with progress("training perceptrons", len(jobs), "models") as advance:
        for group in _groups(jobs, training.batch, together // sum(tensor.numel() for tensor in start)):
            weights = _train(features, targets, group, [tensor.repeat(len(group), 1, 1) for tensor in start], training)
            for number, job in enumerate(group):
                answers[job.place] = _logits(features, [tensor[number] for tensor in weights]).argmax(dim=1).numpy()
            advance(len(group))
    return answers


def _initial(features: int, hidden: int, classes: int, seed: int = SEED) -> Weights:
    """Return torch's initial weights from the seed, in SentEval's order, without changing the global random state."""
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        layers = [nn.Linear(features, hidden), nn.Linear(hidden, classes)]
    return [tensor.detach() for layer in layers for tensor in (layer.weight.T[None], layer.bias[None, None])]


def _groups(jobs: Sequence[_Job], batch: int, most: int) -> Iterator[list[_Job]]:
    """Group at most `most` models with the same number of batches, so that they take the same number of steps."""
    size = max(1, most)
    ordered = sorted(jobs, key=lambda job: _batches(job, batch))
    for _, same in groupby(ordered, key=lambda job: _batches(job, batch)):
        group = list(same)
        yield from (group[at : at + size] for at in range(0, len(group), size))


def _batches(job: _Job, batch: int) -> int:
    return -(-len(job.train) // batch)


def _train(features: Tensor, targets: Tensor, jobs: list[_Job], weights: Weights, training: Training) -> Weights:
    """Train models and return the best weights of each, by accuracy on its held-out rows."""
    best = [tensor.clone() for tensor in weights]
    places = torch.arange(len(jobs))
    highest, failures = torch.full((len(jobs),), -1.0), torch.zeros(len(jobs))
    models = _Models(jobs, weights, [[torch.zeros_like(tensor) for tensor in weights] for _ in range(2)])
    epoch = 0
    while models.jobs and epoch <= LAST_EPOCH:
        for _ in range(training.epochs):
            _epoch(features, targets, models, training)
        epoch += training.epochs
        accuracy = _accuracies(features, targets, models.jobs, models.weights)
        better = accuracy > highest
        for kept, tensor in zip(best, models.weights, strict=True):
            kept[places[better]] = tensor[better]
        going = better | (failures < training.tenacity)
        highest, failures = torch.maximum(highest, accuracy)[going], (failures + ~better)[going]
        places = places[going]
        models.keep(going)
    return best


@dataclass
class _Models:
    """Models that train together, and the state of their optimizer."""

    jobs: list[_Job]
    weights: Weights
    moments: list[Weights]
    steps: int = 0

    def keep(self, going: Tensor) -> None:
        """Go on with some of them."""
        self.jobs = [job for job, goes in zip(self.jobs, going.tolist(), strict=True) if goes]
        self.weights, *self.moments = ([tensor[going] for tensor in part] for part in (self.weights, *self.moments))


def _epoch(features: Tensor, targets: Tensor, models: _Models, training: Training) -> None:
    """Train every model for one epoch."""
    rows, real = _padded([job.train[job.random.permutation(len(job.train))] for job in models.jobs])
    l2 = torch.tensor([job.l2 for job in models.jobs])[:, None, None]
    step = _adam if training.optimizer == "adam" else _rmsprop
    for batch, there in zip(rows.split(training.batch, dim=1), real.split(training.batch, dim=1), strict=True):
        gradients = _gradients(features[batch], targets[batch], there / there.sum(dim=1, keepdim=True), models.weights)
        models.steps += 1
        for parameter, gradient, first, second in zip(models.weights, gradients, *models.moments, strict=True):
            step(parameter, gradient.addcmul_(parameter, l2), first, second, models.steps)


def _gradients(features: Tensor, targets: Tensor, shares: Tensor, weights: Weights) -> Weights:
    """Compute the gradients of the mean cross-entropy; inputs are (models, batch, ...), shares (models, batch)."""
    inner, inner_bias, outer, outer_bias = weights
    hidden = torch.baddbmm(inner_bias, features, inner).sigmoid_()
    error = (torch.baddbmm(outer_bias, hidden, outer).softmax(dim=2) - targets) * shares[:, :, None]
    below = (error @ outer.mT) * hidden * (1 - hidden)
    return [features.mT @ below, below.sum(1, keepdim=True), hidden.mT @ error, error.sum(1, keepdim=True)]


def _adam(weights: Tensor, gradient: Tensor, first: Tensor, second: Tensor, steps: int) -> None:
    """Take an Adam step in place, with torch's defaults."""
    first.lerp_(gradient, 0.1)
    second.mul_(0.999).addcmul_(gradient, gradient, value=0.001)
    size = second.sqrt().div_((1 - 0.999**steps) ** 0.5).add_(1e-8)
    weights.addcdiv_(first, size, value=-0.001 / (1 - 0.9**steps))


def _rmsprop(weights: Tensor, gradient: Tensor, first: Tensor, second: Tensor, steps: int) -> None:
    """Take an RMSprop step in place, with torch's defaults; it uses only the second moment."""
    second.mul_(0.99).addcmul_(gradient, gradient, value=0.01)
    weights.addcdiv_(gradient, second.sqrt().add_(1e-8), value=-0.01)


def _accuracies(features: Tensor, targets: Tensor, jobs: list[_Job], weights: Weights) -> Tensor:
    """Compute each model's accuracy on its held-out rows (models,)."""
    answers = [_logits(features[job.held], [w[at] for w in weights]).argmax(dim=1) for at, job in enumerate(jobs)]
    right = [(answer == targets[job.held].argmax(dim=1)).float() for answer, job in zip(answers, jobs, strict=True)]
    return torch.stack([hits.mean() for hits in right])


def _logits(features: Tensor, weights: Weights) -> Tensor:
    """Compute the logits (n, classes) of one model."""
    inner, inner_bias, outer, outer_bias = weights
    return (features @ inner + inner_bias).sigmoid() @ outer + outer_bias


def _padded(rows: Sequence[Rows]) -> tuple[Tensor, Tensor]:
    """Pad the rows of all models with 0 to (models, longest); also return which entries are real."""
    table = np.zeros((len(rows), max(map(len, rows))), np.int64)
    real = np.zeros(table.shape, np.float32)
    for number, own in enumerate(rows):
        table[number, : len(own)], real[number, : len(own)] = own, 1
    return torch.from_numpy(table), torch.from_numpy(real)
