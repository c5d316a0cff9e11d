"""BERT-flow (Li et al., 2020): an invertible map that makes the vectors of a frozen encoder Gaussian.

Glow as in the official code: three levels of three steps, each an activation norm, a reversal of the dimensions and an
additive coupling of width 32; after a level, half of the dimensions are done. It is trained for one epoch to maximise
the likelihood of the vectors. The paper describes the mean of the last two layers (pooling `last-two`); its code
averages the first and the last layer (`first-last`).
"""

import hashlib
import math
from collections.abc import Iterator, Sequence
from copy import deepcopy
from pathlib import Path

import torch
from torch import Tensor, nn

from sentloom.encoder.encoder import Encoder, Vectors
from sentloom.encoder.heads import Projection, normalize
from sentloom.encoder.packing import Pack
from sentloom.encoder.tokens import Role
from sentloom.errors import InputError, ModelError
from sentloom.progress import progress

LEVELS, DEPTH, WIDTH = 3, 3, 32
LOG_FACTOR = 3.0  # log scales are stored divided by it, which makes them learn faster
LEAST_DEVIATION = 1e-6
BATCH, LEARNING_RATE, MAX_LENGTH = 32, 1e-3, 64


class ActNorm(nn.Module):
    """(x + b) * exp(s) for each dimension; the first batch sets b and s so that its own mean is 0 and variance 1."""

    ready: Tensor

    def __init__(self, width: int) -> None:
        super().__init__()
        self.bias, self.logs = nn.Parameter(torch.zeros(width)), nn.Parameter(torch.zeros(width))
        self.register_buffer("ready", torch.tensor(False))

    @torch.no_grad()
    def initialise(self, x: Tensor) -> None:
        """Set bias and scale from a batch (n, d)."""
        self.bias.copy_(-x.mean(dim=0))
        deviation = (x + self.bias).square().mean(dim=0).sqrt()
        self.logs.copy_(-(deviation + LEAST_DEVIATION).log() / LOG_FACTOR)
        self.ready.fill_(True)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return the result (n, d) and the log-determinant, which is the same for every row."""
        if not self.ready:
            self.initialise(x)
        scale = LOG_FACTOR * self.logs
        return (x + self.bias) * scale.exp(), scale.sum()

    def inverse(self, y: Tensor) -> Tensor:
        """Undo `forward`."""
        return y * (-LOG_FACTOR * self.logs).exp() - self.bias


class Shift(nn.Module):
    """The network of a coupling: two normalised layers with ReLU, and a last one that starts at zero."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(width, WIDTH, bias=False), nn.Linear(WIDTH, WIDTH, bias=False)
        self.norms = nn.ModuleList([ActNorm(WIDTH), ActNorm(WIDTH)])
        self.last, self.logs = nn.Linear(WIDTH, width), nn.Parameter(torch.zeros(width))
        for layer in (self.first, self.second):
            nn.init.normal_(layer.weight, std=0.05)
        nn.init.zeros_(self.last.weight)
        nn.init.zeros_(self.last.bias)

    def forward(self, x: Tensor) -> Tensor:
        """(n, d/2) -> (n, d/2)."""
        for layer, norm in zip((self.first, self.second), self.norms, strict=True):
            x = norm(layer(x))[0].relu()
        shift: Tensor = self.last(x) * (LOG_FACTOR * self.logs).exp()
        return shift


class Step(nn.Module):
    """Activation norm, reversal, additive coupling."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm, self.shift = ActNorm(width), Shift(width // 2)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return the result and the log-determinant: a reversal and a shift leave volumes as they are."""
        x, log_determinant = self.norm(x)
        first, second = x.flip(1).chunk(2, dim=1)
        return torch.cat([first, second + self.shift(first)], dim=1), log_determinant

    def inverse(self, z: Tensor) -> Tensor:
        """Undo `forward`."""
        first, second = z.chunk(2, dim=1)
        return self.norm.inverse(torch.cat([first, second - self.shift(first)], dim=1).flip(1))


