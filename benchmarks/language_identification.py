"""How often the language of a real sentence, and of a file of 100 of them, is identified correctly.

    python benchmarks/language_identification.py DATA

DATA is a data folder; the files of its folder `parallel` give up to 1,000 sentences of each language. A single sentence
is right if the model's first choice is its language, whatever its confidence. A block of 100 is right if
`main_language` is, as in `check` and `fit`. Printed: both shares, by language and in all.
"""

import argparse
from pathlib import Path

from sentloom.data import read
from sentloom.data.hygiene.languages import identify, language_shares, main_language

FILES = {
    "ar": "xnli.en-ar", "cs": "multi30k.en-cs.train", "de": "tatoeba_test.en-de", "en": "tatoeba_test.en-de",
    "es": "tatoeba_test.en-es", "fr": "tatoeba_test.en-fr", "tr": "xnli.en-tr", "zh": "tatoeba_test.en-zh",
}  # fmt: skip
MOST, BLOCK = 1_000, 100


def sentences(folder: Path, language: str) -> list[str]:
    """Distinct sentences of a language."""
    data = read(folder / "parallel" / f"{FILES[language]}.tsv.gz")
    return list(dict.fromkeys(data.column("source" if language == "en" else "target").to_pylist()))[:MOST]


def main() -> None:
    """Print a line per language, and one for all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    folder = parser.parse_args().data
    total = [0, 0, 0, 0]
    for language in FILES:
        texts = sentences(folder, language)
        blocks = [texts[at : at + BLOCK] for at in range(0, len(texts) - BLOCK + 1, BLOCK)]
        right = sum((identify(text) or [("", 0.0)])[0][0] == language for text in texts)
        files = sum(main_language(language_shares(block)) == language for block in blocks)
        counts = [right, len(texts), files, len(blocks)]
        total = [a + b for a, b in zip(total, counts, strict=True)]
        print(_line(language, counts))
    print(_line("all", total))


def _line(name: str, counts: list[int]) -> str:
    right, texts, files, blocks = counts
    return f"{name:4} {right:,} of {texts:,} sentences ({right / texts:.1%}), {files} of {blocks} blocks"


if __name__ == "__main__":
    main()
