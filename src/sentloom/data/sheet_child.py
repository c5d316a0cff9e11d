"""The program of a child process: reads one sheet of a spreadsheet and sends its rows, some hundred at a time."""

import json
import signal
import sys
from datetime import date, datetime, time, timedelta
from pathlib import Path
from typing import Any

from sentloom import confined

ROWS = 500  # in an answer
MOST_CELLS = 50_000_000  # of a sheet


def plain(cell: Any) -> Any:
    """A cell as JSON has it: whole numbers without a fraction, dates as text."""
    if isinstance(cell, float) and cell.is_integer():
        return int(cell)
    if isinstance(cell, datetime | date | time):
        return cell.isoformat(*" "[: isinstance(cell, datetime)])
    return str(cell) if isinstance(cell, timedelta) else cell


def send(answer: dict[str, Any]) -> None:
    """Send an answer."""
    sys.__stdout__.write(json.dumps(answer) + "\n")  # type: ignore[union-attr]
    sys.__stdout__.flush()  # type: ignore[union-attr]


def read(path: str, asked: dict[str, Any]) -> None:
    """Send the names of the sheets, then the rows of one of them."""
    from python_calamine import CalamineWorkbook

    if Path(path).stat().st_size > asked["bytes"]:
        send({"why": f"the file has more than {asked['bytes']:,} bytes"})
        return
    book = CalamineWorkbook.from_path(path)
    names = book.sheet_names
    chosen = chosen_sheet(book, asked["sheet"])
    if chosen is None:
        send({"sheets": names, "sheet": None})
        return
    sheet = book.get_sheet_by_name(chosen)
    if sheet.height * sheet.width > MOST_CELLS:
        send({"why": f"the sheet has more than {MOST_CELLS:,} cells"})
        return
    send({"sheets": names, "sheet": chosen})
    rows: list[Any] = []
    first = (sheet.start or (0, 0))[0] + 1
    for number, cells in enumerate(sheet.iter_rows(), first):
        if any(cell != "" for cell in cells):
            rows.append((number, [plain(cell) for cell in cells]))
        if len(rows) == ROWS:
            send({"rows": rows})
            rows = []
    if rows:
        send({"rows": rows})
    send({"rows": []})


def chosen_sheet(book: Any, asked: str | None) -> str | None:
    """The sheet that was asked for, by name or number, or else the first that has rows below a header."""
    names = book.sheet_names
    if asked is None:
        return next(
            (name for least in (2, 1, 0) for name in names if book.get_sheet_by_name(name).height >= least), None
        )
    if asked in names:
        return asked
    return names[int(asked) - 1] if asked.isdigit() and 0 < int(asked) <= len(names) else None


def main(asked: dict[str, Any]) -> None:
    """Read the file that the parent names."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    confined.limit_memory(asked["memory"])
    confined.limit_seconds(asked["seconds"] + 10)
    path = json.loads(sys.stdin.readline())
    try:
        read(path, asked)
    except MemoryError:
        send({"why": "it needs too much memory"})
    except Exception as error:  # of the library's many types
        send({"why": str(error).splitlines()[0][:200] if str(error) else type(error).__name__})


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
