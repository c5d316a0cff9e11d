"""A training step with memory that the process keeps (`keep_freed_memory`), against glibc's defaults.

    OMP_NUM_THREADS=1 python -m benchmarks.freed_memory [--rounds 5] [--steps 20]

The setting is that of a process, so each side runs in processes of its own, in turns: steps of AdamW in bf16 on 64
pairs of short texts, then of an FAQ (`step_lengths`), on the embedded encoder. Times are of the process. Prints the
median step of each side, the median ratio and the greatest memory.
"""

import argparse
import json
import resource
import statistics
import subprocess
import sys

SIDES = ("kept", "default")
TEXTS = ("short", "faq")
PAIRS = 64


def timed_steps(side: str, texts: str, steps: int) -> tuple[float, int]:
    """The median step of this process in seconds, and its greatest memory in KB; the first two steps warm up."""
    import torch

    from benchmarks.step_lengths import SHORT, bert, contrastive_step, faq, interleaved, texts_of
    from sentloom.training.gradients import keep_freed_memory

    if side == "kept":
        keep_freed_memory()
    encoder = bert(padded=False)
    optimizer = torch.optim.AdamW(encoder.parameters(), lr=2e-5)
    gradients = contrastive_step(encoder, texts_of(faq(PAIRS) if texts == "faq" else [SHORT] * 2 * PAIRS), bf16=True)

    def step() -> None:
        gradients()
        optimizer.step()

    (times,) = interleaved([step], steps + 1)
    return statistics.median(times[1:]), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def in_process(side: str, texts: str, steps: int) -> tuple[float, int]:
    """The same in a process of its own."""
    call = f"timed_steps{(side, texts, steps)}"
    code = f"import json; from benchmarks.freed_memory import timed_steps; print(json.dumps({call}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    seconds, memory = json.loads(done.stdout.splitlines()[-1])
    return seconds, memory


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=20)
    given = parser.parse_args()
    for texts in TEXTS:
        rounds = [[in_process(side, texts, given.steps) for side in SIDES] for _ in range(given.rounds)]
        ratios = [theirs / ours for (ours, _), (theirs, _) in rounds]
        kept, default = ([one[at] for one in rounds] for at in (0, 1))
        for side, some in zip(SIDES, (kept, default), strict=True):
            step, memory = statistics.median(seconds for seconds, _ in some), max(size for _, size in some)
            print(f"{texts}, {side}: {1000 * step:.0f} ms per step, at most {memory / 1000:.0f} MB")
        print(f"    median ratio {statistics.median(ratios):.2f}x ({min(ratios):.2f} to {max(ratios):.2f})", flush=True)


if __name__ == "__main__":
    main()