class Glow(nn.Module):
    """The flow: f(x) and log |det df/dx|."""

    def __init__(self, width: int) -> None:
        super().__init__()
        if width % 2**LEVELS:
            fix = "use another encoder"
            raise InputError("flow", f"the vectors have {width} dimensions", f"a multiple of {2**LEVELS}", fix)
        self.steps = nn.ModuleList(Step(width // 2**level) for level in range(LEVELS) for _ in range(DEPTH))

    def level(self, number: int) -> list[Step]:
        """The steps of a level."""
        return [step for step in self.steps[number * DEPTH : (number + 1) * DEPTH] if isinstance(step, Step)]

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """(n, d) -> (n, d), and the log-determinant."""
        done, total = [], x.new_zeros(())
        for number in range(LEVELS):
            for step in self.level(number):
                x, log_determinant = step(x)
                total = total + log_determinant
            if number < LEVELS - 1:
                x, half = x.chunk(2, dim=1)
                done.append(half)
        return torch.cat([*done, x], dim=1), total

    def inverse(self, z: Tensor) -> Tensor:
        """Undo `forward`."""
        halves = [z.shape[1] // 2 ** (number + 1) for number in range(LEVELS - 1)]
        *done, x = z.split([*halves, halves[-1]], dim=1)
        for number in reversed(range(LEVELS)):
            if number < LEVELS - 1:
                x = torch.cat([x, done.pop()], dim=1)
            for step in reversed(self.level(number)):
                x = step.inverse(x)
        return x

    def loss(self, x: Tensor) -> Tensor:
        """The mean negative log-likelihood under a standard normal, in bits per dimension."""
        z, log_determinant = self(x)
        likelihood = -(z.square() + math.log(2 * math.pi)).sum(dim=1).mean() / 2 + log_determinant
        return -likelihood / (math.log(2) * x.shape[1])


class FlowEncoder(Encoder):
    """An Encoder whose vectors go through a flow."""

    glow: Glow

    def save(self, folder: str | Path, *, golden: bool = True) -> None:
        """Raise a ModelError: an Encoder would be saved without its flow."""
        problem = "a model with a flow cannot be saved: sentence-transformers has no module for it"
        raise ModelError(str(folder), problem, "", "score it by name")

    def _vectors(self, packed: Pack, raw: bool = False) -> Tensor:
        vectors: Tensor = self.glow(super()._vectors(packed, raw=True).float())[0]
        return normalize(vectors) if self.unit_length and not raw else vectors


class Flowed:
    """An unfitted flow, which is fitted on the scored text."""

    def __init__(self, base: Encoder) -> None:
        self.base = base

    def fit(self, texts: Sequence[str]) -> FlowEncoder:
        """Train a flow on these texts."""
        return fit_flow(self.base, texts)

    def fingerprint(self) -> str:
        """Return a hash of the base."""
        return hashlib.sha256(f"flow {self.base.fingerprint()}".encode()).hexdigest()

    def encode(self, texts: Sequence[str], *, role: Role = "symmetric", show_progress: bool = False) -> Vectors:
        """Fit on these texts and encode them."""
        return self.fit(texts).encode(texts, role=role, show_progress=show_progress)


def fit_flow(base: Encoder, texts: Sequence[str], *, seed: int = 0, show_progress: bool = False) -> FlowEncoder:
    """Return the base, in eval mode and cut at 64 tokens, with a flow trained on texts for one epoch."""
    tokens = deepcopy(base.tokens)
    tokens.max_length = min(tokens.max_length, MAX_LENGTH)
    heads = [head for head in base.heads if isinstance(head, Projection)]
    fitted = FlowEncoder(base.backbone, tokens, pooling=base.pooling, heads=heads, prompts=base.prompts)
    plain = Encoder(base.backbone, tokens, pooling=base.pooling, heads=heads, prompts=base.prompts, unit_length=False)
    vectors = torch.from_numpy(plain.eval().encode(list(texts), show_progress=show_progress))
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        fitted.glow = _trained(Glow(vectors.shape[1]), vectors, show_progress)
    return fitted.to(base.device).eval()


def _trained(glow: Glow, vectors: Tensor, show_progress: bool) -> Glow:
    """Train on all vectors (n, d) once, in a random order."""
    optimizer = torch.optim.Adam(glow.parameters(), lr=LEARNING_RATE)
    with progress("flow", len(vectors), "sentences", show_progress) as advance:
        for rows in _batches(len(vectors)):
            loss = glow.loss(vectors[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            advance(len(rows))
    return glow.requires_grad_(False)


def _batches(count: int) -> Iterator[Tensor]:
    """The rows of each batch; a last one of a single row, which has no deviation, is left out."""
    for rows in torch.randperm(count).split(BATCH):
        if len(rows) > 1 or count == 1:
            yield rows
