"""Try an ONNX file in a process of its own, with limits of memory and time, before this process opens it.

An ONNX file is a program: a few hundred bytes can ask for any amount of memory, or never end. The operators do not show
which file does, because honest encoders use the same ones. So a child process opens the file and runs it on batches of
the sizes that it will be used with. A verdict is kept in the cache under the hash of the file and the sizes.

This file is also the program of the child, which imports neither torch nor transformers.
"""

import hashlib
import json
import subprocess
import sys
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sentloom import confined
from sentloom.errors import DamagedFile, DiskError, MissingPart, ModelError, first_line
from sentloom.files import cache_folder, read_record, write_record

if TYPE_CHECKING:
    from onnxruntime import InferenceSession

STATES = ("last_hidden_state", "token_embeddings")  # names of the output
IDS, MASK, TYPES = "input_ids", "attention_mask", "token_type_ids"  # of the inputs
TOKENS = 2048  # of the largest batch; longer texts are not tried
SHORT = 16  # tokens of a short text
MEMORY = 2 << 30  # bytes, besides four times the size of the file
SECONDS, BYTES_PER_SECOND = 60, 2_000_000  # a minute, and a second more for every 2 MB of the file
FIX = "use a model whose origin you trust, or the folder that it was exported from"
Shape = tuple[int, int]  # texts, tokens of each

_own: set[str] = set()  # hashes of files that this process wrote


def trust_own(content: bytes) -> None:
    """Remember a file that this process has just written: it is not tried."""
    _own.add(hashlib.sha256(content).hexdigest())


def batch_shapes(longest: int, *, batched: bool) -> list[Shape]:
    """The sizes to try, from the smallest to the largest that a model is used with.

    >>> batch_shapes(512, batched=True), batch_shapes(512, batched=False)
    ([(1, 2), (128, 16), (4, 512)], [(1, 2), (1, 512)])
    """
    longest = max(1, min(longest, TOKENS))
    short = min(SHORT, longest)
    return [
        (1, min(2, longest)),
        *([(TOKENS // short, short), (TOKENS // longest, longest)] if batched else [(1, longest)]),
    ]


def check_onnx(content: bytes, where: str, shapes: Sequence[Shape], vocabulary: int) -> None:
    """Refuse a file that does not open and run within the limits; one that did is not tried again."""
    digest = hashlib.sha256(content).hexdigest()
    key = hashlib.sha256(json.dumps([digest, shapes, vocabulary]).encode()).hexdigest()
    record = cache_folder() / "onnx" / f"{key}.json"
    if digest in _own or _is_known(record, digest):
        return
    report = _try(content, where, shapes, vocabulary)
    output_name(where, report["inputs"], report["outputs"])
    for shape, size in zip(shapes, report["shapes"], strict=True):
        if len(size) != 3 or tuple(size[:2]) != shape:
            sizes = " x ".join(map(str, size))
            problem = f"for {shape[0]} texts of {shape[1]} tokens, the states have the size {sizes or 1}"
            raise ModelError(where, problem, "a vector for every token", "export the model again")
    with suppress(DiskError):  # then it is tried again next time
        write_record(record, {"file": digest, "shapes": shapes})


def _is_known(record: Path, digest: str) -> bool:
    try:
        return bool(read_record(record, "")["file"] == digest)
    except (OSError, DamagedFile, KeyError):
        return False


def output_name(where: str, inputs: Collection[str], outputs: Sequence[str]) -> str:
    """The output that has the states; other inputs or outputs than an encoder's are refused."""
    output = _states_among(inputs, outputs)
    if output is None:
        problem = f"the inputs are {', '.join(sorted(inputs))} and the outputs {', '.join(outputs)}"
        raise ModelError(where, problem[:300], f"{IDS} and {MASK}, and {STATES[0]}", "export the model again")
    return output


def _states_among(inputs: Collection[str], outputs: Sequence[str]) -> str | None:
    if not {IDS} <= set(inputs) <= {IDS, MASK, TYPES}:
        return None
    return next((name for name in outputs if name in STATES), None)


def _try(content: bytes, where: str, shapes: Sequence[Shape], vocabulary: int) -> dict[str, Any]:
    """What the child says: the names of inputs and outputs, and the size of the states for every batch."""
    memory, seconds = MEMORY + 4 * len(content), SECONDS + len(content) // BYTES_PER_SECOND
    asked = json.dumps({"memory": memory, "seconds": seconds, "shapes": shapes, "vocabulary": vocabulary})
    call, around = confined.command(__file__, asked), confined.environment()
    try:
        done = subprocess.run(call, input=content, capture_output=True, timeout=seconds, env=around, check=False)
    except subprocess.TimeoutExpired:
        problem = f"the model does not run on a few batches within {seconds} seconds"
        raise ModelError(where, problem, "", FIX) from None
    if done.returncode:
        report: dict[str, Any] = {"memory": f"its process ended with code {done.returncode}"}
    else:
        report = json.loads(done.stdout)
    if report.get("missing"):
        raise _no_onnxruntime(where)
    if reason := report.get("memory"):
        limit = f"{memory / 2**30:.1f} GiB of memory"
        raise ModelError(where, f"the model does not run on a few batches in {limit} ({reason[:200]})", "", FIX)
    if reason := report.get("error"):
        raise ModelError(where, f"the model does not load ({reason[:200]})", "", "download or save the model again")
    return report


def _no_onnxruntime(where: str) -> MissingPart:
    return MissingPart(where, "the package onnxruntime is not installed", "", "pip install 'sentloom[onnx]'")


def open_session(content: bytes, where: str) -> "InferenceSession":
    """A session that runs in the thread that calls it: packs run side by side."""
    try:
        from onnxruntime import InferenceSession, SessionOptions
    except ImportError:
        raise _no_onnxruntime(where) from None
    options = SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    return InferenceSession(content, options, providers=["CPUExecutionProvider"])


def main(asked: dict[str, Any]) -> dict[str, Any]:
    """In the child: open the file on standard input and run it."""
    try:
        import onnxruntime  # noqa: F401 (before memory is limited: its libraries are no part of the model)
    except ImportError:
        return {"missing": True}
    confined.limit_seconds(asked["seconds"] + 10)  # after the parent's limit, which has the better message
    confined.limit_memory(asked["memory"])
    try:
        session = open_session(sys.stdin.buffer.read(), "")
        inputs, outputs = ([node.name for node in nodes] for nodes in (session.get_inputs(), session.get_outputs()))
        output = _states_among(inputs, outputs)
        sizes = list(_sizes(session, inputs, output, asked)) if output else []
    except Exception as error:  # of many types, those of onnxruntime have no common one
        wants_memory = isinstance(error, MemoryError) or "alloc" in str(error)
        return {"memory" if wants_memory else "error": first_line(error)}
    return {"inputs": inputs, "outputs": outputs, "shapes": sizes}


def _sizes(session: Any, inputs: Sequence[str], output: str, asked: dict[str, Any]) -> Iterator[list[int]]:
    import numpy as np

    for shape in asked["shapes"]:
        ids = (np.arange(shape[0] * shape[1], dtype=np.int64) % asked["vocabulary"]).reshape(shape)
        arrays = {IDS: ids, MASK: np.ones_like(ids), TYPES: np.zeros_like(ids)}
        yield list(session.run([output], {name: arrays[name] for name in inputs})[0].shape)


if __name__ == "__main__":
    sys.stdout.write(json.dumps(main(json.loads(sys.argv[1]))))
