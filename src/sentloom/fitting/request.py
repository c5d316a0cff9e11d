"""What a fit is asked for, and where it puts what it makes."""

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from sentloom.data.shapes import Shape
from sentloom.fitting.budget import Budget


@dataclass(frozen=True)
class Request:
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
    shape: Shape | None = None  # of every input, where its columns do not say it
    columns: Mapping[str, str | int] | None = None
    strict: bool = False  # refuse data with a single row that cannot be used

    @property
    def folder(self) -> Path:
        """All but the model goes beside it."""
        return self.folder_of(self.output)

    @staticmethod
    def folder_of(output: Path) -> Path:
        """The same for a model that is yet to be requested."""
        named = output if output.name else output.resolve()
        return named.with_name(f"{named.name}.fit")

    @property
    def base_place(self) -> str:
        """The base as recipes name it, which lie in another folder."""
        return _place(self.base)

    @property
    def synthesizer_place(self) -> str | None:
        """The same of the synthesizer."""
        return self.synthesizer and _place(self.synthesizer)

    @property
    def means(self) -> Budget:
        """The budget, understood."""
        return Budget.parse(self.budget)

    @property
    def command(self) -> str:
        """The command that does the same."""
        parts = ["sentloom", "fit", *self.data, "-o", str(self.output), "--base", self.base, "--budget", self.budget]
        parts += [part for one in self.against for part in ("--against", one)]
        parts += ["--general", str(self.general)] if self.general else []
        parts += ["--synthesizer", self.synthesizer] if self.synthesizer else []
        parts += ["--shape", str(self.shape)] if self.shape else []
        parts += (
            ["--columns", ",".join(f"{role}={name}" for role, name in self.columns.items())] if self.columns else []
        )
        parts += ["--force"] if self.force else []
        parts += ["--strict"] if self.strict else []
        return shlex.join([*parts, "--seed", str(self.seed)])


def _place(name: str) -> str:
    """A folder by its whole path; what is no folder by its name."""
    return str(Path(name).resolve()) if Path(name).is_dir() else name
