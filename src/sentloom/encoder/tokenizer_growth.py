"""Bound how much longer a tokenizer can make a text, computed from its steps without running them.

A few chained replacements of one character by ten would turn a short sentence into gigabytes.
"""

import base64
import math
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from sentloom.errors import ModelError

MOST_GROWTH = 64  # factor; a single step of sentencepiece has 18, for an Arabic ligature
MOST_STEPS = 100
SHORT_TEXT = 100  # characters: the text length assumed for a step that prepends
PARTS = (("normalizer", "pre_tokenizer"), ("decoder",))  # the parts of a group are applied in turn
MAY_MATCH_NOTHING = re.compile(r"[*?|^$(]|\{0?,|\{0\}|\\[bBAzZGKyY]")


def check_growth(where: Path, tokenizer: Mapping[str, Any]) -> None:
    """Refuse a tokenizer (the content of tokenizer.json) whose steps can make a text much longer."""
    for names in PARTS:
        steps = [step for name in names for step in _steps(tokenizer.get(name))]
        growth, named = math.prod(map(_growth, steps)), " and ".join(names)
        if len(steps) > MOST_STEPS:
            problem, expected = f"{named} have {len(steps):,} steps", f"at most {MOST_STEPS}"
        elif growth > MOST_GROWTH:
            problem, expected = f"{named} can make a text {growth:.3g} times longer", f"at most {MOST_GROWTH} times"
        else:
            continue
        fix = "download or save the tokenizer again, or choose another model"
        raise ModelError(str(where), problem, expected, fix)


def _steps(part: object) -> Iterator[dict[str, Any]]:
    """Yield every step, also those inside sequences."""
    if isinstance(part, dict):
        yield part
        part = [value for key, value in part.items() if key != "pattern"]
    for item in part if isinstance(part, list) else ():
        yield from _steps(item)


def _growth(step: dict[str, Any]) -> float:
    """Return the growth factor of one step, identified by its fields because the type may be omitted."""
    content, prepended, charsmap = (step.get(key) for key in ("content", "prepend", "precompiled_charsmap"))
    if "pattern" in step and isinstance(content, str):
        return max(1.0, _replacement_growth(step["pattern"], len(content)))
    if isinstance(prepended, str):
        return 1 + len(prepended) / SHORT_TEXT
    if isinstance(charsmap, str):
        return max(1.0, _longest_of(charsmap))
    return 2.0 if step.get("type") in ("ByteLevel", "Metaspace") else 1.0


def _replacement_growth(pattern: object, length: int) -> float:
    """Return the growth of a replacement; a pattern that may match nothing inserts its content at every position."""
    string, regex = (pattern.get(key) if isinstance(pattern, dict) else None for key in ("String", "Regex"))
    if isinstance(string, str) and string:
        return length / len(string)
    if isinstance(regex, str) and regex and not MAY_MATCH_NOTHING.search(regex):
        return length
    return 1 + length


def _longest_of(charsmap: str) -> int:
    """Find the longest replacement in a sentencepiece map: the size of a trie, the trie, null-terminated texts."""
    try:
        data = base64.b64decode(charsmap)
    except ValueError:
        return len(charsmap)
    texts = data[4 + int.from_bytes(data[:4], "little") :]
    return max(len(text.decode("utf-8", "replace")) for text in texts.split(b"\0"))
