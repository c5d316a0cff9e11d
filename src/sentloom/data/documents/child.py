"""The program of a child process: reads the documents that its parent names, one line of JSON each.

It imports only what parses. Each answer is one line of JSON as well; the limits are in `workers`.
"""

import hashlib
import json
import signal
import sys
from pathlib import Path
from typing import Any

from sentloom import confined
from sentloom.data.documents.document import Unreadable
from sentloom.data.documents.parsers import parse
from sentloom.data.documents.passages import passages

MOST_TEXT = 50_000_000  # characters in the passages of a document


def answer(path: str, encoding: str | None, most_bytes: int) -> dict[str, Any]:
    """The title and passages of a document and the hash of the file, or why there are none."""
    with Path(path).open("rb") as file:
        content = file.read(most_bytes + 1)
    facts = {"sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content)}
    if len(content) > most_bytes:
        return {**facts, "why": f"more than {most_bytes:,} bytes"}
    document = parse(path, content, encoding)
    rows = passages(document)
    if not rows:
        return {**facts, "why": "without text"}
    if sum(len(row.text) for row in rows) > MOST_TEXT:
        return {**facts, "why": f"more than {MOST_TEXT:,} characters of text"}
    return {**facts, "title": document.title, "passages": rows}


def answered(path: str, asked: dict[str, Any]) -> dict[str, Any]:
    """The answer; a file that cannot be read is told from one that can be, whatever its parser raises."""
    try:
        return answer(path, asked["encoding"], asked["bytes"])
    except Unreadable as reason:
        return {"why": str(reason)}
    except MemoryError:
        return {"why": "needs too much memory"}
    except OSError as error:
        return {"why": f"cannot be read ({error.strerror})" if error.strerror else "damaged"}
    except Exception:  # of the parsers' many types
        return {"why": "damaged"}


def main(asked: dict[str, Any]) -> None:
    """Answer until the parent closes the pipe."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent is stopped, and then closes the pipe
    confined.limit_memory(asked["memory"])
    output, sys.stdout = sys.stdout, sys.stderr  # no parser's message is taken for an answer
    for line in sys.stdin:
        confined.limit_seconds(asked["seconds"] + 10)  # after the parent's limit
        output.write(json.dumps(answered(json.loads(line), asked)) + "\n")
        output.flush()
        confined.limit_seconds(0)


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
