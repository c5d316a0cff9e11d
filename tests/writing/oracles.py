"""Slow and plain: SplitMix64 in Python's own numbers, decoding one text at a time without a cache, int8 products."""

import copy
import functools
import math

import torch
from transformers import TemperatureLogitsWarper, TopKLogitsWarper, TopPLogitsWarper

from sentloom.lab.synthesizer import instances

WORD = (1 << 64) - 1
GOLDEN = 0x9E3779B97F4A7C15


def mixed(z):
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & WORD
    z = (z ^ z >> 27) * 0x94D049BB133111EB & WORD
    return z ^ z >> 31


def noise(numbers, word):
    """Gumbel noise of a word under a key of numbers: seed, source, kind, candidate, position."""
    key = 0
    for number in numbers:
        key = mixed((key ^ number) + GOLDEN & WORD)
    uniform = ((mixed(key + (word + 1) * GOLDEN & WORD) >> 12) + 0.5) / 2**52
    return -math.log(-math.log(uniform))


def limited(logits, sampling):
    """transformers' own limits: minus infinity for what may not be drawn."""
    limits = [TemperatureLogitsWarper(sampling.heat)]
    limits += [TopKLogitsWarper(sampling.top_k)] if sampling.top_k else []
    limits += [TopPLogitsWarper(sampling.top_p)] if sampling.top_p < 1 else []
    for limit in limits:
        logits = limit(None, logits)
    return logits


def read_to_write(model, text, kind):
    """What the model reads to write a sentence, for one text alone."""
    return model.framed(model.prompt_ids(model.wording.prompt(kind)), model.bare([text]))


def read_to_judge(model, premise, hypothesis):
    """What the model reads to judge one pair."""
    return model.framed(model.judge_ids, model.bare([premise, hypothesis]))


@torch.no_grad()
def written(model, request, sampling):
    """One text, the whole row again for every word."""
    ids = torch.tensor([read_to_write(model, request.text, request.kind)])
    out = [model.start]
    name = (sampling.seed, request.source, {"entailment": 0, "contradiction": 1}[request.kind], request.candidate)
    while len(out) <= sampling.length and out[-1] != model.end:
        logits = model.model(input_ids=ids, decoder_input_ids=torch.tensor([out]), use_cache=False).logits[:, -1]
        if sampling.greedy:
            scores = logits[0].tolist()
        else:
            kept = limited(logits, sampling)[0].tolist()
            scores = [kept[word] + noise((*name, len(out) - 1), word) for word in range(len(kept))]
        out.append(max(range(len(scores)), key=scores.__getitem__))
    return model.text_of(out)


@torch.no_grad()
def in_int8(model):
    """A copy whose layers multiply as 8-bit kernels without VNNI do: the sum of two products stops at 16 bits.

    Weights are rounded to 255 steps a row, inputs to 255 steps a token. CPUs with wider sums only have the rounding.
    """
    model = copy.deepcopy(model)
    for part in model.model.modules():
        if isinstance(part, torch.nn.Embedding):
            steps, step = in_steps(part.weight)
            part.weight = torch.nn.Parameter(steps * step)
        elif isinstance(part, torch.nn.Linear):
            part.forward = functools.partial(int8_product, *in_steps(part.weight.detach()))
    return model


def in_steps(values):
    """Whole numbers from -127 to 127 and the size of a step, for each row."""
    step = values.abs().amax(-1, keepdim=True).clamp(min=1e-30) / 127
    return torch.round(values / step), step


def int8_product(weights, step, inputs):
    inputs, input_step = in_steps(inputs)
    products = (inputs[..., None, :] + 128) * weights  # inputs without sign, as these kernels want them
    sums = products.unflatten(-1, (-1, 2)).sum(-1).clamp(-(2**15), 2**15 - 1).sum(-1)
    return (sums - 128 * weights.sum(-1)) * input_step * step[:, 0]


def slow_losses(model, batch):
    """(summed cross-entropy, tokens, first logits) of every instance, one at a time, in float64."""
    big = model.model.double().eval()
    losses = []
    for instance in instances(model, batch):
        start = torch.tensor([[model.start, *instance.target[:-1]]])
        with torch.no_grad():
            logits = big(input_ids=torch.tensor([instance.source]), decoder_input_ids=start).logits[0]
        chances = logits.log_softmax(dim=-1)
        losses.append(
            (-sum(float(chances[at, token]) for at, token in enumerate(instance.target)), instance, logits[0])
        )
    model.model.float()
    return losses
