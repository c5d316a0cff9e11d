"""Writing with a causal model against plain transformers `generate`, interleaved in one run.

    python benchmarks/writer_speed.py [DATA] [--writer smollm2] [--rounds 3] [--sources 32] [--batches 4,8,16,32]
        [--precisions fp32,bf16] [--backends transformers,ctranslate2,ctranslate2-int8] [--cpu-time]

For every source one question is sampled (top-p 0.9, at most 32 tokens), with the three shots of the prompt. The peer is
the plain way: the whole prompt of every source in padded batches in the order of the file, `generate(do_sample=True,
top_p=0.9)`, which also stops at a line break; first each batch size once, then the fastest of each precision against
every backend. CTranslate2 converts the model in fp32. Printed are texts per second, the median ratio over the rounds,
and the tokens per text, on which the time depends; then how far the precisions differ: the mean KL divergence of their
next-token distributions, over the texts that the first one wrote. Use `--cpu-time` on a busy machine, with
OMP_NUM_THREADS=1. DATA is a folder with qa/qa_pairs.en.tsv.gz, whose answers are the sources; without it they are
docstrings.
"""

import argparse
import csv
import gzip
import itertools
import statistics
import tempfile
import time
from pathlib import Path

import torch

from sentloom.data.corpus.docstrings import harvest
from sentloom.encoder.loading import quiet
from sentloom.writing.language_model import padded
from sentloom.writing.models import open_model
from sentloom.writing.sampling import Sampling
from sentloom.writing.text_to_text import BACKENDS, open_backend, writing_ids
from sentloom.writing.writer import SourceText, prompts_for

SAMPLING = Sampling(length=32)
DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16}
QUESTION = prompts_for(("query",), "English")["query"][0]


def documents(data, count):
    if data is None:
        return harvest(["scipy"]).texts("held-out").column("text").to_pylist()[:count]
    with gzip.open(Path(data) / "qa/qa_pairs.en.tsv.gz", "rt", encoding="utf-8", newline="") as file:
        rows = csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
        answers = dict.fromkeys(row["answer"] for row in rows if len(row["answer"].split()) > 20)
        return list(itertools.islice(answers, count))


class Plain:
    """What one writes first."""

    def __init__(self, model, batch):
        self.model, self.batch = model.eval(), batch

    def write(self, sources, kind, prompt):
        ids = writing_ids(self.model, sources, prompt)
        return [one for at in range(0, len(ids), self.batch) for one in self.written(ids[at : at + self.batch])]

    @torch.inference_mode()
    def written(self, ids):
        rows, mask = padded(ids, self.model, left=True)
        out = self.model.model.generate(
            rows,
            attention_mask=mask.long(),
            do_sample=True,
            top_p=SAMPLING.top_p,
            top_k=0,
            max_new_tokens=SAMPLING.length,
            eos_token_id=sorted(self.model.stops),
        )
        return [until_stop(row, self.model.stops) for row in out[:, rows.shape[1] :].tolist()]


def until_stop(ids, stops):
    return ids[: next((at + 1 for at, one in enumerate(ids) if one in stops), len(ids))]


def seconds_of(writer, sources, clock):
    start = clock()
    texts = writer.write(sources, "query", QUESTION)
    took = clock() - start
    return took, statistics.mean(len(one) if isinstance(one, list) else one.tokens_written for one in texts)


def interleaved(writers, sources, rounds, clock):
    """Seconds and tokens per text of each writer, per round."""
    took = {name: [] for name in writers}
    tokens = {name: [] for name in writers}
    for turn in range(rounds):
        for name in list(writers)[:: -1 if turn % 2 else 1]:
            seconds, length = seconds_of(writers[name], sources, clock)
            took[name].append(seconds)
            tokens[name].append(length)
    return took, tokens


def print_ratios(took, tokens, count):
    """Against the first writer."""
    reference = next(iter(took.values()))
    for name, seconds in took.items():
        ratios = [slow / fast for slow, fast in zip(reference, seconds, strict=True)]
        print(
            f"{name}: {statistics.median(ratios):.2f}x ({min(ratios):.2f} to {max(ratios):.2f}), "
            f"{count / statistics.median(seconds):.2f} texts/s of {statistics.mean(tokens[name]):.1f} tokens"
        )


@torch.inference_mode()
def divergence(model, other, ids, texts):
    """Mean KL divergence, in nats per token, of the other model's next-token distributions from the model's."""
    found = []
    for source, text in zip(ids, texts, strict=True):
        ours, theirs = (one.target_logits([source], [text]).double().log_softmax(dim=1) for one in (model, other))
        found += (ours.exp() * (ours - theirs)).sum(dim=1).tolist()
    return statistics.mean(found)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", nargs="?")
    parser.add_argument("--writer", default="smollm2")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--sources", type=int, default=32)
    parser.add_argument("--batches", default="4,8,16,32")
    parser.add_argument("--precisions", default="fp32,bf16")
    parser.add_argument("--backends", default=",".join(BACKENDS))
    parser.add_argument("--cpu-time", action="store_true")
    options = parser.parse_args()
    clock = time.process_time if options.cpu_time else time.perf_counter
    models = {name: open_model(options.writer).to(DTYPES[name]) for name in options.precisions.split(",")}
    model = next(iter(models.values()))
    sources = [SourceText(row, text) for row, text in enumerate(documents(options.data, options.sources))]
    read = statistics.mean(map(len, model.sentences([one.text for one in sources])))
    shared = len(model.opening(model.prompt_ids(QUESTION)))
    print(f"{len(sources)} sources of {read:.0f} tokens, of which at most {model.source_length} are read, and {shared}")
    print(f"tokens before each; {torch.get_num_threads()} threads", flush=True)
    with tempfile.TemporaryDirectory() as folder, quiet():
        writers = {}
        for name, one in models.items():
            plain = {
                int(size): seconds_of(Plain(one, int(size)), sources, clock)[0] for size in options.batches.split(",")
            }
            for size, took in plain.items():
                print(f"plain generate in {name}, batch {size}: {len(sources) / took:.2f} texts/s", flush=True)
            best = min(plain, key=plain.get)
            writers[f"plain generate in {name}, batch {best}"] = Plain(one, best)
        for backend in options.backends.split(","):
            for name, one in models.items() if backend == "transformers" else [("", model)]:
                writers[f"{backend} {name}".strip()] = open_backend(backend, one, SAMPLING, Path(folder))
        for writer in list(writers.values())[len(models) :]:
            writer.write(sources[:2], "query", QUESTION)  # warm
        print_ratios(*interleaved(writers, sources, options.rounds, clock), len(sources))
        ids = writing_ids(model, sources, QUESTION)
        texts = Plain(model, best).write(sources, "query", QUESTION)
        for name, one in list(models.items())[1:]:
            print(f"{name}: KL divergence of {divergence(model, one, ids, texts):.2g} nats per token")


if __name__ == "__main__":
    main()
