"""GLUE by fine-tuning (self-guided, Table 10): a copy of the encoder learns each task with a classification head.

As in the paper, the test labels being hidden, the first tenth of the dev part chooses the epoch and the rest of it is
scored. The paper states no other setting: those of SETTINGS are BERT's usual ones.
"""

from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from transformers import BatchEncoding, PreTrainedModel, PreTrainedTokenizerBase

from sentloom.encoder import Encoder
from sentloom.errors import InputError
from sentloom.evaluation.metrics import METRICS, Numbers
from sentloom.evaluation.set_source import Rows, SetSource, joint_sha256
from sentloom.evaluation.task import Score, Scores, Suite, Task, TaskSettings
from sentloom.lab.suites.probed_sets import ProbedSet, read_edition, sides
from sentloom.lab.suites.transfer import SENTGLUE_SETS
from sentloom.methods.settings import Settings
from sentloom.progress import progress
from sentloom.training.optimizers import build_optimizer, gradient_norm, rate, set_rate

if TYPE_CHECKING:
    from sentloom.evaluation.bench import Model

NAMES = ("QNLI", "SST-2", "CoLA", "MRPC", "RTE")  # of Table 10
SETS = {name: [edition for edition in SENTGLUE_SETS[name] if edition.test] for name in NAMES}
CHOOSING = 0.1  # of the dev part
SEED = 1
MAX_LENGTH = 128
SETTINGS = Settings.model_validate(
    {
        "batch": 32,
        "epochs": 3,
        "learning_rate": 2e-5,
        "weight_decay": 0.01,
        "schedule": "linear",
        "warmup": 0.1,
        "clip": 1.0,
    }
)
DROPOUT = 0.1  # of the head


def load(name: str, origin: SetSource) -> Task:
    """Build the task of one of the five sets."""
    edition, (train, test) = read_edition(SETS[name], origin)
    settings = {**SETTINGS.model_dump(exclude_defaults=True), "max_length": MAX_LENGTH}
    return Task(
        name=name,
        main=edition.scores[0],
        texts={"symmetric": [text for part in (train, test) for side in sides(part) for text in side]},
        score=partial(_scores, edition, train, test),
        source=", ".join(dict.fromkeys((train.source, test.source))),
        sha256=joint_sha256(train, test),
        settings=TaskSettings(others={"protocol": "fine-tuned", **settings}),
        notes=tuple(dict.fromkeys(note for note in (*train.notes, *test.notes, edition.note) if note)),
    ).under(SEED)


def _scores(edition: ProbedSet, train: Rows, dev: Rows, model: "Model", seed: int) -> Scores:
    if not isinstance(model, Encoder):
        problem = f"a {type(model).__name__} has no weights to fine-tune"
        raise InputError("fine-tuning", problem, "an encoder", "choose another model, or the suite sentglue")
    names = {label: number for number, label in enumerate(sorted(set(train["label"])))}
    learned, known = (Examples(tuple(sides(part)), [names[label] for label in part["label"]]) for part in (train, dev))
    first = max(1, round(CHOOSING * len(known)))
    choosing, test = known.take(range(first)), known.take(range(first, len(known)))
    items = fine_tune(model, Parts(learned, choosing, test), METRICS[edition.scores[0]], seed=seed, show_progress=True)
    return {score: Score(score, items) for score in edition.scores}


@dataclass(frozen=True)
class Examples:
    """Rows of one or two texts, and the number of the class of each."""

    texts: tuple[Sequence[str], ...]
    classes: Sequence[int]

    def __len__(self) -> int:
        return len(self.classes)

    def take(self, rows: Sequence[int]) -> "Examples":
        """Some of the rows."""
        return Examples(tuple([side[row] for row in rows] for side in self.texts), [self.classes[row] for row in rows])


class Parts(NamedTuple):
    """What a classifier learns from, what chooses its epoch, and what it answers."""

    train: Examples
    choosing: Examples
    test: Examples


