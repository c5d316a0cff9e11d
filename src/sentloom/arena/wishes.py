"""What a fit is asked for, and where it puts what it makes."""

import shlex
from dataclasses import dataclass
from pathlib import Path

from sentloom.arena.budget import Budget


@dataclass(frozen=True)
class Wishes:
    """The arguments of `sentloom fit`."""

    data: tuple[str, ...]
    output: Path  # the model
    base: str
    budget: str
    against: tuple[str, ...]  # sets that decide, in place of what is held out
    general: Path | None  # a data folder with a labelled general set
    force: bool
    synthesizer: str | None
    seed: int

    @property
    def folder(self) -> Path:
        """All but the model goes beside it."""
        return self.output.with_name(f"{self.output.name}.fit")

    @property
    def means(self) -> Budget:
        """The budget, understood."""
        return Budget.parse(self.budget)

    @property
    def command(self) -> str:
        """The command that does the same."""
        parts = ["sentloom", "fit", *self.data, "-o", str(self.output), "--base", self.base, "--budget", self.budget]
        parts += [part for one in self.against for part in ("--against", one)]
        parts += ["--data", str(self.general)] if self.general else []
        parts += ["--synthesizer", self.synthesizer] if self.synthesizer else []
        parts += ["--force"] if self.force else []
        return shlex.join([*parts, "--seed", str(self.seed)])
