"""The log of a run: a JSON-lines file, which reports read, and accelerate's trackers."""

import json
from pathlib import Path
from typing import Any

from accelerate import Accelerator

from sentloom.errors import disk_errors
from sentloom.files import new_file

JOURNAL = "log.jsonl"


class Journal:
    """One line per record, each with its step. A resumed run drops the lines after the step it resumes from."""

    def __init__(self, folder: Path, accelerator: Accelerator, resumed_at: int) -> None:
        self.path, self.accelerator = folder / JOURNAL, accelerator
        if accelerator.is_main_process:
            lines = [line for line in read_journal(folder) if line["step"] <= resumed_at]
            with new_file(self.path) as part:
                part.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")

    def write(self, step: int, **values: Any) -> None:
        """Append a record and send its numbers to the trackers."""
        if self.accelerator.is_main_process:
            with disk_errors(self.path), self.path.open("a", encoding="utf-8") as file:
                file.write(json.dumps({"step": step, **values}) + "\n")
        numbers = {name: value for name, value in values.items() if isinstance(value, int | float)}
        self.accelerator.log(numbers, step=step)


def read_journal(folder: Path) -> list[dict[str, Any]]:
    """The records of a run, without a last line that was cut short by a kill."""
    path = folder / JOURNAL
    if not path.is_file():
        return []
    records = []
    for line in path.read_text("utf-8").splitlines():
        try:
            records.append(json.loads(line))
        except ValueError:
            break
    return records