class Classifier(nn.Module):
    """A transformer and its classification head."""

    def __init__(self, encoder: Encoder, classes: int) -> None:
        super().__init__()
        self.transformer = deepcopy(_transformer(encoder)).requires_grad_(True)
        if encoder.backbone.packed:
            self.transformer.set_attn_implementation("sdpa")  # a copy reads padded pairs, with their segments
        self.tokenizer: PreTrainedTokenizerBase = deepcopy(encoder.tokens.tokenizer)  # truncation is set in place
        self.max_length = min(MAX_LENGTH, encoder.tokens.max_length)
        width = encoder.backbone.width
        dropout = nn.Dropout(DROPOUT)
        self.head = nn.Sequential(dropout, nn.Linear(width, width), nn.Tanh(), dropout, nn.Linear(width, classes))
        self.to(encoder.device)

    def forward(self, rows: Examples) -> Tensor:
        """Logits (n, classes)."""
        read = self._tokenize(rows)
        states = self.transformer(**read).last_hidden_state  # (n, L, d)
        mask = read["attention_mask"].unsqueeze(2)
        has_cls = self.tokenizer.cls_token is not None
        logits: Tensor = self.head(states[:, 0] if has_cls else (states * mask).sum(1) / mask.sum(1))
        return logits

    def _tokenize(self, rows: Examples) -> BatchEncoding:
        read = self.tokenizer(
            *map(list, rows.texts), truncation=True, max_length=self.max_length, padding=True, return_tensors="pt"
        )
        return read.to(next(self.head.parameters()).device)

    def predict(self, rows: Examples) -> Numbers:
        """The predicted and the gold class (n, 2) of every row, in order."""
        self.eval()
        order = sorted(range(len(rows)), key=lambda row: sum(len(side[row]) for side in rows.texts))
        predicted = np.empty(len(rows))
        with torch.inference_mode():
            for batch in _batches(order):
                predicted[batch] = self(rows.take(batch)).argmax(dim=1).cpu().numpy()
        return np.stack([predicted, np.asarray(rows.classes, np.float64)], axis=1)


def _transformer(encoder: Encoder) -> PreTrainedModel:
    model = encoder.backbone.model
    if not isinstance(model, PreTrainedModel):
        raise InputError(
            "fine-tuning", f"a {type(model).__name__} cannot be trained", "a transformers model", "choose another model"
        )
    return model.get_encoder() if model.config.is_encoder_decoder else model


def fine_tune(
    encoder: Encoder,
    parts: Parts,
    score: Callable[[Numbers], float],
    *,
    seed: int,
    show_progress: bool = False,
) -> Numbers:
    """Train for `SETTINGS.epochs` epochs, and answer the test rows after the best epoch by the rows that choose it.

    Returns the predicted and the gold class (n, 2) of every test row.
    """
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        classifier = Classifier(encoder, 1 + max(parts.train.classes))
        best, answers = -np.inf, np.empty((0, 2))
        for _ in _epochs(classifier, parts.train, show_progress):
            reached = score(classifier.predict(parts.choosing))
            if reached > best:
                best, answers = reached, classifier.predict(parts.test)
    return answers


def _epochs(classifier: Classifier, train: Examples, show_progress: bool) -> Iterator[int]:
    """Train, and yield after every epoch."""
    optimizer = build_optimizer(classifier, SETTINGS)
    epochs, per_epoch = int(SETTINGS.epochs or 1), -(-len(train) // SETTINGS.batch)
    with progress("fine-tuning", epochs * per_epoch, "steps", show_progress) as advance:
        for epoch in range(epochs):
            classifier.train()
            shuffled = torch.randperm(len(train)).tolist()
            for number, rows in enumerate(_batches(shuffled)):
                factor = rate("linear", epoch * per_epoch + number, epochs * per_epoch, SETTINGS.warmup)
                set_rate(optimizer, factor * SETTINGS.learning_rate)
                _step(classifier, optimizer, train.take(rows))
                advance(1)
            yield epoch


def _step(classifier: Classifier, optimizer: torch.optim.Optimizer, rows: Examples) -> None:
    logits = classifier(rows)
    F.cross_entropy(logits, torch.tensor(rows.classes, device=logits.device)).backward()
    gradient_norm(classifier.parameters(), SETTINGS.clip)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)


def _batches(rows: Sequence[int]) -> Iterator[Sequence[int]]:
    for start in range(0, len(rows), SETTINGS.batch):
        yield rows[start : start + SETTINGS.batch]


GLUE = Suite("glue", NAMES, load, ())
