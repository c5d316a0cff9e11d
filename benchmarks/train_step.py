"""One contrastive step against the sentence-transformers trainer, interleaved on identical batches.

    python benchmarks/train_step.py [--steps 12] [--batch 64]

The trainer runs MultipleNegativesRankingLoss on the embedded encoder as it comes (dropout on, AdamW, clipping); after
each of its steps we do ours on the same batch, from texts to moved weights, data loading included on both sides.
Printed: the median ratio of times, and, with dropout off, the greatest relative difference of a gradient.
"""

import argparse
import statistics
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
from accelerate import Accelerator
from datasets import Dataset as HubDataset
from sentence_transformers import SentenceTransformer, SentenceTransformerTrainer, SentenceTransformerTrainingArguments
from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss
from torch.utils.data import BatchSampler, SequentialSampler
from transformers import TrainerCallback

from sentloom import Encoder, read
from sentloom.data.batches import Batch
from sentloom.data.corpus.opening import open_data
from sentloom.encoder.locate import embedded_folder
from sentloom.losses import info_nce
from sentloom.methods import Method, Options
from sentloom.training import Settings
from sentloom.training.gradients import add_gradients
from sentloom.training.optimizers import build_optimizer, gradient_norm, learning

STS = Path(__file__).parents[2] / "shared/data/sts/STSB.train.tsv"
SETTINGS = Settings(steps=1, learning_rate=5e-5, clip=1.0)


class Pairs(Method):
    """The same loss in our form: InfoNCE from anchor to positive, temperature 1/20."""

    NAME = "pairs"

    def embed(self, batch):
        ids = [*self.encoder.tokenize(batch.first), *self.encoder.tokenize(batch.second)]
        anchor, positive = self.encoder(ids).chunk(2)
        return anchor, positive

    def loss(self, embeddings, batch):
        return info_nce(*embeddings, temperature=1 / 20)


def real_pairs(number):
    """STS-B's pairs in random order, or names and summaries of docstrings where that data is absent."""
    data = read(STS) if STS.is_file() else open_data("embedded/pairs:numpy,pandas,torch")
    rows = np.random.default_rng(0).permutation(len(data))[:number]
    columns = data.take(rows)
    names = ("sentence1", "sentence2") if STS.is_file() else ("anchor", "positive")
    return "STS-B train" if STS.is_file() else "docstrings", *(columns[name] for name in names)


class Ours:
    """Our side, one step at a time."""

    def __init__(self):
        self.method = Pairs(Encoder.load("embedded"), Options()).train()
        self.accelerator, self.optimizer = Accelerator(cpu=True), build_optimizer(self.method, SETTINGS)

    def gradients(self, anchors, positives):
        self.optimizer.zero_grad()
        rows = np.arange(len(anchors))
        batch = Batch({"anchor": anchors, "positive": positives}, rows, rows, (1, 0))
        return add_gradients(self.method, batch, self.accelerator)

    def step(self, anchors, positives):
        self.gradients(anchors, positives)
        gradient_norm(learning(self.method).values(), SETTINGS.clip)
        self.optimizer.step()


class InOrder(SentenceTransformerTrainer):
    """The trainer, taking rows as they stand, so that both sides know the batch."""

    def get_batch_sampler(self, dataset, batch_size, drop_last, **_):
        return BatchSampler(SequentialSampler(dataset), batch_size, drop_last)


class Interleave(TrainerCallback):
    """Times the trainer's step from the end of ours, then ours."""

    def __init__(self, ours, batches):
        self.ours, self.batches, self.times = ours, batches, []

    def on_train_begin(self, *_, **__):
        self.start = time.perf_counter()

    def on_step_end(self, args, state, control, **_):
        theirs = time.perf_counter() - self.start
        start = time.perf_counter()
        self.ours.step(*self.batches[state.global_step - 1])
        self.times.append((theirs, time.perf_counter() - start))
        self.start = time.perf_counter()


def greatest_difference(ours, anchors, positives):
    """Of gradients with dropout off, over the norm of the whole gradient."""
    model = SentenceTransformer(str(embedded_folder()), device="cpu").eval()
    loss = MultipleNegativesRankingLoss(model)
    features = [model.preprocess(texts) for texts in (anchors, positives)]
    loss(features, torch.arange(len(anchors))).backward()
    theirs = {name.split("auto_model.")[-1].split("model.")[-1]: p.grad for name, p in model.named_parameters()}
    ours.method.eval()
    ours.gradients(anchors, positives)
    mine = {name.removeprefix("encoder.backbone.model."): p.grad for name, p in learning(ours.method).items()}
    found = {name: grad for name, grad in mine.items() if grad is not None}
    norm = torch.stack([grad.norm() for grad in found.values()]).norm()
    return max(float((grad - theirs[name]).norm() / norm) for name, grad in found.items())


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--batch", type=int, default=64)
    given = parser.parse_args()
    origin, anchors, positives = real_pairs(given.steps * given.batch)
    starts = range(0, len(anchors), given.batch)
    batches = [(anchors[at : at + given.batch], positives[at : at + given.batch]) for at in starts]
    difference = greatest_difference(Ours(), *batches[0])
    side_by_side = Interleave(Ours(), batches)
    with tempfile.TemporaryDirectory() as folder:
        arguments = SentenceTransformerTrainingArguments(
            output_dir=folder,
            per_device_train_batch_size=given.batch,
            max_steps=given.steps,
            save_strategy="no",
            report_to="none",
            disable_tqdm=True,
            use_cpu=True,
        )
        model = SentenceTransformer(str(embedded_folder()), device="cpu")
        pairs = HubDataset.from_dict({"anchor": anchors, "positive": positives})
        loss = MultipleNegativesRankingLoss(model)
        InOrder(model=model, args=arguments, train_dataset=pairs, loss=loss, callbacks=[side_by_side]).train()
    times = side_by_side.times[1:]  # the first warms up
    ratios = sorted(theirs / mine for theirs, mine in times)
    theirs, mine = (statistics.median(column) for column in zip(*times, strict=True))
    print(f"{origin}, batch {given.batch}, {len(times)} steps, {torch.get_num_threads()} threads")
    print(f"sentence-transformers {theirs:.3f} s a step, sentloom {mine:.3f} s")
    print(f"median ratio {statistics.median(ratios):.2f}x (from {ratios[0]:.2f} to {ratios[-1]:.2f})")
    print(f"gradients, dropout off: relative difference {difference:.1e}")


if __name__ == "__main__":
    main()
