"""8-bit schemes for a CPU against our float32 encoder: mean cosine, least cosine, points lost and speed.

    python benchmarks/export_int8.py -o FOLDER [--model embedded] [--texts 400] [--rounds 5]

A scheme that is in FOLDER is not measured again, so a stopped run resumes. Speed is CPU time on one thread, interleaved
with the float32 encoder in torch, as a ratio to it: above 1 is faster. Texts are real sentences (see encode_speed.py).
"""

import argparse
import shutil
import statistics
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
import torch
from onnxruntime.quantization import (
    CalibrationDataReader,
    QuantFormat,
    QuantType,
    quantize_dynamic,
    quantize_static,
)
from onnxruntime.quantization.matmul_nbits_quantizer import MatMulNBitsQuantizer

from benchmarks.encode_speed import real_sentences
from sentloom import Encoder
from sentloom.encoder.formats.onnx import ONNX
from sentloom.encoder.formats.registry import target_named
from sentloom.encoder.golden import Golden, agreement, make_golden
from sentloom.encoder.saving import patch_json
from sentloom.encoder.settings import BATCHED, OURS
from sentloom.evaluation.task import Task
from sentloom.export.export import judging_tasks, mean_score
from sentloom.files import read_record, write_record

CALIBRATED = 64  # texts that a static scheme sees


class Sentences(CalibrationDataReader):
    """Texts one at a time, as onnxruntime wants them."""

    def __init__(self, encoder, texts):
        self.rows = iter(encoder.tokenize(texts))

    def get_next(self):
        ids = next(self.rows, None)
        if ids is None:
            return None
        row = np.array([ids], np.int64)
        return {"input_ids": row, "attention_mask": np.ones_like(row)}


def dynamic(encoder, texts, source, path, *, without=(), **options):
    quantize_dynamic(source, path, nodes_to_exclude=inner_products(source, without), **options)


def static(encoder, texts, source, path, *, without=(), **options):
    quantize_static(
        source,
        path,
        Sentences(encoder, texts[:CALIBRATED]),
        quant_format=QuantFormat.QDQ,
        op_types_to_quantize=["MatMul"],
        nodes_to_exclude=inner_products(source, without),
        **options,
    )


def blocks(encoder, texts, source, path, *, size):
    quantizer = MatMulNBitsQuantizer(onnx.load(source), bits=8, block_size=size, is_symmetric=True, accuracy_level=4)
    quantizer.process()
    onnx.save(quantizer.model.model, path)


def inner_products(source, which):
    """The names of a layer's two wide products: `up` to the inner width, `down` from it."""
    model = onnx.load(source)
    shapes = {one.name: tuple(one.dims) for one in model.graph.initializer}
    sides = {"up": lambda a, b: b > a, "down": lambda a, b: a > b}
    return [
        node.name
        for node in model.graph.node
        if node.op_type in ("MatMul", "Gemm")
        and len(shape := shapes.get(node.input[1], ())) == 2
        and any(sides[side](*shape) for side in which)
    ]


CHANNELS = {"weight_type": QuantType.QInt8, "per_channel": True}
REDUCED = {**CHANNELS, "reduce_range": True}  # 7 bits: pairs of products then fit 16 bits on CPUs without VNNI
UNSIGNED = {"weight_type": QuantType.QUInt8}
DOWN, BOTH = {"without": ["down"]}, {"without": ["up", "down"]}
SCHEMES = {  # of ONNX files; True: a vector is the same in every batch
    "dynamic": (dynamic, False, {"weight_type": QuantType.QInt8}),
    "dynamic, per channel": (dynamic, False, CHANNELS),
    "dynamic, per channel, reduced range": (dynamic, False, REDUCED),
    "dynamic, unsigned weights": (dynamic, False, UNSIGNED),
    "dynamic, unsigned, per channel": (dynamic, False, UNSIGNED | {"per_channel": True}),
    "dynamic, unsigned, without down": (dynamic, False, UNSIGNED | DOWN),
    "dynamic, reduced range, without down": (dynamic, False, REDUCED | DOWN),
    "dynamic, reduced range, without up and down": (dynamic, False, REDUCED | BOTH),
    "static, min-max, reduced range": (static, True, REDUCED),
    "static, min-max, reduced range, without down": (static, True, REDUCED | DOWN),
    "blocks of 32": (blocks, True, {"size": 32}),
    "blocks of 128": (blocks, True, {"size": 128}),
}
EXPORTED = ("onnx", "ctranslate2", "ctranslate2-int8")


