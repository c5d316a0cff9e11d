"""Many softmax regressions on one feature matrix, each with its own training rows, solved together to the optimum.

A model minimises SentEval's objective, with weight decay on every parameter, including the bias:

    mean cross-entropy over its training rows + l2 / 2 * ||weights||^2

Models are columns of one weight matrix, so a step of all of them is two large matrix products. The step is L-BFGS
preconditioned with one curvature, computed for the average model, which is solved first. Models that differ in a tenth
of their rows are close to it, and a few steps suffice. Few classes have a curvature each; many share the eigenvectors
of their mean, because a matrix per class would take most of the time.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol

import torch
from torch import Tensor

from sentloom.progress import progress, stop_if_late

BYTES = 200_000_000  # of the buffers with one number per row, model and class
BUFFERS = 4  # allocated at the same time
TOLERANCE = 2e-5  # of the Newton decrement, which is about the mean error of a logit
CURVATURES = 12  # maximum, for the average model
MANY = 20  # classes, above which they share a curvature
CUTS = 6  # maximum, of a step that is too long
ENOUGH = 0.9  # a step is too long if the slope at its end is steeper than this share of the slope at its start


def fit(
    features: Tensor, targets: Tensor, training: Tensor, penalties: Sequence[float], buffer_bytes: int = BYTES
) -> Tensor:
    """Fit models and return their weights (penalties, models, features + 1, classes); the bias is the last row.

    `features` (n, f); `targets` (n, classes) sum to 1 per row; `training` (n, models) marks each model's rows.
    """
    used = training.any(dim=1)
    problem = _Problem.of(features[used], targets[used].float())
    shares = training[used] / training.sum(dim=0)  # (n, models): each column sums to 1
    weights = torch.empty(len(penalties), shares.shape[1], *problem.shape)
    average, start = shares.mean(dim=1, keepdim=True), torch.zeros(problem.shape)[:, None]
    from_large = sorted(range(len(penalties)), key=lambda place: -penalties[place])  # they are easier
    with progress("fitting linear models", weights.shape[:2].numel(), "models") as advance:
        for place in from_large:
            ridge = problem.ridge(penalties[place])
            start, curvature = problem.average_model(start, average, ridge)
            for chunk in _chunks(shares.shape[1], used.sum().item() * problem.shape[1], buffer_bytes):
                many = start.expand(-1, len(chunk), -1)
                optima, _ = problem.minimise(many, shares[:, chunk], ridge, curvature, curvature.effort.steps)
                weights[place, chunk] = optima.transpose(0, 1)
                advance(len(chunk))
    return problem.unscaled(weights)


def logits(features: Tensor, weights: Tensor) -> Tensor:
    """Compute logits (n, models, classes) from weights (models, f + 1, classes)."""
    linear, bias = weights[:, :-1].transpose(0, 1), weights[:, -1]
    return (features @ linear.flatten(1)).unflatten(1, bias.shape) + bias


def _chunks(models: int, numbers: float, buffer_bytes: int) -> Iterator[range]:
    """Yield ranges of models whose buffers fit into `buffer_bytes`, at `numbers` float32 values per model."""
    size = max(1, int(buffer_bytes / (BUFFERS * 4 * numbers)))
    return (range(at, min(at + size, models)) for at in range(0, models, size))


@dataclass(frozen=True)
class _Problem:
    """The data that all models share. Weights are (f, models, k): k columns for k > 2 classes, one logit for two."""

    features: Tensor  # (n, f), columns divided by `scale`, the last column is the bias
    targets: Tensor  # (n, k)
    scale: Tensor  # (f,)

    @classmethod
    def of(cls, features: Tensor, targets: Tensor) -> "_Problem":
        ones = torch.ones(len(features), 1)
        lengths = torch.linalg.vector_norm(features, dim=0, dtype=torch.float64) / len(features) ** 0.5
        scale = torch.cat([lengths.clamp_min(1e-6), ones[0].double()])
        scaled = torch.cat([features, ones], dim=1) / scale.float()
        return cls(scaled, targets[:, 1:] if targets.shape[1] == 2 else targets, scale)

    @property
    def shape(self) -> tuple[int, int]:
        """The shape of a model's weights."""
        return self.features.shape[1], self.targets.shape[1]

    def ridge(self, l2: float) -> Tensor:
        """Compute the weight decay (f, 1, 1) on scaled weights; for two classes, -w/2 and w/2 have half the squares."""
        return (l2 / self.scale.square() / (2 if self.shape[1] == 1 else 1)).float()[:, None, None]

    def unscaled(self, weights: Tensor) -> Tensor:
        """Convert weights to (..., f, classes) for the original features."""
        weights = weights / self.scale.float()[:, None]
        return torch.cat([-weights / 2, weights / 2], dim=-1) if self.shape[1] == 1 else weights

    def probabilities(self, weights: Tensor) -> Tensor:
        """Compute probabilities (n, models, k)."""
        logits = (self.features @ weights.flatten(1)).unflatten(1, weights.shape[1:])
        return logits.sigmoid_() if self.shape[1] == 1 else logits.softmax(dim=2)

    def gradient(self, weights: Tensor, shares: Tensor, ridge: Tensor) -> Tensor:
        """Compute the gradient (f, models, k)."""
        errors = self.probabilities(weights).sub_(self.targets[:, None]).mul_(shares[:, :, None])
        return (self.features.T @ errors.flatten(1)).view_as(weights).addcmul_(ridge, weights)

    def curvature(self, weights: Tensor, shares: Tensor, ridge: Tensor) -> "_Curvature":
        """Compute one model's curvature at its weights."""
        probabilities = self.probabilities(weights)[:, 0]
        of_classes = (probabilities * (1 - probabilities) * shares).T  # (k, n)
        of_kind = _Shared.of if self.shape[1] > MANY else _PerClass.of
        return of_kind(self.features, of_classes, ridge[:, 0, 0])

    def average_model(self, weights: Tensor, shares: Tensor, ridge: Tensor) -> tuple[Tensor, "_Curvature"]:
        """Solve the average model; return its weights and the curvature there."""
        for _ in range(CURVATURES):
            curvature = self.curvature(weights, shares, ridge)
            weights, arrived = self.minimise(weights, shares, ridge, curvature, curvature.effort.of_one)
            if arrived:
                break
        return weights, self.curvature(weights, shares, ridge)

    def minimise(
        self, weights: Tensor, shares: Tensor, ridge: Tensor, curvature: "_Curvature", steps: int
    ) -> tuple[Tensor, bool]:
        """Minimise each model from the given weights; return the optima and whether all models converged."""
        optima = weights.clone()
        at = torch.arange(weights.shape[1])
        weights, gradient = optima, self.gradient(optima, shares, ridge)
        past: list[tuple[Tensor, Tensor, Tensor]] = []
        for _ in range(steps):
            stop_if_late()
            decrement = _dot(gradient, self.precondition(gradient, curvature))
            going = decrement > TOLERANCE**2
            if not going.all():
                optima[:, at[~going]] = weights[:, ~going]
                at, weights, gradient, shares = at[going], weights[:, going], gradient[:, going], shares[:, going]
                past = [(moved[:, going], bent[:, going], product[going]) for moved, bent, product in past]
            if not len(at):
                return optima, True
            direction = self.direction(gradient, curvature, past)
            moved, after = self.search(weights, gradient, direction, shares, ridge)
            past = [*past, _pair(moved, after - gradient)][-curvature.effort.memory :]
            weights, gradient = weights + moved, after
        optima[:, at] = weights
        return optima, False

    def precondition(self, gradient: Tensor, curvature: "_Curvature") -> Tensor:
        """Approximate a Newton step; the part shared by all classes, which softmax ignores, is removed."""
        step = curvature.solve(gradient)
        return step if self.shape[1] == 1 else step - step.mean(dim=2, keepdim=True)

    def direction(self, gradient: Tensor, curvature: "_Curvature", past: list[tuple[Tensor, Tensor, Tensor]]) -> Tensor:
        """Compute the descent direction by L-BFGS's two-loop recursion."""
        down, kept = -gradient, []
        for moved, bent, product in reversed(past):
            kept.append(_dot(moved, down) * product)
            down = down - kept[-1][:, None] * bent
        down = self.precondition(down, curvature)
        for (moved, bent, product), share in zip(past, reversed(kept), strict=True):
            down = down + (share - _dot(bent, down) * product)[:, None] * moved
        return down

    def search(
        self, weights: Tensor, gradient: Tensor, direction: Tensor, shares: Tensor, ridge: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Return the step along a direction and the gradient after it; a step that is too long is shortened."""
        slope = _dot(gradient, direction)
        after = self.gradient(weights + direction, shares, ridge)
        step = torch.ones_like(slope)
        for _ in range(CUTS):
            end = _dot(after, direction)
            long = torch.nonzero(end > -ENOUGH * slope)[:, 0]
            if not len(long):
                break
            cut = (slope[long] / (slope[long] - end[long])).clamp(0.1, 0.9)
            step[long] *= cut
            tried = weights[:, long] + step[long, None] * direction[:, long]
            after[:, long] = self.gradient(tried, shares[:, long], ridge)
        return step[:, None] * direction, after


@dataclass(frozen=True)
class _Effort:
    """What a curvature calls for: the poorer it is, the more steps."""

    steps: int  # maximum, if float32 cannot reach the tolerance
    of_one: int  # of the average model, before its curvature is computed again
    memory: int  # pairs in the history of L-BFGS


class _Curvature(Protocol):
    """An approximate second derivative of a model, without the products of different classes."""

    effort: ClassVar[_Effort]

    def solve(self, gradient: Tensor) -> Tensor:
        """Multiply gradients (f, models, k) by its inverse."""


@dataclass(frozen=True)
class _PerClass:
    """The exact curvature of every class; few models need ten steps."""

    effort: ClassVar = _Effort(steps=60, of_one=8, memory=8)
    roots: Tensor  # (k, f, f): the squares r^T r are the inverse curvatures

    @classmethod
    def of(cls, features: Tensor, of_classes: Tensor, ridge: Tensor) -> "_PerClass":
        """From the weights (k, n) of the rows in each class."""
        squares = (features * root[:, None] for root in of_classes.sqrt())
        return cls(torch.stack([_inverse_root(rows.T @ rows, ridge) for rows in squares]))

    def solve(self, gradient: Tensor) -> Tensor:
        """Multiply gradients (f, models, k) by its inverse."""
        return (self.roots.mT @ (self.roots @ gradient.permute(2, 0, 1))).permute(1, 2, 0)


@dataclass(frozen=True)
class _Shared:
    """The mean curvature of all classes, times the size of each: size * mean + ridge."""

    effort: ClassVar = _Effort(steps=400, of_one=30, memory=20)
    vectors: Tensor  # (f, f): v^T mean v is diagonal, and v^T ridge v is the identity
    inverse: Tensor  # (f, k): of size * mean + ridge, in these vectors

    @classmethod
    def of(cls, features: Tensor, of_classes: Tensor, ridge: Tensor) -> "_Shared":
        """From the weights (k, n) of the rows in each class."""
        rows = features * of_classes.sum(dim=0).sqrt()[:, None]
        squares = (rows.T @ rows).double() / of_classes.sum()
        roots = (ridge + 1e-7 * squares.trace()).double().sqrt()
        values, vectors = torch.linalg.eigh(squares / roots / roots[:, None])
        inverse = 1 / (1 + values.clamp_min(0)[:, None] * of_classes.sum(dim=1).double())
        return cls((vectors / roots[:, None]).float(), inverse.float())

    def solve(self, gradient: Tensor) -> Tensor:
        """Multiply gradients (f, models, k) by its inverse."""
        inside = (self.vectors.T @ gradient.flatten(1)).view_as(gradient)
        return (self.vectors @ (inside * self.inverse[:, None]).flatten(1)).view_as(gradient)


def _dot(left: Tensor, right: Tensor) -> Tensor:
    """Compute the dot products (models,) of two (f, models, k)."""
    return torch.einsum("fmk,fmk->m", left, right)


def _pair(moved: Tensor, bent: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return a step, the change of the gradient, and 1 over their product (0, without effect, if not positive)."""
    product = _dot(moved, bent)
    return moved, bent, torch.where(product > 0, 1 / product, 0)


def _inverse_root(squares: Tensor, ridge: Tensor) -> Tensor:
    """Invert the Cholesky root in float64, adding to the diagonal until rounding leaves no negative eigenvalue."""
    matrix = squares.double()
    grain, failed = 1e-7 * float(matrix.trace()), 1
    matrix.diagonal().add_(ridge)
    while failed:
        matrix.diagonal().add_(grain)
        root, info = torch.linalg.cholesky_ex(matrix)
        grain, failed = 10 * grain, int(info)
    return torch.linalg.solve_triangular(root, torch.eye(len(root), dtype=torch.float64), upper=False).float()
