"""Loads model folders whose paths come on standard input, each in a child of its own, and prints a JSON line for each.

A child may use so much memory and so much time of the CPU; one that hangs, crashes or raises anything but a
SentloomError is reported as broken.
"""

import json
import os
import resource
import select
import signal
import sys
import traceback
from collections.abc import Callable

import numpy as np
import torch

from sentloom.encoder import Encoder
from sentloom.errors import SentloomError
from sentloom.writing.judges import judge
from sentloom.writing.text_to_text import TextToText

TEXTS = ["A man is playing a guitar.", "", "no [SEP] </s> <unk> \N{SNOWMAN}", "dogs " * 300]
CPU_SECONDS, WALL_SECONDS, BYTES = 30, 300, 4 << 30  # a wall clock only ends what sleeps for ever


def vectors_of(folder: str) -> dict[str, object]:
    encoder = Encoder.load(folder)
    vectors = encoder.encode(TEXTS)
    sane = vectors.shape == (len(TEXTS), encoder.dimension) and np.isfinite(vectors).all() and vectors.std() > 0
    return {"loaded": vectors[0, :8].tolist()} if sane else {"broken": f"vectors {vectors}"}


def synthesizer_of(folder: str) -> dict[str, object]:
    model = TextToText.load(folder).eval()
    chances = judge(model, [("A man.", "A dog.")])
    return {"loaded": chances.tolist()} if np.isfinite(chances).all() else {"broken": f"chances {chances}"}


def attempt(load: Callable[[str], dict[str, object]], folder: str) -> dict[str, object]:
    try:
        return load(folder)
    except SentloomError as error:
        return {"refused": str(error), "kind": type(error).__name__}
    except BaseException as error:
        return {"broken": f"{type(error).__name__}: {error} {traceback.format_exc()[-600:]}"}


def in_child(load: Callable[[str], dict[str, object]], folder: str) -> dict[str, object]:
    reading, writing = os.pipe()
    if (child := os.fork()) == 0:
        resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))
        resource.setrlimit(resource.RLIMIT_AS, (BYTES, BYTES))
        os.write(writing, json.dumps(attempt(load, folder)).encode())
        os._exit(0)
    os.close(writing)
    if not select.select([reading], [], [], WALL_SECONDS)[0]:
        os.kill(child, signal.SIGKILL)
    with os.fdopen(reading, "rb") as pipe:
        answer = pipe.read()
    _, status = os.waitpid(child, 0)
    return json.loads(answer) if answer else {"broken": f"a crash or a hang: {signal.strsignal(os.WTERMSIG(status))}"}


if __name__ == "__main__":
    torch.set_num_threads(1)
    Encoder.load("embedded")  # what is imported when first used
    for line in sys.stdin:
        kind, folder = line.rstrip("\n").split(" ", 1)
        result = in_child(synthesizer_of if kind == "synthesizer" else vectors_of, folder)
        sys.stdout.write(json.dumps(result) + "\n")
        sys.stdout.flush()
