"""Writing with a causal model against plain transformers `generate`, interleaved in one run.

    python benchmarks/writer_speed.py [DATA] [--writer embedded] [--rounds 3] [--sources 32] [--batches 4,8,16,32]
        [--cpu-time]

For every source one question is sampled (top-p 0.9, at most 32 tokens), with the three shots of the prompt. The peer is
the plain way: the whole prompt of every source in padded batches in the order of the file, `generate(do_sample=True,
top_p=0.9)`, which also stops at a line break; first each batch size once, then the fastest against every backend.
Printed are texts per second, the median ratio over the rounds, and the tokens per text, on which the time depends.
Use `--cpu-time` on a busy machine, with OMP_NUM_THREADS=1. DATA is a folder with qa/qa_pairs.en.tsv.gz, whose answers
are the sources; without it they are docstrings.
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

from sentloom.corpus.docstrings import harvest
from sentloom.encoder.loading import quiet
from sentloom.writing.generator import BACKENDS, open_backend, writing_ids
from sentloom.writing.language_model import padded
from sentloom.writing.models import open_model
from sentloom.writing.prompts import prompts_for
from sentloom.writing.sampling import Sampling
from sentloom.writing.writer import SourceText

SAMPLING = Sampling(length=32)
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


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", nargs="?")
    parser.add_argument("--writer", default="embedded")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--sources", type=int, default=32)
    parser.add_argument("--batches", default="4,8,16,32")
    parser.add_argument("--backends", default=",".join(BACKENDS))
    parser.add_argument("--cpu-time", action="store_true")
    options = parser.parse_args()
    clock = time.process_time if options.cpu_time else time.perf_counter
    model = open_model(options.writer)
    sources = [SourceText(row, text) for row, text in enumerate(documents(options.data, options.sources))]
    read = statistics.mean(map(len, model.sentences([one.text for one in sources])))
    shared = len(model.opening(model.prompt_ids(QUESTION)))
    print(f"{len(sources)} sources of {read:.0f} tokens, of which at most {model.source_length} are read, and {shared}")
    print(f"tokens before each; {torch.get_num_threads()} threads", flush=True)
    with tempfile.TemporaryDirectory() as folder, quiet():
        plain = {
            int(size): seconds_of(Plain(model, int(size)), sources, clock)[0] for size in options.batches.split(",")
        }
        for size, took in plain.items():
            print(f"plain generate, batch {size}: {len(sources) / took:.2f} texts/s", flush=True)
        best = min(plain, key=plain.get)
        writers = {f"plain generate, batch {best}": Plain(model, best)}
        writers |= {name: open_backend(name, model, SAMPLING, Path(folder)) for name in options.backends.split(",")}
        for writer in list(writers.values())[1:]:
            writer.write(sources[:2], "query", QUESTION)  # warm
        took = {name: [] for name in writers}
        tokens = {name: [] for name in writers}
        for turn in range(options.rounds):
            for name in list(writers)[:: -1 if turn % 2 else 1]:
                seconds, length = seconds_of(writers[name], sources, clock)
                took[name].append(seconds)
                tokens[name].append(length)
    reference = next(iter(took.values()))
    for name, seconds in took.items():
        ratios = [slow / fast for slow, fast in zip(reference, seconds, strict=True)]
        print(
            f"{name}: {statistics.median(ratios):.2f}x ({min(ratios):.2f} to {max(ratios):.2f}), "
            f"{len(sources) / statistics.median(seconds):.2f} texts/s of {statistics.mean(tokens[name]):.1f} tokens"
        )


if __name__ == "__main__":
    main()
