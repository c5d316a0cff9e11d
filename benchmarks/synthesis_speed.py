"""Writing and judging against plain transformers `generate`, interleaved in one run, all cores.

    python benchmarks/synthesis_speed.py [--writer FOLDER] [--rounds 5] [--sources 128]

For every source an entailment and a contradiction are drawn (top-p 0.9) and judged. The peer is the plain way: padded
batches of 64 in the order of the file, `generate(do_sample=True, top_p=0.9)`, and one forward pass for the verdicts.
Printed are, for every backend, written sentences a second and the median ratio over the rounds; the words of a text, on
which the time depends; and for the verdicts on the same texts the greatest difference from transformers' and the share
of equal decisions. Without a synthesizer a T5 of random weights stands for one: 4 + 4 layers of 256; its texts do
not end by themselves, so they are cut at 24 tokens.
"""

import argparse
import statistics
import tempfile
import time
from pathlib import Path

import numpy as np
import torch

from sentloom import read
from sentloom.data.corpus.docstrings import harvest
from sentloom.encoder.loading import quiet
from sentloom.lab.init_model import Size, build_model
from sentloom.writing.judges import judging_ids
from sentloom.writing.language_model import padded
from sentloom.writing.sampling import Sampling
from sentloom.writing.text_to_text import BACKENDS, TextToText, open_backend, writing_ids
from sentloom.writing.writer import NLI_KINDS, SourceText, Wording, Written

STS = Path(__file__).parents[2] / "shared/data/sts"
BATCH, THRESHOLD = 64, 0.9
PLAIN = "plain generate"


def sentences():
    """Distinct STS sentences, or docstring sentences where that data is absent, in a fixed random order."""
    if STS.is_dir():
        sets = [read(STS / f"STS{year}.tsv") for year in (12, 13, 14, 15)]
        texts = {text for data in sets for _, _, text in data.sentences()}
    else:
        texts = set(harvest(["scipy"]).texts("held-out").column("text").to_pylist())
    return np.random.default_rng(0).permutation(sorted(texts)).tolist()


def random_model(folder, texts):
    words = Wording()
    prompts = [*words.entailment, *words.contradiction, *words.judge, words.true, words.false]
    build_model(folder, "t5", [*texts[:3000], *prompts * 20], size=Size(vocabulary=8000, layers=4, width=256))
    return TextToText.load(folder)


class Plain:
    """What one writes first: batches in the order of the file, padded to their longest."""

    def __init__(self, model, sampling):
        self.model, self.sampling = model.eval(), sampling

    def write(self, sources, kind, prompt):
        ids = writing_ids(self.model, sources, prompt)
        return [Written(text) for at in range(0, len(ids), BATCH) for text in self._written(ids[at : at + BATCH])]

    def judge(self, pairs):
        return np.concatenate([self._judged(pairs[at : at + BATCH]) for at in range(0, len(pairs), BATCH)])

    @torch.inference_mode()
    def _written(self, rows):
        ids, mask = padded(rows, self.model)
        limits = {"top_p": self.sampling.top_p, "top_k": self.sampling.top_k, "temperature": self.sampling.temperature}
        out = self.model.model.generate(
            ids, attention_mask=mask, do_sample=True, max_new_tokens=self.sampling.length, **limits
        )
        return [self.model.text_of(row) for row in out.tolist()]

    @torch.inference_mode()
    def _judged(self, pairs):
        ids, mask = padded(judging_ids(self.model, pairs), self.model)
        start = ids.new_full((len(ids), 1), self.model.start)
        logits = self.model.model(input_ids=ids, attention_mask=mask, decoder_input_ids=start).logits[:, 0]
        return logits[:, list(self.model.verdict_ids)].softmax(dim=1)[:, 0].numpy()


def written_and_judged(backend, sources, wording):
    """All entailments, then all contradictions."""
    start = time.perf_counter()
    texts = [one.text for kind in NLI_KINDS for one in backend.write(sources, kind, wording.prompt(kind))]
    middle = time.perf_counter()
    backend.judge([(one.text, text) for one, text in zip(sources * 2, texts, strict=True)])
    return texts, middle - start, time.perf_counter() - middle


def compare(backends, sources, wording, rounds):
    took = {name: [] for name in backends}
    texts = {name: written_and_judged(backend, sources[:BATCH], wording)[0] for name, backend in backends.items()}
    for turn in range(rounds):
        for name in sorted(backends, reverse=turn % 2 == 1):
            texts[name], *seconds = written_and_judged(backends[name], sources, wording)
            took[name].append(seconds)
    plain = [sum(seconds) for seconds in took[PLAIN]]
    for name, seconds in took.items():
        ratios = [slow / sum(fast) for slow, fast in zip(plain, seconds, strict=True)]
        writing, judging = (statistics.median(column) for column in zip(*seconds, strict=True))
        words = statistics.mean(len(text.split()) for text in texts[name])
        print(
            f"{name}: {statistics.median(ratios):.2f}x ({min(ratios):.2f} to {max(ratios):.2f}), "
            f"{2 * len(sources) / (writing + judging):.0f} sentences/s, writing {writing:.2f} s of "
            f"{words:.1f} words a text, judging {judging:.2f} s"
        )
    return texts


def agreement(backends, sources, texts):
    """How far backends that judge the same texts keep the same ones."""
    pairs = [(one.text, text) for one, text in zip(sources * 2, texts, strict=True)]
    entailed = np.arange(len(pairs)) < len(sources)
    scores = {}
    for name, backend in backends.items():
        true = backend.judge(pairs)
        scores[name] = np.where(entailed, true, 1 - true)
    ours = scores["transformers"]
    print(f"judged alike: {len(pairs)} texts, {np.mean(ours >= THRESHOLD):.1%} kept at {THRESHOLD} by transformers")
    for name, others in scores.items():
        equal = [np.mean((ours >= threshold) == (others >= threshold)) for threshold in (THRESHOLD, 0.5)]
        off = np.abs(ours - others).max()
        print(f"  {name}: equal at {THRESHOLD} {equal[0]:.2%}, at 0.5 {equal[1]:.2%}, greatest difference {off:.1e}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--writer")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--sources", type=int, default=128)
    options = parser.parse_args()
    texts = sentences()
    sources = [SourceText(row, text) for row, text in enumerate(texts[: options.sources])]
    sampling = Sampling(length=64 if options.writer else 24)
    with tempfile.TemporaryDirectory() as folder, quiet():
        given = options.writer
        model = TextToText.load(given) if given else random_model(Path(folder) / "random", texts)
        backends = {name: open_backend(name, model, sampling, Path(folder)) for name in BACKENDS}
        written = compare({PLAIN: Plain(model, sampling)} | backends, sources, model.wording, options.rounds)
        agreement(backends, sources, written["transformers"])


if __name__ == "__main__":
    main()
