"""Memory of a synthesis over the number of sources: 1,000 against 100,000.

    python benchmarks/synthesis_memory.py [--causal] [ROWS ...]

A small T5 of random weights, or with --causal a small Llama, writes three tokens a text and judges them; each size runs
in a process of its own, from reading the raw text to drawing the triplets. Printed is the peak of anonymous memory,
which no file backs: it has to stay flat while the rows grow.
"""

import subprocess
import sys
import tempfile
import time
from pathlib import Path

from read_memory import WORDS, PeakAnonymous, status

SIZES = (1_000, 100_000)
MEGABYTE = 1e6


def write_texts(path: Path, rows: int) -> None:
    """Sentences of eight words, all distinct by a running number."""
    with path.open("w", encoding="utf-8") as file:
        for row in range(rows):
            words = [WORDS[(row // 7**place + place) % len(WORDS)] for place in range(8)]
            file.write(f"{' '.join(words)} {row}\n")


def measure(model: Path, texts: Path) -> None:
    """Synthesise and print the figures; meant for a fresh process."""
    from sentloom.data import read
    from sentloom.writing.filters import Filtering
    from sentloom.writing.sampling import Sampling
    from sentloom.writing.synthesize import synthesize

    before = status("RssAnon")
    gauge = PeakAnonymous()
    gauge.start()
    start = time.perf_counter()
    filtering = Filtering(threshold=0, finished=False)  # random weights: texts do not end, verdicts are all one
    found = synthesize(read(texts), model, texts.with_suffix(".ledger"), Sampling(length=3), filtering)
    seconds = time.perf_counter() - start
    gauge.ended.set()
    gauge.join()
    print(f"{found.sources:,} sources, {found.triplets:,} triplets: {seconds:.0f} s, peak", end=" ")
    print(f"{gauge.peak / MEGABYTE:.0f} MB of anonymous memory, {before / MEGABYTE:.0f} MB of it before")
    print(gauge.peak)


def build(folder: Path, causal: bool) -> Path:
    """A model of random weights; the causal one reads the same tokens."""
    from pydoc_data.topics import topics

    from transformers import AutoTokenizer, LlamaConfig, LlamaForCausalLM

    from sentloom.lab.init_model import Size, build_model

    prose = [line for topic in topics.values() for line in topic.splitlines() if line.strip()]
    build_model(folder / "t5", "t5", [*prose, *["true", "false"] * 50], size=Size(vocabulary=1000, layers=1, width=32))
    if not causal:
        return folder / "t5"
    tokenizer = AutoTokenizer.from_pretrained(folder / "t5")
    sizes = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 1, "num_attention_heads": 4}
    ids = {"eos_token_id": tokenizer.eos_token_id, "pad_token_id": tokenizer.pad_token_id, "bos_token_id": None}
    tokenizer.save_pretrained(folder / "llama")
    LlamaForCausalLM(LlamaConfig(vocab_size=len(tokenizer), **sizes, **ids)).save_pretrained(folder / "llama")
    return folder / "llama"


def main() -> None:
    """Build the model, then measure each size in a fresh process."""
    if sys.argv[1:2] == ["--measure"]:
        measure(Path(sys.argv[2]), Path(sys.argv[3]))
        return
    causal = sys.argv[1:2] == ["--causal"]
    sizes = [int(size) for size in sys.argv[1 + causal :]] or SIZES
    peaks = []
    with tempfile.TemporaryDirectory() as folder:
        model = build(Path(folder), causal)
        for size in sizes:
            texts = Path(folder) / f"{size}.txt"
            write_texts(texts, size)
            command = [sys.executable, __file__, "--measure", str(model), str(texts)]
            *lines, peak = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()
            print(*lines, sep="\n", flush=True)
            peaks.append(int(peak))
    first, last = peaks[0], peaks[-1]
    print(f"{sizes[-1]:,} against {sizes[0]:,}: ratio {last / first:.2f}, {(last - first) / MEGABYTE:+.0f} MB")


if __name__ == "__main__":
    main()
