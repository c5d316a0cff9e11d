"""Writing systems: the script of a sentence, and its number of words in any script."""

import unicodedata
from functools import cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

# Unicode blocks of the scripts; only the letters in them count.
BLOCKS: dict[str, tuple[tuple[int, int], ...]] = {
    "Latin": ((0x41, 0x24F), (0x250, 0x2AF), (0x1D00, 0x1DBF), (0x1E00, 0x1EFF), (0x2C60, 0x2C7F), (0xA720, 0xA7FF),
              (0xAB30, 0xAB6F), (0xFB00, 0xFB06), (0xFF21, 0xFF5A)),
    "Greek": ((0x370, 0x3FF), (0x1F00, 0x1FFF)),
    "Cyrillic": ((0x400, 0x52F), (0x1C80, 0x1C8F), (0x2DE0, 0x2DFF), (0xA640, 0xA69F)),
    "Hebrew": ((0x590, 0x5FF), (0xFB1D, 0xFB4F)),
    "Arabic": ((0x600, 0x6FF), (0x750, 0x77F), (0x870, 0x8FF), (0xFB50, 0xFDFF), (0xFE70, 0xFEFF)),
    "Devanagari": ((0x900, 0x97F), (0xA8E0, 0xA8FF)),
    "Thai": ((0xE00, 0xE7F),),
    "Hangul": ((0x1100, 0x11FF), (0x3130, 0x318F), (0xA960, 0xA97F), (0xAC00, 0xD7FF), (0xFFA0, 0xFFDC)),
    "Kana": ((0x3040, 0x30FF), (0x31F0, 0x31FF), (0xFF66, 0xFF9F), (0x1AFF0, 0x1B16F)),
    "Han": ((0x3005, 0x3007), (0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xF900, 0xFAFF), (0x20000, 0x323AF)),
}  # fmt: skip
SCRIPTS = ("none", *BLOCKS, "other")  # "none": a sentence without letters
LAST_LETTER = 0x323AF

# Words are separated by spaces. In scripts without spaces, a Han or Kana character counts as one word, and so do up
# to four characters of the scripts of South-East Asia.
UNSPACED = r"\p{Han}\p{Hiragana}\p{Katakana}"
SYLLABIC = r"\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}"
WORD = rf"[{UNSPACED}]|[{SYLLABIC}]{{1,4}}|[^\s\p{{Z}}{UNSPACED}{SYLLABIC}]+"


@cache
def _script_of() -> np.ndarray:
    """Return the index in SCRIPTS of each code point, 0 if it is not a letter; the last entry is for higher ones."""
    table = np.zeros(LAST_LETTER + 2, np.uint8)
    letters = np.array([unicodedata.category(chr(point))[0] == "L" for point in range(LAST_LETTER + 1)] + [False])
    table[letters] = len(SCRIPTS) - 1
    for number, blocks in enumerate(BLOCKS.values(), start=1):
        for first, last in blocks:
            table[first : last + 1][letters[first : last + 1]] = number
    return table


def dominant_scripts(texts: pa.LargeStringArray) -> np.ndarray:
    """Return for each text the index in SCRIPTS of the script of most of its letters (the first one in a tie)."""
    points = np.frombuffer("".join(texts.to_pylist()).encode("utf-32-le"), np.uint32)
    script = _script_of()[np.minimum(points, LAST_LETTER + 1)]
    owner = np.repeat(np.arange(len(texts)), pc.utf8_length(texts).to_numpy())
    cells = owner * len(SCRIPTS) + script
    counts = np.bincount(cells, minlength=len(texts) * len(SCRIPTS)).reshape(len(texts), len(SCRIPTS))
    counts[:, 0] = 0  # so that a text with any letter gets a script
    return np.asarray(counts.argmax(axis=1))


def word_counts(texts: pa.LargeStringArray) -> np.ndarray:
    """Count the words of each text, in any script."""
    return np.asarray(pc.count_substring_regex(texts, WORD))
