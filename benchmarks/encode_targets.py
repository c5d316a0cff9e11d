"""Every form that an encoder can be exported to against sentence-transformers, interleaved in one run, on a CPU.

    python benchmarks/encode_targets.py [-o FOLDER] [--model embedded] [--rounds 7] [--sentences 1500]

Forms that are in FOLDER are not exported again. `torch` is our float32 encoder; the others are loaded with
`Encoder.load`, so all of them share our tokenisation, batching and workers. openvino runs the same ONNX file, where it
is installed. Texts are real short sentences and mixed lengths (see encode_speed.py). Prints for each form the median
ratio of its speed to that of sentence-transformers in the same round, texts per second, and the cosine with torch's
vectors.
"""

import argparse
import statistics
import tempfile
import threading
from pathlib import Path

import numpy as np
import torch
from sentence_transformers import SentenceTransformer

from benchmarks.encode_speed import mixed_lengths, real_sentences, seconds
from sentloom import Encoder
from sentloom.encoder.formats.format import ReadOnlyBackbone
from sentloom.encoder.formats.onnx import ONNX
from sentloom.encoder.formats.registry import tried_names
from sentloom.encoder.golden import agreement
from sentloom.encoder.locate import locate
from sentloom.errors import SentloomError
from sentloom.files import sha256

FORMS = tried_names()
PEER = "sentence-transformers"


class OpenVinoBackbone(ReadOnlyBackbone):
    """An ONNX file run by OpenVINO, one thread per pack as the others."""

    def __init__(self, core, folder, config):
        super().__init__(config, str(folder), sha256(folder / ONNX), batched=True)
        workers = torch.get_num_threads()  # a stream for each, of one thread; by default bf16 where a CPU has it
        settings = {"NUM_STREAMS": workers, "INFERENCE_NUM_THREADS": workers, "INFERENCE_PRECISION_HINT": "f32"}
        self.compiled = core.compile_model(str(folder / ONNX), "CPU", settings)
        self.own = threading.local()  # a request runs one pack at a time

    def run(self, ids, mask):
        if not hasattr(self.own, "request"):
            self.own.request = self.compiled.create_infer_request()
        found = self.own.request.infer({"input_ids": ids.numpy(), "attention_mask": mask.numpy().astype(np.int64)})
        return torch.from_numpy(np.array(found[0]))


def with_openvino(folder):
    """The exported folder, run by OpenVINO; None if it is not installed."""
    try:
        from openvino import Core
    except ImportError:
        print("openvino is left out: pip install openvino", flush=True)
        return None
    encoder = Encoder.load(folder, device="cpu")
    encoder.backbone = OpenVinoBackbone(Core(), Path(folder), encoder.backbone.model.config)
    return encoder.eval()


def exported(encoder, folder):
    """Every form that is proven, loaded; a line for each that is not."""
    forms = {}
    for name in FORMS:
        try:
            if not (folder / name).exists():
                encoder.export(folder / name, to=name, accept_loss=0.5)
            forms[name] = Encoder.load(folder / name, device="cpu")
        except SentloomError as error:
            print(f"{name} is left out: {error.problem}", flush=True)
    return forms


def compare(name, texts, rounds, forms, peer):
    jobs = {form: lambda one=one: one.encode(texts) for form, one in forms.items()}
    jobs[PEER] = lambda: peer.encode(texts, batch_size=32, show_progress_bar=False)
    vectors = {job: run() for job, run in jobs.items()}  # not counted
    took = {job: [] for job in jobs}
    for turn in range(rounds):
        order = list(jobs) if turn % 2 else list(reversed(jobs))
        for job in order[turn % len(jobs) :] + order[: turn % len(jobs)]:
            took[job].append(seconds(jobs[job]))
    print(f"\n{name}: {len(texts)} texts, {rounds} rounds\n")
    print("| form | times sentence-transformers | rounds | texts/s | mean cosine | least |\n" + "|---" * 6 + "|")
    for job in jobs:
        ratios = [slow / fast for slow, fast in zip(took[PEER], took[job], strict=True)]
        close = agreement(texts, vectors[job], vectors["torch"])
        rate = len(texts) / statistics.median(took[job])
        print(
            f"| {job} | {statistics.median(ratios):.2f} | {min(ratios):.2f} to {max(ratios):.2f} | {rate:.0f} "
            f"| {close.mean:.5f} | {close.least:.5f} |",
            flush=True,
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", type=Path)
    parser.add_argument("--model", default="embedded")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--sentences", type=int, default=1500)
    options = parser.parse_args()
    encoder = Encoder.load(options.model, device="cpu")
    peer = SentenceTransformer(str(locate(options.model)), device="cpu")
    with tempfile.TemporaryDirectory() as scratch:
        folder = options.output or Path(scratch)
        forms = {"torch": encoder, **exported(encoder, folder)}
        if "onnx" in forms and (other := with_openvino(folder / "onnx")):
            forms["openvino"] = other
        origin, short = real_sentences(options.sentences)
        compare(f"short ({origin})", short, options.rounds, forms, peer)
        compare("mixed (5-200 words)", mixed_lengths(short, options.sentences // 6), options.rounds, forms, peer)


if __name__ == "__main__":
    main()
