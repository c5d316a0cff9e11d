"""Slow and plain: SplitMix64 in Python's own numbers, and decoding one text at a time without a cache."""

import math

import torch
from transformers import TemperatureLogitsWarper, TopKLogitsWarper, TopPLogitsWarper

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
    limits = [TemperatureLogitsWarper(sampling.temperature)]
    limits += [TopKLogitsWarper(sampling.top_k)] if sampling.top_k else []
    limits += [TopPLogitsWarper(sampling.top_p)] if sampling.top_p < 1 else []
    for limit in limits:
        logits = limit(None, logits)
    return logits


@torch.no_grad()
def written(model, request, sampling):
    """One text, the whole row again for every word."""
    ids = torch.tensor([model.writing_ids(request.text, request.kind)])
    out = [model.start]
    name = (sampling.seed, request.source, {"entailment": 0, "contradiction": 1}[request.kind], request.candidate)
    while len(out) <= sampling.max_tokens and out[-1] != model.end:
        logits = model.model(input_ids=ids, decoder_input_ids=torch.tensor([out]), use_cache=False).logits[:, -1]
        if sampling.greedy:
            scores = logits[0].tolist()
        else:
            kept = limited(logits, sampling)[0].tolist()
            scores = [kept[word] + noise((*name, len(out) - 1), word) for word in range(len(kept))]
        out.append(max(range(len(scores)), key=scores.__getitem__))
    return model.text_of(out)
