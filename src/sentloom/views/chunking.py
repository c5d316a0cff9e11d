"""Split long texts into chunks that a translation model can handle."""

import re

LONGEST = 300  # characters: beyond about 90 words, sentence translation models drop text or repeat themselves
SENTENCE_END = re.compile(r"(?<=[.!?;])\s+")


def chunks(text: str, longest: int = LONGEST) -> list[str]:
    """Collapse whitespace and split a long text after sentences, else between words, else anywhere."""
    parts: list[str] = []
    for sentence in SENTENCE_END.split(" ".join(text.split())):
        for word in _short(sentence, longest):
            if parts and len(parts[-1]) + 1 + len(word) <= longest:
                parts[-1] += " " + word
            else:
                parts.append(word)
    return parts


def _short(sentence: str, longest: int) -> list[str]:
    """Return the whole sentence if it is short enough, else its words, with words that are too long cut."""
    if len(sentence) <= longest:
        return [sentence]
    return [word[at : at + longest] for word in sentence.split(" ") for at in range(0, len(word), longest)]