def build(name, encoder, texts, folder):
    """Write a model under a scheme, unproven."""
    shutil.rmtree(folder, ignore_errors=True)
    if name in EXPORTED:
        folder.mkdir(parents=True)
        target_named(name).write(encoder, folder)
        return
    scheme, batched, options = SCHEMES[name]
    shutil.copytree(folder.parent / "onnx", folder)
    scheme(encoder, texts, folder.parent / "onnx" / ONNX, folder / ONNX, **options)
    patch_json(folder / OURS, **{BATCHED: batched})


def cpu_ratios(ours, other, texts, rounds):
    """The CPU time of the float32 encoder over that of another, round by round."""
    ratios = []
    for turn in range(rounds + 1):
        took = {}
        for one in (ours, other) if turn % 2 else (other, ours):
            start = time.process_time()
            one.encode(texts)
            took[one] = time.process_time() - start
        ratios.append(took[ours] / took[other])
    return ratios[1:]


@dataclass(frozen=True)
class Reference:
    """The float32 encoder, what it is compared on, and what it gave."""

    encoder: Encoder
    texts: list[str]
    tasks: list[Task]
    score: float
    vectors: np.ndarray
    golden: Golden


def measure(name, ours, folder, rounds):
    build(name, ours.encoder, ours.texts, folder)
    loaded = Encoder.load(folder, device="cpu")
    close = agreement(ours.texts, loaded.encode(ours.texts), ours.vectors)
    ratios = cpu_ratios(ours.encoder, loaded, ours.texts, rounds)
    return {
        "mean": close.mean,
        "least": close.least,
        "golden": ours.golden.check(loaded).mean,
        "lost": ours.score - mean_score(loaded, ours.tasks),
        "speed": statistics.median(ratios),
        "range": [min(ratios), max(ratios)],
        "bytes": sum(path.stat().st_size for path in folder.rglob("*") if path.suffix in (".onnx", ".bin")),
    }


def line(name, one):
    low, high = one["range"]
    return (
        f"| {name} | {one['mean']:.4f} | {one['least']:.4f} | {one['golden']:.4f} | {one['lost']:+.2f} "
        f"| {one['speed']:.2f} ({low:.2f} to {high:.2f}) | {one['bytes'] / 1e6:.0f} MB |"
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", type=Path, required=True)
    parser.add_argument("--model", default="embedded")
    parser.add_argument("--texts", type=int, default=300)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    torch.set_num_threads(1)
    encoder = Encoder.load(options.model, device="cpu")
    origin, texts = real_sentences(options.texts)
    tasks = judging_tasks(encoder)
    ours = Reference(encoder, texts, tasks, mean_score(encoder, tasks), encoder.encode(texts), make_golden(encoder))
    print(f"{len(texts)} texts of {origin}, points on {', '.join(task.name for task in tasks)}", flush=True)
    print("| scheme | mean cosine | least | mean, golden | points lost | speed | size |\n" + "|---" * 7 + "|")
    for name in (*EXPORTED, *SCHEMES):
        place = options.output / name.replace(", ", "-").replace(" ", "-")
        record = place.with_name(f"{place.name}.json")
        if not record.is_file():
            write_record(record, measure(name, ours, place, options.rounds))
        print(line(name, read_record(record, "delete it")), flush=True)


if __name__ == "__main__":
    main()
