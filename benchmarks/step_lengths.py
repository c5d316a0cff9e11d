"""A training step on texts of different lengths: without padding, as we train, against the same step padded.

    python benchmarks/step_lengths.py [--rounds 5] [--pairs 16] [--only TSDAE | --only bf16]

Both sides run the same texts of random tokens through a model of the embedded encoder's size, in turns: forward pass
with dropout, loss and backward pass. The padded side is the same code on the batch padded to its longest text, with
the attention of transformers ("sdpa"). Families that cannot run packed (here MPNet) run in groups of similar length, as
does the decoder of TSDAE. `bf16` is a step in bf16 against the same in fp32, both without padding. Times are of the
process, not of the clock, so that a busy machine disturbs less; use one thread (OMP_NUM_THREADS=1). Last, one long text
among short ones, compared with two steps: the short ones and the rest.
"""

import argparse
import statistics
import time
from collections.abc import Callable
from functools import partial

import numpy as np
import torch
from transformers import AutoModel, MPNetConfig

from sentloom import Encoder
from sentloom.data.batches import Batch
from sentloom.encoder.backbone import Backbone
from sentloom.encoder.pooling import Pooling
from sentloom.losses import info_nce
from sentloom.methods.tsdae import Tsdae, TsdaeOptions

WORDS = (1_000, 30_000)  # ids that are ordinary words
SHORT, LONG = 12, 256  # tokens
Step = Callable[[], None]


def faq(pairs: int) -> list[int]:
    """Questions of about 15 tokens, answers of 30 to 256."""
    draw = np.random.default_rng(0)
    return [*draw.integers(10, 21, pairs).tolist(), *draw.integers(30, 257, pairs).tolist()]


def texts_of(lengths: list[int]) -> list[list[int]]:
    draw = np.random.default_rng(1)
    return [[101, *draw.integers(*WORDS, length - 2).tolist(), 102] for length in lengths]


def bert(padded: bool) -> Encoder:
    encoder = Encoder.load("embedded")
    if padded:
        encoder.backbone.packed = False
        encoder.backbone.model.set_attn_implementation("sdpa")
    return in_one_batch(encoder, padded)


def mpnet(padded: bool) -> Encoder:
    embedded = Encoder.load("embedded")
    own = embedded.backbone.model.config
    names = ("hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size", "vocab_size")
    model = AutoModel.from_config(MPNetConfig(**{name: getattr(own, name) for name in names}))
    encoder = Encoder(Backbone(model), embedded.tokens, pooling=Pooling.parse("mean"))
    return in_one_batch(encoder, padded)


def in_one_batch(encoder: Encoder, padded: bool) -> Encoder:
    """Also without the groups of similar length."""
    if padded:
        encoder.backbone.shortest, encoder.tokens_per_pack = 0.0, 1_000_000
    return encoder.train()


def contrastive_step(encoder: Encoder, ids: list[list[int]], bf16: bool = False) -> Step:
    """InfoNCE between the first and the second half of the texts."""

    def step() -> None:
        encoder.zero_grad()
        with torch.autocast("cpu", torch.bfloat16, enabled=bf16):
            vectors = encoder(ids, raw=True)
        info_nce(*vectors.float().chunk(2), temperature=0.05).backward()

    return step


def tsdae_step(padded: bool, ids: list[list[int]]) -> Step:
    encoder = Encoder.load("embedded")
    method = Tsdae(encoder, TsdaeOptions()).train()
    encoder.tokenize = lambda texts: [ids[int(text)] for text in texts]
    rows = np.arange(len(ids))
    batch = Batch({"text": [str(row) for row in rows]}, rows, rows, (1, 0))

    def padded_loss() -> torch.Tensor:
        return method.reconstruction(ids, encoder(method.noisy(batch, ids), raw=True))

    def step() -> None:
        method.zero_grad()
        loss = padded_loss() if padded else method.summed_loss(batch)
        (loss / method.weight(batch)).backward()

    return step


def interleaved(steps: list[Step], rounds: int) -> list[list[float]]:
    """Seconds of each step in each round; the first round warms up and is not counted."""
    found = []
    for _ in range(rounds + 1):
        times = []
        for step in steps:
            start = time.process_time()
            step()
            times.append(time.process_time() - start)
        found.append(times)
    return [list(column) for column in zip(*found[1:], strict=True)]


def report(name: str, other: str, lengths: list[int], ours: list[float], others: list[float]) -> None:
    ratios = [theirs / mine for mine, theirs in zip(ours, others, strict=True)]
    mine, theirs = statistics.median(ours), statistics.median(others)
    spread = f"{min(ratios):.2f} to {max(ratios):.2f}"
    size = f"{len(lengths)} texts, {sum(lengths):,} tokens, {len(lengths) * max(lengths):,} padded"
    rate = f"{1e6 * mine / sum(lengths):.0f} us per token"
    print(f"{name} ({size}): {mine:.2f} s, {rate}; {other} {theirs:.2f} s")
    print(f"    median ratio {statistics.median(ratios):.2f}x ({spread})", flush=True)


def contrastive_steps(build: Callable[[bool], Encoder], ids: list[list[int]]) -> list[Step]:
    return [contrastive_step(build(padded), ids) for padded in (False, True)]


def precision_steps(ids: list[list[int]]) -> list[Step]:
    return [contrastive_step(bert(padded=False), ids, bf16) for bf16 in (True, False)]


def tsdae_steps(ids: list[list[int]]) -> list[Step]:
    return [tsdae_step(padded, ids) for padded in (False, True)]


def compare_apart(lengths: list[int], rounds: int) -> None:
    """All texts in one step, and the last two, of which one is long, in a step of their own."""
    parts = (lengths, lengths[:-2], lengths[-2:])
    steps = [contrastive_step(bert(padded=False), texts_of(some)) for some in parts]
    together, short, last = (statistics.median(times) for times in interleaved(steps, rounds))
    print(f"BERT, one long text: {together:.2f} s; the last two in a step of their own: {short:.2f} + {last:.2f} s")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--pairs", type=int, default=16)
    parser.add_argument("--only", choices=("BERT", "MPNet", "TSDAE", "bf16"))
    given = parser.parse_args()
    mixed, equal = faq(given.pairs), [32] * (2 * given.pairs)
    one_long = [SHORT] * (2 * given.pairs - 1) + [LONG]
    pairs = {"equal lengths": equal, "FAQ": mixed, "one long text": one_long}
    texts = {"equal lengths": equal, "FAQ answers": mixed[given.pairs :]}
    cases = {
        "BERT": (partial(contrastive_steps, bert), pairs),
        "MPNet": (partial(contrastive_steps, mpnet), pairs),
        "TSDAE": (tsdae_steps, texts),
        "bf16": (precision_steps, pairs),
    }
    print(f"{torch.get_num_threads()} threads, {given.rounds} rounds")
    for model in [given.only] if given.only else cases:
        steps, some = cases[model]
        for name, lengths in some.items():
            other = "fp32" if model == "bf16" else "padded"
            report(f"{model}, {name}", other, lengths, *interleaved(steps(texts_of(lengths)), given.rounds))
    if given.only in (None, "BERT"):
        compare_apart(one_long, given.rounds)


if __name__ == "__main__":
    main()
