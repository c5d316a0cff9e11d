"""Long texts in pieces that a translation model takes whole."""

import re

LONGEST = 300  # characters: from some 90 words on, models made for sentences drop the rest or repeat themselves
SENTENCE_END = re.compile(r"(?<=[.!?;])\s+")


def pieces(text: str, longest: int = LONGEST) -> list[str]:
    """A text with single spaces, cut where it is too long: behind sentences, else between words, else anywhere."""
    parts: list[str] = []
    for sentence in SENTENCE_END.split(" ".join(text.split())):
        for word in _short(sentence, longest):
            if parts and len(parts[-1]) + 1 + len(word) <= longest:
                parts[-1] += " " + word
            else:
                parts.append(word)
    return parts


def _short(sentence: str, longest: int) -> list[str]:
    """The sentence whole if it is short enough, else its words, the longest of them cut."""
    if len(sentence) <= longest:
        return [sentence]
    return [word[at : at + longest] for word in sentence.split(" ") for at in range(0, len(word), longest)]
